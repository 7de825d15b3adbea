"""Jina's API and Cohere's v1, which share a path, from their client's side.

Infinity, vLLM and others speak it too, some at another path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.remote import cohere
from secondlook.remote.client_shapes import ClientShape

if TYPE_CHECKING:
    from collections.abc import Sequence


def request(query: str, documents: Sequence[str], model: str | None) -> dict[str, Any]:
    """As Cohere's; the texts themselves are not wanted back."""
    return cohere.request(query, documents, model) | {"return_documents": False}


SHAPE = ClientShape(
    paths=("/v1/rerank",),
    request=request,
    scores=cohere.scores,
    billed_searches=cohere.billed_searches,
    key_variables={"api.jina.ai": ("JINA_API_KEY",), **cohere.SHAPE.key_variables},
)
