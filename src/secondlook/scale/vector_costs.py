"""What document vectors take: bytes, and the time to build and to search their graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from secondlook.retrieve.vector_graph import LINK_BYTES, PART_ROWS, found_for

_BYTES = {"fp32": 4, "fp16": 2, "int8": 1}
_SCALE = 4  # a float for each int8 row

_MEASURED = 384
"""Dimensions of the vectors whose times these are, of one core at 2.5 GHz (int8; a million of them,
docs/results/vectors.md). Most of a time are comparisons, which take as long as vectors are."""
_LINKED_SECONDS = 0.65e-3
_SEARCHED_SECONDS, _SECONDS_PER_FOUND = 0.47e-3, 7.15e-6
"""Of a graph with `PART_ROWS` vectors: a line through 1.39, 1.90 and 14.8 ms for the nearest 10,
100 and 1,000, of which 128, 200 and 2,000 are found first."""


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

    def build_seconds(self, passages: int) -> float:
        """Of one core, for the graphs; the vectors themselves are what encoding takes."""
        return passages * _LINKED_SECONDS * self.dimension / _MEASURED

    def search_seconds(self, passages: int, candidates: int) -> float:
        """Of one core, for one query: every graph is searched."""
        graph = _SEARCHED_SECONDS + found_for(candidates) * _SECONDS_PER_FOUND
        return passages / PART_ROWS * graph * self.dimension / _MEASURED
