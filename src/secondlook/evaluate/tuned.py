"""Whether a tuned ranker helps, and whether it was the tuning that helped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secondlook.evaluate.compare import compare
from secondlook.evaluate.significance import holm
from secondlook.evaluate.verdict import sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from secondlook.evaluate.comparison import Comparison, Comparisons, Difference
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
    """The untuned ranker, if it is another, and the tuned one, each against the first stage."""
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
) -> TunedComparison:
    """Test all pairs of the three runs, or of two where the tuned ranker is the untuned one."""
    if untuned is None:
        alone = compare(qrels, first_stage, [tuned], measures, rng=rng, texts=texts)
        return TunedComparison(alone, None)
    both = compare(qrels, first_stage, [untuned, tuned], measures, rng=rng, texts=texts)
    gain = compare(qrels, untuned, [tuned], measures, rng=rng, texts=texts)
    corrected = corrected_over_all([both, gain])
    return TunedComparison(corrected[0], corrected[1], first_stage_alone)


def corrected_over_all(families: Sequence[Comparisons]) -> list[Comparisons]:
    """The comparisons with Holm's correction over all of them, not each alone."""
    p_values = [
        difference.randomisation
        for family in families
        for run in family.runs
        for difference in run.differences
    ]
    adjusted = iter(holm(p_values))

    def told(difference: Difference, alpha: float) -> Difference:
        p = next(adjusted)
        verdict = difference.verdict if p <= alpha else "cannot tell"
        return replace(difference, adjusted=p, verdict=verdict)

    return [
        replace(
            family,
            runs=tuple(
                replace(run, differences=tuple(told(one, family.alpha) for one in run.differences))
                for run in family.runs
            ),
        )
        for family in families
    ]
