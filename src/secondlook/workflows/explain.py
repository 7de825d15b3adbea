"""Explain a score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.explain import Explanation


def explain(
    ranker: str | Path,
    query: str,
    document: str,
    *,
    index: str | Path | None = None,
    depth: int = 100,
    query_type: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    html: str | Path | None = None,
) -> Explanation:
    """What each word contributes to a score, and the attention between the texts.

    `document` is a text or, with `index`, the id of one; then its ranks before and after re-ranking
    the first `depth` candidates, as `search` finds them by default, are told, too. `layer` and
    `head` choose what attention is shown (default: all). `html` is a file to write a page to.
    """
    from secondlook.explain import explain as explain_pair
    from secondlook.explain import standing
    from secondlook.remote.address import is_remote
    from secondlook.score.open_ranker import open_ranker
    from secondlook.types import Query
    from secondlook.workflows.open_index import open_index

    loaded = open_ranker(ranker, backend="auto" if is_remote(ranker) else "torch")
    text, title, ranks, language = document, "", None, None
    if index is not None:
        engine = open_index(index).engine
        ranks = standing(Query("", query, query_type), document, engine, loaded, depth)
        (stored,) = engine.fetch([document])
        text, title, language = stored.text, stored.title, engine.card.analyzer
    explanation = explain_pair(
        query,
        text,
        loaded,
        title=title,
        query_type=query_type,
        layer=layer,
        head=head,
        analyzer=language,
    )
    explanation = replace(explanation, standing=ranks)
    if html is not None:
        from secondlook.data.durable import write_at_once

        write_at_once(Path(html), explanation.to_html())
    return explanation
