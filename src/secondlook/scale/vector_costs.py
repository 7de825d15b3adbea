"""What document vectors take: bytes on disk and in memory, by their dimension and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from secondlook.retrieve.vector_graph import LINK_BYTES

_BYTES = {"fp32": 4, "fp16": 2, "int8": 1}
_SCALE = 4  # a float for each int8 row


@dataclass(frozen=True, slots=True)
class VectorCosts:
    """Of one vector for each passage; windows take one each."""

    precision: Literal["fp32", "fp16", "int8"] = "int8"
    dimension: int = 384

    @property
    def memory_bytes(self) -> int:
        """Of a vector in a graph, which is to stay in memory: the vector itself and its links."""
        return self.dimension * _BYTES[self.precision] + LINK_BYTES

    @property
    def disk_bytes(self) -> int:
        """The same, and the row that candidates are compared with."""
        scale = _SCALE if self.precision == "int8" else 0
        return self.memory_bytes + self.dimension * _BYTES[self.precision] + scale
