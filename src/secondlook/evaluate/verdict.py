"""What a comparison says, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.evaluate.objections import SMALL_SHARE, missing_told

if TYPE_CHECKING:
    from collections.abc import Collection

    from secondlook.evaluate.comparison import Comparison, Comparisons, Difference
    from secondlook.evaluate.objections import Reason

ENOUGH_JUDGED = 0.9
"""Below this share of judged results in the top ten, the figures are doubtful."""


def sentence(run: Comparison, among: Comparisons, allowed: Collection[Reason] = ()) -> str:
    """The verdict on a run and its reason; it begins with the verdict."""
    if run.identical:
        return (
            "cannot tell: the runs are identical (same documents, same scores) on all "
            f"{among.queries} judged queries"
        )
    void = run.voided_by(allowed)
    told = [one for one in run.differences if one.verdict != "cannot tell"]
    if void and told:
        return f"cannot tell: {', '.join(map(_change, told))}, but {void.sentence}"
    verdict = run.verdict_allowing(allowed)
    if verdict == "cannot tell":
        return f"cannot tell: {_doubt(run.differences[0], run)}"
    for_it = [one for one in told if one.verdict == verdict]
    against = [one for one in told if one.verdict != verdict]
    said = f"{verdict}: " + ", ".join(map(_change, for_it))
    if against:
        said += f"; but {', '.join(map(_change, against))}"
    first = for_it[0]
    return (
        f"{said}. By {first.measure}, {first.wins} queries gain, {first.losses} lose and "
        f"{first.hurt:.0%} lose more than .1"
    )


def warnings(found: Comparisons) -> list[str]:
    """What makes the figures doubtful, apart from what is objected to."""
    said = _unjudged(found)
    missing = [(found.base, found.missing), *((run.run, run.missing) for run in found.runs)]
    said += [
        missing_told(name, count, found.queries)
        for name, count in missing
        if 0 < count <= SMALL_SHARE * found.queries
    ]
    said += [
        f"{found.queries} judged queries are only {run.queries} different ones for {run.run}; "
        "copies are counted once"
        for run in found.runs
        if 0 < found.queries - run.queries <= SMALL_SHARE * found.queries
    ]
    return said


def _unjudged(found: Comparisons) -> list[str]:
    """Few results are judged where judgments name only answers: that is no fault of a run."""
    few = [run for run in found.runs if run.judged_share < ENOUGH_JUDGED]
    if few and found.only_relevant:
        told = (
            f"the judgments name only relevant documents, {found.only_relevant:.1f} for a query on "
            "average; every other result counts as irrelevant"
        )
        return [told]
    return [
        f"only {run.judged_share:.0%} of the top 10 of {run.run} are judged "
        f"({found.judged_share:.0%} of {found.base}); the others count as irrelevant, so a run "
        "that finds what no one has judged looks worse than it is. Judge these, or look at "
        "nDCG(judged_only=True)@10 too"
        for run in few
    ]


def figure_rows(run: Comparison, among: Comparisons) -> list[tuple[str, list[str]]]:
    """The figures as lines of a table: a name, and a cell for each measure."""
    all_of = run.differences
    return [
        ("base", [f"{one.base:.4f}" for one in all_of]),
        ("new", [f"{one.new:.4f}" for one in all_of]),
        ("difference", [f"{one.delta:+.4f}" for one in all_of]),
        (
            f"{100 * (1 - among.alpha):g}% interval",
            [f"{one.low:+.3f} … {one.high:+.3f}" for one in all_of],
        ),
        ("t-test p", [f"{one.t_test:.4f}" for one in all_of]),
        ("randomisation p", [f"{one.randomisation:.4f}" for one in all_of]),
        ("the same, by Holm", [f"{one.adjusted:.4f}" for one in all_of]),
        ("wins/ties/losses", [f"{one.wins}/{one.ties}/{one.losses}" for one in all_of]),
        ("lose more than .1", [f"{one.hurt:.0%}" for one in all_of]),
        ("verdict", [one.verdict for one in all_of]),
    ]


def _change(one: Difference) -> str:
    return f"{one.measure} {one.base:.3f} → {one.new:.3f} ({one.delta:+.3f}, p {_p(one.adjusted)})"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def _doubt(one: Difference, run: Comparison) -> str:
    if one.wins == one.losses == 0:
        return f"{one.measure} is the same ({one.base:.3f}) for each of {run.queries} queries"
    said = (
        f"{one.measure} {one.base:.3f} → {one.new:.3f} ({one.delta:+.3f}) may be chance "
        f"(p {_p(one.adjusted)})"
    )
    if run.queries == 1:
        return f"{said}; one query does not show how much queries differ"
    if one.detectable and one.detectable > abs(one.delta):
        said += (
            f". {run.queries} queries would show a difference of {one.detectable:.3f} or more in "
            "8 of 10 cases"
        )
    if one.more_queries is None:
        return f"{said}; this one is too small to be told with any number of queries"
    return (
        f"{said}; if it really is {one.delta:+.3f}, about {one.more_queries:,} more judged queries "
        "would tell"
    )
