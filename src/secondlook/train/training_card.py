"""What a person sees of a training: the curve, and the card with data, figures and licences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.model.card import card
from secondlook.train.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from secondlook.model.settings import RankerSettings
    from secondlook.train.phase import TrainData

_LICENCE = """
## Licence

The weights are derived from `{base}` and from the data named above, and are bound by the licences
of both. MS MARCO, for one, is for non-commercial research only. Say here which licence you give.
"""


def draw_curve(path: Path, phases: Sequence[tuple[str, Sequence[Mapping[str, float]]]]) -> bool:
    """Loss and validation of each phase over its steps, as a PNG; False without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(6 * len(phases), 4), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(1, len(phases), squeeze=False)[0]
    for axes, (name, history) in zip(grid, phases, strict=True):
        axes.set_title(name)
        axes.set_xlabel("step")
        measures = {key for point in history for key in point} - {"step", "loss"}
        _line(axes, history, "loss", "tab:blue")
        axes.set_ylabel("loss", color="tab:blue")
        for measure in sorted(measures):
            twin = axes.twinx()
            _line(twin, history, measure, "tab:orange", marker="o")
            twin.set_ylabel(measure, color="tab:orange")
    figure.savefig(path, dpi=120)
    return True


def _line(
    axes: object, history: Sequence[Mapping[str, float]], key: str, colour: str, marker: str = ""
) -> None:
    points = [(point["step"], point[key]) for point in history if key in point]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, color=colour, marker=marker)  # type: ignore[attr-defined]


def full_card(
    settings: RankerSettings, recipe: str, data: TrainData, *, cut: str | None, curve: bool
) -> str:
    """README.md of a trained ranker: the checkpoint's own card, and what it was made of."""
    lines = [card(settings).rstrip(), "", "## Data", ""]
    files = [("training", path) for path in data.train]
    files += [("validation", data.validate)] if data.validate else []
    for use, path in files:
        groups = Groups([path])
        lines.append(f"- {use}: `{path.name}`, {len(groups):,} queries, {groups.fingerprint}")
        for about in groups.about:
            lines += [f"  - {key}: {value}" for key, value in about.items()]
    if cut:
        lines.append(f"- {cut}")
    if curve:
        lines += ["", "![loss and validation over steps](curve.png)"]
    lines += ["", "## Recipe", "", "```toml", recipe.rstrip(), "```"]
    return "\n".join(lines) + "\n" + _LICENCE.format(base=settings.lineage.base)
