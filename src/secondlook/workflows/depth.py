"""Quality and cost of a re-ranker by its depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from secondlook.data.conversions import QrelsLike, RunLike
    from secondlook.evaluate.depth import Depth


@dataclass(frozen=True, slots=True)
class DepthCurve:
    """A measure for each depth, its upper bound, and the pairs that are scored for it."""

    measure: str
    points: tuple[Depth, ...]
    pairs: tuple[float, ...]
    """Scored for a query, on average, at each depth."""
    rate: float | None
    """Scored pairs per second, where it is known."""

    @property
    def costs(self) -> list[float]:
        """Milliseconds for a query at each depth; pairs where the rate is unknown."""
        return [1000 * pairs / self.rate if self.rate else pairs for pairs in self.pairs]

    def to_dict(self) -> list[dict[str, float]]:
        """A row for each depth."""
        return [
            {
                "depth": point.depth,
                self.measure: point.reached,
                "ceiling": point.ceiling,
                "pairs": pairs,
            }
            | ({"ms": cost} if self.rate else {})
            for point, pairs, cost in zip(self.points, self.pairs, self.costs, strict=True)
        ]

    def summary(self) -> str:
        """The table as plain text."""
        from secondlook.evaluate.tables import as_text

        return as_text(self.table())

    def table(self) -> Table:
        """For a console of rich."""
        from rich import box
        from rich.table import Table

        heads = ["depth", self.measure, "ceiling", "pairs/query"]
        table = Table(*heads, *(["ms/query"] if self.rate else []), box=box.SIMPLE_HEAD)
        for row in self.to_dict():
            depth, *values = row.values()
            quality = [f"{value:.4f}" for value in values[:2]]
            table.add_row(str(depth), *quality, *(f"{value:,.0f}" for value in values[2:]))
        return table


def depth(
    qrels: QrelsLike,
    first: RunLike,
    second: RunLike,
    *,
    measure: str = "nDCG@10",
    rate: float | None = None,
) -> DepthCurve:
    """Quality and cost for each re-ranking depth.

    `first` is the first-stage run, `second` the same candidates re-ranked. Documents below the
    depth keep their first-stage order. With `rate`, scored pairs per second, costs are times.
    """
    from secondlook.data.conversions import load_qrels, rankings_of
    from secondlook.errors import SecondlookError, WrongArgument
    from secondlook.evaluate.depth import depth_curve, same_hits

    if rate is not None and rate <= 0:
        raise WrongArgument(f"a rate must be above 0 pairs per second, not {rate:g}")
    before, after = list(rankings_of(first)), list(rankings_of(second))
    if (share := same_hits(before, after)) < 1:
        raise SecondlookError(
            f"only {share:.0%} of the second run's hits are in the first, so it is no re-ranking "
            "of it; give the run that was re-ranked, and what was made of it"
        )
    points = depth_curve(load_qrels(qrels), before, after, measure)
    hits = [len(ranking.hits) for ranking in before]
    pairs = [sum(min(point.depth, count) for count in hits) / max(1, len(hits)) for point in points]
    return DepthCurve(measure, tuple(points), tuple(pairs), rate)
