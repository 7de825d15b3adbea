"""Where judgments come from, when it is not from people: told in a file beside them.

`qrels/train.tsv` has no place for it, so `qrels/train.labels.json` says it; `mine` reads it, and it
goes with the groups into the lineage and the card of every ranker that learns from them.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.data.durable import write_at_once
from secondlook.data.formats import read_qrels, read_queries, write_qrels, write_queries
from secondlook.errors import MalformedInput, Unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondlook.types import Qrels, Query

GENERATED = "generated queries"
"""What an origin begins with where a model wrote the queries."""

_OTHER_JUDGMENTS = re.compile(
    r"(?!train\.).+\.tsv(?:\.gz|\.zst)?|(?:dev|test)\.(?:txt|trec)(?:\.gz|\.zst)?"
)
"""Files of `qrels` beside `train.tsv`, which people may have added."""


def write_made(folder: Path, queries: Iterable[Query], qrels: Qrels, origin: str) -> None:
    """Queries and judgments that no person gave, in BEIR's layout, all of them in `train`.

    They replace those that were made before; queries that people added to these stay. Raises
    Unwritable where the folder's queries or judgments are people's.
    """
    refuse_to_overwrite_judged(folder)
    train = _train(folder)
    train.parent.mkdir(parents=True, exist_ok=True)
    written = {query.id: query for query in [*queries, *_added(folder)]}
    write_origin(train, origin)  # the first: what is there without it is not ours to replace
    write_queries(_queries(folder), written.values())
    write_qrels(train, qrels)  # the last: where it is, all is


def refuse_to_overwrite_judged(folder: Path) -> None:
    """Raise Unwritable if `write_made` would overwrite what it did not write."""
    train = _train(folder)
    there = [path for path in (_queries(folder), train) if path.exists()]
    if there and not _beside(train).exists():
        raise Unwritable(
            f"{there[0]} would be overwritten, and it may be the work of people: no "
            f"{_beside(train).name} in {train.parent} says that it was made from clicks or by a "
            "query generator. Give another folder as `output`"
        )


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


def _added(folder: Path) -> list[Query]:
    """The folder's queries, but for those that only the judgments made before name."""
    queries, train = _queries(folder), _train(folder)
    if not queries.exists():
        return []
    others = (path for path in train.parent.iterdir() if _OTHER_JUDGMENTS.fullmatch(path.name))
    judged = {query_id for path in others for query_id in read_qrels(path)}
    made = read_qrels(train).keys() - judged if train.exists() else set()
    return [query for query in read_queries(queries) if query.id not in made]


def _queries(folder: Path) -> Path:
    return folder / "queries.jsonl"


def _train(folder: Path) -> Path:
    return folder / "qrels" / "train.tsv"


def _beside(qrels: Path) -> Path:
    return qrels.with_name(qrels.name.split(".")[0] + ".labels.json")
