"""What a comparison says, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.evaluate.compare import ENOUGH_JUDGED

if TYPE_CHECKING:
    from secondlook.evaluate.compare import Comparison, Comparisons, Difference

FEW_QUERIES = 25


def sentence(run: Comparison, among: Comparisons) -> str:
    """The verdict on a run and its reason; it begins with the verdict."""
    if run.verdict == "cannot tell":
        return f"cannot tell: {_doubt(run.differences[0], among)}"
    for_it = [one for one in run.differences if one.verdict == run.verdict]
    against = [one for one in run.differences if one.verdict not in (run.verdict, "cannot tell")]
    said = f"{run.verdict}: " + ", ".join(map(_change, for_it))
    if against:
        said += f"; but {', '.join(map(_change, against))}"
    first = for_it[0]
    return (
        f"{said}. By {first.measure}, {first.wins} queries gain, {first.losses} lose and "
        f"{first.hurt:.0%} lose more than .1"
    )


def warnings(found: Comparisons) -> list[str]:
    """What makes the figures doubtful."""
    said = [
        f"only {run.judged_share:.0%} of the top 10 of {run.run} are judged "
        f"({found.judged_share:.0%} of {found.base}); the others count as irrelevant, so a run "
        "that finds what no one has judged looks worse than it is. Judge these, or look at "
        "-m 'nDCG(judged_only=True)@10' too"
        for run in found.runs
        if run.judged_share < ENOUGH_JUDGED
    ]
    missing = [(found.base, found.missing), *((run.run, run.missing) for run in found.runs)]
    said += [
        f"{name} has no results for {count} of {found.queries} judged queries; each counts as zero"
        for name, count in missing
        if count
    ]
    if found.queries < FEW_QUERIES:
        said.append(
            f"{found.queries} judged queries are few; even a large difference may be theirs alone"
        )
    return said


def figure_rows(run: Comparison, among: Comparisons) -> list[tuple[str, list[str]]]:
    """The figures as lines of a table: a name, and a cell for each measure."""
    all_of = run.differences
    return [
        ("base", [f"{one.base:.4f}" for one in all_of]),
        ("new", [f"{one.new:.4f}" for one in all_of]),
        ("difference", [f"{one.delta:+.4f}" for one in all_of]),
        (
            f"{1 - among.alpha:.0%} interval",
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


def _doubt(one: Difference, among: Comparisons) -> str:
    said = (
        f"{one.measure} {one.base:.3f} → {one.new:.3f} ({one.delta:+.3f}) may be chance "
        f"(p {_p(one.adjusted)})"
    )
    if one.detectable:
        said += (
            f". {among.queries} queries would show a difference of {one.detectable:.3f} or more in "
            "8 of 10 cases"
        )
    if one.more_queries is None:
        return f"{said}; this one is too small to be told with any number of queries"
    return (
        f"{said}; if it really is {one.delta:+.3f}, about {one.more_queries:,} more judged queries "
        "would tell"
    )
