"""A curve as a picture, beside the figures of a table; and any picture written to a file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from secondlook.errors import MissingExtra, WrongArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def refuse_undrawable(what: str = "drawing a curve") -> None:
    """Raise MissingExtra where nothing can be drawn; long work asks before it begins."""
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError as error:
        raise MissingExtra("report", what) from error


def refuse_picture(path: Path) -> None:
    """Raise where no picture can be drawn, or none of this name; asked before the work begins."""
    refuse_undrawable()
    if path.suffix not in (".png", ".svg"):
        raise WrongArgument(f"{path} is no name for a picture; end it in .png or .svg")


@contextmanager
def plotted(path: Path, across: str, up: str) -> Iterator[Axes]:
    """Axes with these labels to draw lines on; the file is written when the block ends."""
    refuse_picture(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    yield axes
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend()
    write_picture(figure, path)


def write_picture(figure: Figure, path: Path) -> None:
    """As SVG or PNG, by the file's name; the same figure makes the same bytes, at any time."""
    from matplotlib import rc_context

    undated = {"Date": None} if path.suffix == ".svg" else None
    half = path.with_name(f".{path.name}.half")
    try:
        with rc_context({"svg.hashsalt": "secondlook"}):
            figure.savefig(half, format=path.suffix[1:], dpi=120, metadata=undated)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
