"""`secondlook fuse`: fusion of first-stage and re-ranking scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secondlook.cli.help_layout import VerbApp

if TYPE_CHECKING:
    from secondlook.encode.settings import WindowSettings
    from secondlook.model.settings import RankerSettings
    from secondlook.score.tuning import Tuning, Way

app = VerbApp(
    name="fuse",
    help="Combine first-stage and re-ranking scores (score fusion).",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
def tune(
    ranker: Annotated[Path, typer.Argument(help="Folder of the re-ranker; it is modified.")],
    first: Annotated[str, typer.Option(help="First-stage run.")],
    raw: Annotated[
        str,
        typer.Option(help="The same run with this re-ranker's raw scores, from `rerank --raw`."),
    ],
    qrels: Annotated[str, typer.Option(help="Relevance judgments.")],
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Measure to tune for, in ir-measures notation.")
    ] = "nDCG@10",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the split into folds.", min=0)] = 0,
    curve: Annotated[
        Path | None, typer.Option(help="Plot the measure over the weight to this .png or .svg.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Only measure; do not modify the re-ranker.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tune the fusion of first-stage and re-ranking scores, and store it with the re-ranker.

    Tries weights of the first-stage score with three normalisations (min-max, z-score, reciprocal
    rank) and, for a re-ranker that reads documents in windows, several poolings. The reported
    figures are cross-validated. A fusion is kept only if it beats both of its inputs by more than
    two standard errors; otherwise the better input is used alone. `rerank`, `search` and `serve`
    then apply what was stored.

    [bold]Examples[/bold]

      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
          --raw -o raw.trec
      secondlook fuse tune my.ranker --first bm25.trec --raw raw.trec --qrels qrels/dev.tsv
    """
    from secondlook.data import read_qrels, read_run
    from secondlook.model.checkpoint import open_checkpoint, write_settings
    from secondlook.score import tuning
    from secondlook.score.default_scale import reference_pairs, store_scale
    from secondlook.score.ranker import Ranker

    settings = open_checkpoint(ranker).settings
    windows = settings.encode.windows
    looks = tuning.read_looks(read_run(first), read_run(raw), windows=windows is not None)
    tried = tuning.tune(
        looks, read_qrels(qrels), tuning.ways(windows), measure, folds=folds, seed=seed
    )
    best, found = _figures(tried)
    if curve is not None:
        _draw(curve, tried, best, measure)
    if not dry_run:
        changed = _with(settings, best)
        write_settings(ranker, changed)
        if changed.calibration is None:
            store_scale(ranker, Ranker.load(ranker), reference_pairs())
    found |= {"measure": measure, "stored": not dry_run} | _spelled(best)
    typer.echo(json.dumps(found) if as_json else _report(ranker, found, settings, best))


@app.command()
def clear(
    ranker: Annotated[Path, typer.Argument(help="Folder of the re-ranker; it is modified.")],
) -> None:
    """Remove the stored fusion, so that the re-ranker's scores are used alone.

    [bold]Example[/bold]

      secondlook fuse clear my.ranker
    """
    from secondlook.model.checkpoint import open_checkpoint, write_settings

    settings = open_checkpoint(ranker).settings
    write_settings(ranker, settings.model_copy(update={"fusion": None}))
    typer.echo(f"{ranker}: fusion removed")


def _figures(tried: Tuning) -> tuple[Way, dict[str, Any]]:
    """The way to take, and what the looks and their mix reach."""
    from secondlook.evaluate.significance import t_test

    _, first = tried.among(lambda way: way.simple and way.fusion is not None)
    _, alone = tried.among(lambda way: way.fusion is None)
    best, fused = tried.among(lambda _: True)
    better = max(first.held_out, alone.held_out, key=lambda values: values.mean())
    found: dict[str, Any] = {
        "queries": len(better),
        "first": first.held_out.mean(),
        "ranker": alone.held_out.mean(),
        "fused": fused.held_out.mean(),
        "p": t_test(fused.held_out - better),
    }
    poolings = dict.fromkeys(way.pooling for way in tried.ways)
    if len(poolings) > 1:
        found["poolings"] = {_pooling(some): _by_pooling(tried, some) for some in poolings}
    return best, found


def _by_pooling(tried: Tuning, pooling: WindowSettings | None) -> dict[str, float]:
    _, alone = tried.among(lambda way: way.pooling == pooling and way.fusion is None)
    _, fused = tried.among(lambda way: way.pooling == pooling)
    return {"ranker": alone.held_out.mean(), "fused": fused.held_out.mean()}


def _with(settings: RankerSettings, best: Way) -> RankerSettings:
    """The settings with this pooling and fusion; another pooling makes a calibration void."""
    from secondlook.model.settings import FusionSettings

    fusion = best.fusion and FusionSettings(weight=best.fusion.weight, scale=best.fusion.scale)
    encode = settings.encode.model_copy(update={"windows": best.pooling})
    kept = settings.calibration if encode == settings.encode else None
    changes = {"fusion": fusion, "encode": encode, "calibration": kept}
    return settings.model_copy(update=changes)


def _pooling(pooling: WindowSettings | None) -> str:
    if pooling is None or pooling.pooling != "top":
        return "whole" if pooling is None else pooling.pooling
    return f"top {', '.join(f'{weight:.2g}' for weight in pooling.weights)}"


def _spelled(best: Way) -> dict[str, Any]:
    fusion = best.fusion
    return {
        "weight": fusion.weight if fusion else 0.0,
        "scale": fusion.scale if fusion else None,
        "pooling": _pooling(best.pooling),
    }


def _report(ranker: Path, found: dict[str, Any], settings: RankerSettings, best: Way) -> str:
    gain = found["fused"] - max(found["first"], found["ranker"])
    lines = [
        f"{found['measure']} over {found['queries']:,} queries, cross-validated",
        f"  first stage      {found['first']:.4f}",
        f"  re-ranker        {found['ranker']:.4f}",
        f"  fused            {found['fused']:.4f}  ({gain:+.4f}, p = {found['p']:.3f})",
    ]
    for name, own in found.get("poolings", {}).items():
        lines.append(f"    {name:<34} re-ranker {own['ranker']:.4f}  fused {own['fused']:.4f}")
    chosen = (
        f"{found['weight']:.2f} first-stage weight, scale {found['scale']}"
        if best.fusion
        else "the re-ranker alone"
    )
    pooled = f", windows pooled by {found['pooling']}" if best.pooling else ""
    lines.append(f"{ranker}: {chosen}{pooled}{'' if found['stored'] else ' (not stored)'}")
    if found["stored"] and settings.calibration and _with(settings, best).calibration is None:
        lines.append(
            "its calibration was for another pooling; scores use the scale of the reference pairs "
            "until it is calibrated again"
        )
    return "\n".join(lines)


def _draw(path: Path, tried: Tuning, best: Way, measure: str) -> None:
    """The mean over all queries for each weight, one line for each scale."""
    from secondlook.cli.plot import plotted

    means = dict(zip(tried.ways, tried.values.mean(axis=1), strict=True))
    own = {way.fusion: mean for way, mean in means.items() if way.pooling == best.pooling}
    with plotted(path, "weight of the first stage", measure) as axes:
        for scale in dict.fromkeys(fusion.scale for fusion in own if fusion):
            points = [(f.weight, mean) for f, mean in own.items() if f and f.scale == scale]
            axes.plot(*zip((0.0, own[None]), *points, strict=True), marker=".", label=scale)
