"""vLLM's score API, from its client's side; its rerank API is Jina's and Cohere's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.remote.client_shapes import ClientShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def request(query: str, documents: Sequence[str], model: str | None) -> dict[str, Any]:
    """One text on the first side, all others on the second."""
    body = {"text_1": query, "text_2": list(documents)}
    return body if model is None else {"model": model, **body}


def scores(answer: Any) -> Iterator[tuple[int, float]]:  # noqa: ANN401 - any JSON
    """`data`, each with `index` and `score`."""
    for result in answer["data"]:
        yield result["index"], result["score"]


SHAPE = ClientShape(paths=("/score", "/v1/score"), request=request, scores=scores)
