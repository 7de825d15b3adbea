"""Queries and relevance judgments from a click log, corrected for position bias."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from secondlook.progress import Progress, ProgressCallback


@dataclass(frozen=True, slots=True)
class ClicksResult:
    """What a click log gave."""

    output: Path
    impressions: int
    queries: int
    """With a judgment."""
    logged_queries: int
    relevant: int
    """Documents judged relevant, over all queries."""
    not_relevant: int
    eta: float
    """Examination falls as 1/rank^eta."""
    error: float | None
    """The standard error of eta; None where eta was given."""

    def summary(self) -> str:
        """Counts, and the position bias."""
        how = "as given" if self.error is None else f"± {self.error:.2f}, from the log"
        return (
            f"{self.output}: {self.queries:,} of {self.logged_queries:,} queries, "
            f"{self.relevant:,} documents relevant and {self.not_relevant:,} not, from "
            f"{self.impressions:,} impressions; attention falls as 1/rank^{self.eta:.2f} ({how})"
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "impressions": self.impressions,
            "queries": self.queries,
            "relevant": self.relevant,
            "not relevant": self.not_relevant,
            "eta": self.eta,
            "error": self.error,
        }


def clicks(
    log: str | Path,
    output: str | Path,
    *,
    log_format: str = "auto",
    eta: float | None = None,
    relevant: float = 0.2,
    looks: float = 2.0,
    progress: Progress | ProgressCallback | None = None,
) -> ClicksResult:
    """Write queries and judgments in BEIR's layout, derived from the impressions of a click log.

    `log_format` is jsonl, tsv, or one that an installed package adds; `auto` tells the first two
    apart. `eta` is the position bias, by default estimated from the log. A document is relevant
    from this corrected click rate on, and is judged if it was examined at least `looks` times.

    Queries and judgments that were made before are replaced; queries that were added to them, and
    other files of judgments, stay. Raises Unwritable where those of `output` are people's.
    """
    from secondlook.data.clicks import read_clicks
    from secondlook.data.origin import refuse_to_overwrite_judged, write_made
    from secondlook.train.clicks import ClickSettings, Tally, judge

    refuse_to_overwrite_judged(Path(output))
    read = read_clicks(Path(log), log_format)
    impressions = as_progress(progress).track(read, "reading", "impressions")
    tally = Tally.of(impressions)
    judged = judge(tally, ClickSettings(eta=eta, relevant=relevant, looks=looks))
    write_made(Path(output), judged.queries, judged.qrels, judged.origin)
    grades = [grade for graded in judged.qrels.values() for grade in graded.values()]
    return ClicksResult(
        Path(output),
        tally.impressions,
        len(judged.queries),
        len(tally.queries),
        sum(grades),
        len(grades) - sum(grades),
        judged.seen.eta,
        judged.seen.error if eta is None else None,
    )
