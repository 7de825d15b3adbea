"""Whether a tuned ranker helps, and whether it was the tuning that helped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.evaluate.compare import AgainstBase, drawn_seed, judge, read_sides
from secondlook.evaluate.verdict import sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from secondlook.evaluate.comparison import Comparison, Comparisons
    from secondlook.types import Qrels, Ranking

    Run = tuple[str, Sequence[Ranking]]

_SAME = (
    "the tuned ranker is the untuned one: training was not kept and fusion adds nothing, so there "
    "is nothing to test against it"
)
_WORDS = {
    "helps": "tuning helped: the tuned ranker is better than the untuned one",
    "hurts": "tuning HURT: the tuned ranker is worse than the untuned one",
    "cannot tell": "the tuned ranker is not shown to be better than the untuned one",
}
_FIRST_STAGE_ALONE = (
    "But this order is the first stage's: on the validation queries its scores alone ranked best, "
    "so the re-ranker's have no weight. Search without the re-ranker, and save its time"
)


@dataclass(frozen=True, slots=True)
class TunedComparison:
    """The tests of a tuned ranker; p-values are corrected (Holm) over all that were made."""

    first_stage: Comparisons
    """Other runs, the untuned ranker, if it is another, and last the tuned one, each against the
    first stage."""
    gain: Comparisons | None
    """The tuned ranker against the untuned one; None where they are the same."""
    first_stage_alone: bool = False
    """Whether the tuned ranker's fusion gives all weight to the first stage."""

    @property
    def tuned(self) -> Comparison:
        """Against the first stage, which decides whether it is put in place."""
        return self.first_stage.runs[-1]

    def gain_sentence(self) -> str:
        """What tuning itself brought, in words."""
        if self.gain is None:
            return _SAME
        (run,) = self.gain.runs
        found = f"{_WORDS[run.verdict]}: {sentence(run, self.gain).partition(': ')[2]}"
        return f"{found}. {_FIRST_STAGE_ALONE}" if self.first_stage_alone else found


def compare_tuned(
    qrels: Qrels,
    first_stage: Run,
    untuned: Run | None,
    tuned: Run,
    measures: Sequence[str],
    *,
    rng: np.random.Generator | None = None,
    texts: Mapping[str, str] | None = None,
    first_stage_alone: bool = False,
    others: Sequence[Run] = (),
) -> TunedComparison:
    """Test all pairs of the three runs, or of two where the tuned ranker is the untuned one.

    `others` are further runs that are tested against the first stage.
    """
    rankers = [tuned] if untuned is None else [untuned, tuned]
    base, *sides = read_sides(qrels, [first_stage, *others, *rankers], measures)
    tried = [AgainstBase(base, sides, drawn_seed(rng))]
    if untuned is None:
        return TunedComparison(judge(qrels, tried, measures, texts=texts)[0], None)
    tried.append(AgainstBase(sides[-2], sides[-1:], drawn_seed(rng)))
    against_first_stage, gain = judge(qrels, tried, measures, texts=texts)
    return TunedComparison(against_first_stage, gain, first_stage_alone)
