"""The rerank APIs that secondlook can ask, by name: how a request and its answer look in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from secondlook.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def _not_told(_: Any) -> None:  # noqa: ANN401 - any JSON
    return None


@dataclass(frozen=True, slots=True)
class ClientShape:
    """One rerank API, from its client's side."""

    paths: tuple[str, ...]
    """An address with one of these paths is of this API."""
    request: Callable[[str, Sequence[str], str | None], dict[str, Any]]
    """The body for a query, documents and perhaps a model's name."""
    scores: Callable[[Any], Iterable[tuple[int, float]]]
    """Each document's place in the request and its score, of the answer's JSON; where that is not
    what it should be, this may raise KeyError, TypeError, ValueError or OverflowError."""
    batch: int = 100
    """Documents per request at most."""
    raw_scores: bool = False
    """Whether scores have no bounds; else they are from 0 to 1."""
    billed_searches: Callable[[Any], float | None] = _not_told
    """How many searches the answer says it costs; None where it does not say."""
    key_variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The service's own hosts, and the environment variables where its users keep their key."""


CLIENT_SHAPES: Registry[ClientShape] = Registry(
    "rerank API",
    "secondlook.client_shapes",
    {
        "cohere": "secondlook.remote.cohere:SHAPE",
        "jina": "secondlook.remote.jina:SHAPE",
        "tei": "secondlook.remote.tei:SHAPE",
        "vllm": "secondlook.remote.vllm:SHAPE",
    },
)
