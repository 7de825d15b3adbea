"""How much a client may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.serve.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

_VALUES_PER_DOCUMENT = 100
"""JSON values: documents may be objects with fields that nobody reads."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold and how long it may take, and what all of them may together."""

    documents: int = 1000
    text_characters: int = 200_000
    query_characters: int = 10_000
    body_bytes: int = 16 * 2**20
    body_seconds: float = 30.0
    """Until the whole body must be here."""
    bytes_in_flight: int = 64 * 2**20
    """Bodies of all requests that are not answered yet; a request alone is always taken."""
    deadline: float = 10.0
    """Seconds until a request is answered with what is scored by then."""
    queue_pairs: int = 4096
    """How many documents may wait, over all requests."""
    explained_hits: int = 10
    """Of one search; each costs as much as a scored document for every word it has."""
    connections: int = 512
    """Open at once; beyond them the one that has been idle longest is closed."""
    requests_per_second: float = 0.0
    """Of one key, or one address where there are no keys; 0 is no limit."""
    wrong_keys_per_minute: int = 20
    """From one address, before it is told to wait."""

    @property
    def json_values(self) -> int:
        """How many values the JSON of one request may have."""
        return _VALUES_PER_DOCUMENT * (self.documents + 1)

    def check(self, query: str, texts: Sequence[str]) -> None:
        """Raises Refused where there is nothing to rank, or too much."""
        if not texts:
            raise Refused(400, "there is nothing to rank: give one document at least", empty=True)
        if len(texts) > self.documents:
            raise Refused(
                413,
                f"{len(texts):,} documents are more than the {self.documents:,} this server ranks "
                "at once; send the best of them, or several requests",
            )
        if len(query) > self.query_characters:
            raise Refused(
                413,
                f"the query has {len(query):,} characters; this server takes "
                f"{self.query_characters:,}",
            )
        for place, text in enumerate(texts):
            if len(text) > self.text_characters:
                raise Refused(
                    413,
                    f"document {place} has {len(text):,} characters; this server takes "
                    f"{self.text_characters:,}: send its passages as documents",
                )
