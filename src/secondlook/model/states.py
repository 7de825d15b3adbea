"""What the separate layers of a warm ranker made of documents, kept for the next query."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class DocumentStates:
    """States by document, at most `max_bytes` of them; the one used longest ago goes first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._states: OrderedDict[bytes, Tensor] = OrderedDict()
        self.bytes = 0
        self.found = 0
        self.missed = 0

    def get(self, key: bytes) -> Tensor | None:
        """The states of a document, where they are still kept: [tokens, hidden]."""
        states = self._states.get(key)
        if states is None:
            self.missed += 1
            return None
        self.found += 1
        self._states.move_to_end(key)
        return states

    def put(self, key: bytes, states: Tensor) -> None:
        """Keep the states of a document that is not kept yet, unless they alone are too large."""
        if states.nbytes > self._max_bytes:
            return
        self._states[key] = states
        self.bytes += states.nbytes
        while self.bytes > self._max_bytes:
            _, oldest = self._states.popitem(last=False)
            self.bytes -= oldest.nbytes

    def __len__(self) -> int:
        return len(self._states)
