from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.types import Document


def contents(document: Document) -> str:
    """What an engine indexes of a document: every term as often as it is to count.

    Title, text and predicted queries; or, of a weighed document, each word as often as its weight
    says, since no engine takes frequencies as such (OpenSearch 2.5 and Elasticsearch 8.12 refuse
    `delimited_term_freq`).
    """
    if document.weights is not None:
        return " ".join(" ".join([word] * times) for word, times in document.weights.items())
    parts = (document.title, document.text, *document.queries)
    return " ".join(part for part in parts if part)
