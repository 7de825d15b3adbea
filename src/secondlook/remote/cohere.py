"""Cohere's v2 API, from its client's side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from secondlook.remote.client_shapes import ClientShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def request(query: str, documents: Sequence[str], model: str | None) -> dict[str, Any]:
    """All documents are wanted back: `top_n` is their number."""
    body = {"query": query, "documents": list(documents), "top_n": len(documents)}
    return body if model is None else {"model": model, **body}


def scores(answer: Any) -> Iterator[tuple[int, float]]:  # noqa: ANN401 - any JSON
    """`results`, each with `index` and `relevance_score`."""
    for result in answer["results"]:
        yield result["index"], result["relevance_score"]


def billed_searches(answer: Any) -> float | None:  # noqa: ANN401 - any JSON
    """`meta.billed_units.search_units`."""
    try:
        searches = float(answer["meta"]["billed_units"]["search_units"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return searches if math.isfinite(searches) and searches >= 0 else None


SHAPE = ClientShape(
    paths=("/v2/rerank",),
    request=request,
    scores=scores,
    billed_searches=billed_searches,
    key_variables={"api.cohere.com": ("CO_API_KEY", "COHERE_API_KEY")},
)
