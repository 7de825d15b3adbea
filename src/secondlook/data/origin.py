"""Where judgments come from, when it is not from people: told in a file beside them.

`qrels/train.tsv` has no place for it, so `qrels/train.labels.json` says it; `mine` reads it, and it
goes with the groups into the lineage and the card of every ranker that learns from them.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.data.durable import write_at_once
from secondlook.data.formats import write_qrels, write_queries
from secondlook.errors import MalformedInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondlook.types import Qrels, Query


def write_made(folder: Path, queries: Iterable[Query], qrels: Qrels, origin: str) -> None:
    """Queries and judgments that no person gave, in BEIR's layout, all of them in `train`."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write_queries(folder / "queries.jsonl", queries)
    write_origin(folder / "qrels" / "train.tsv", origin)
    write_qrels(folder / "qrels" / "train.tsv", qrels)  # the last: where it is, all is


def write_origin(qrels: Path, origin: str) -> None:
    """Say of a file of judgments where they come from."""
    write_at_once(_beside(qrels), json.dumps({"origin": origin}, ensure_ascii=False) + "\n")


def read_origin(qrels: Path | str) -> str:
    """Where the judgments of a file come from; empty if from people, as far as is known."""
    path = _beside(Path(qrels))
    if not path.is_file():
        return ""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["origin"])
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedInput(path, None, 'must be like {"origin": "clicks"}; mend it') from error


def query_id(text: str) -> str:
    """For a query that has none: the same whenever it is asked, whatever its case.

    So a query stays in its split when more are made.
    """
    return "m" + blake2b(text.casefold().encode(), digest_size=8).hexdigest()


def _beside(qrels: Path) -> Path:
    return qrels.with_name(qrels.name.split(".")[0] + ".labels.json")
