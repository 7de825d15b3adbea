"""Evaluations and comparisons as tables for a console of rich, or as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.evaluate.verdict import figure_rows, sentence, warnings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from secondlook.evaluate.comparison import Comparison, Comparisons
    from secondlook.evaluate.evaluation import Evaluation
    from secondlook.evaluate.objections import Reason


def as_text(tables: RenderableType, width: int = 100) -> str:
    """What a console of this width would show, without colours."""
    from io import StringIO

    from rich.console import Console

    sheet = Console(file=StringIO(), width=width, color_system=None, highlight=False)
    with sheet.capture() as text:
        sheet.print(tables)
    return "\n".join(line.rstrip() for line in text.get().splitlines())


def comparison_tables(found: Comparisons, allowed: Collection[Reason] = ()) -> RenderableType:
    """A table for each run, the verdict under it with what is objected to, and warnings."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for run in found.runs:
        parts.append(_comparison_table(run, found))
        verdict = run.verdict_allowing(allowed)
        style = {"helps": "bold green", "hurts": "bold red"}.get(verdict, "bold yellow")
        said = Text(sentence(run, found, allowed))
        said.stylize(style, 0, len(verdict))
        parts.append(said)
        for objection in run.objections:
            how = "Allowed" if objection.code in allowed else "Objection"
            parts.append(Text(f"{how} ({objection.code}): {objection.sentence}", style="yellow"))
    parts += [Text(f"Warning: {warning}", style="yellow") for warning in warnings(found)]
    return Group(*parts)


def _comparison_table(run: Comparison, found: Comparisons) -> Table:
    """A column for each measure: that fits a narrow terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    copied = f"{run.queries} different of " if run.queries < found.queries else ""
    title = Text(f"{run.run} against {found.base}, {copied}{found.queries} judged queries")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("")
    for difference in run.differences:
        table.add_column(Text(difference.measure), justify="right", no_wrap=True)
    for name, cells in figure_rows(run, found):
        table.add_row(name, *cells)
    return table


def evaluation_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """A row for each run."""
    some = next(iter(evaluations.values()))
    table = _table(["run"], [*some.means, "missing", "unjudged"])
    table.caption = (
        f"{some.judged} judged queries. missing: those without results in the run, counted as "
        "zero. unjudged: queries of the run without judgments, ignored."
    )
    cells = _cells([evaluation.means for evaluation in evaluations.values()])
    for (run, evaluation), values in zip(evaluations.items(), cells, strict=True):
        table.add_row(_name(run), *values, str(evaluation.missing), str(evaluation.unjudged))
    return table


def query_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """A row for each query; the rows of a query, one for each run, stand together."""
    several = len(evaluations) > 1
    some = next(iter(evaluations.values()))
    table = _table(["query", "run"] if several else ["query"], some.means)
    for query in next(iter(some.per_query.values())):
        cells = _cells(
            [
                {measure: evaluation.per_query[measure][query] for measure in some.means}
                for evaluation in evaluations.values()
            ]
        )
        shown = query
        for run, values in zip(evaluations, cells, strict=True):
            table.add_row(_name(shown), *([_name(run)] if several else []), *values)
            shown = ""
        if several:
            table.add_section()
    return table


def _table(names: Iterable[str], numbers: Iterable[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for number in numbers:
        table.add_column(_name(number), justify="right", no_wrap=True)
    return table


def _cells(runs: Sequence[Mapping[str, float]]) -> list[list[Text]]:
    """The values of each run, measure by measure; the best in bold, unless all are as good."""
    from rich.text import Text

    rows: list[list[Text]] = [[] for _ in runs]
    for measure in runs[0]:
        values = [run[measure] for run in runs]
        decimals = 0 if measure.startswith("Num") else 4
        for row, value in zip(rows, values, strict=True):
            best = value == max(values) > min(values)
            row.append(Text(f"{value:.{decimals}f}", style="bold" if best else ""))
    return rows


def _name(name: str) -> Text:
    """A file or query by its name, whatever brackets it holds."""
    from rich.text import Text

    return Text(name)
