"""text-embeddings-inference's API, from its client's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.remote.client_shapes import ClientShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def request(query: str, documents: Sequence[str], model: str | None) -> dict[str, Any]:
    """Raw scores are asked for: after the sigmoid, the best ones may all be 1. It has one model."""
    return {
        "query": query,
        "texts": list(documents),
        "truncate": True,
        "raw_scores": True,
        "return_text": False,
    }


def scores(answer: Any) -> Iterator[tuple[int, float]]:  # noqa: ANN401 - any JSON
    """A bare list, each with `index` and `score`."""
    for result in answer:
        yield result["index"], result["score"]


SHAPE = ClientShape(
    paths=("/rerank",),
    request=request,
    scores=scores,
    batch=32,  # its server refuses more, unless it is started otherwise
    raw_scores=True,
)
