"""`secondlook fuse`: what the first look's scores add to a ranker's."""

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
    help="What the first look's scores add to a ranker's.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
def tune(
    ranker: Annotated[Path, typer.Argument(help="The ranker's folder; it is changed.")],
    first: Annotated[str, typer.Option(help="The first look's run.")],
    raw: Annotated[str, typer.Option(help="What `rerank --raw` made of it with this ranker.")],
    qrels: Annotated[str, typer.Option(help="The judgments.")],
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="What to tune for, as ir-measures spells it.")
    ] = "nDCG@10",
    folds: Annotated[int, typer.Option(help="Of the cross-validation.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Deals the queries into folds.", min=0)] = 0,
    curve: Annotated[
        Path | None, typer.Option(help="Draw the measure over the weight: a .png or .svg.")
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only measure; leave the ranker as it is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Find the best mix of both looks, and store it in the ranker.

    Tries weights of the first look's score on three scales (min-max, z, and reciprocal ranks) and,
    for a ranker that reads documents in windows, ways to pool them. The figures are for queries
    that the choice has not seen. A mix must be better than either look by more than two standard
    errors, else the better look stays alone. From then on `rerank` and `search` rank so, without
    being told.

    [bold]Example[/bold]

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
    ranker: Annotated[Path, typer.Argument(help="The ranker's folder; it is changed.")],
) -> None:
    """Let a ranker decide alone again.

    [bold]Example[/bold]

      secondlook fuse clear my.ranker
    """
    from secondlook.model.checkpoint import open_checkpoint, write_settings

    settings = open_checkpoint(ranker).settings
    write_settings(ranker, settings.model_copy(update={"fusion": None}))
    typer.echo(f"{ranker}: decides alone")


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
        f"{found['measure']} over {found['queries']:,} queries, on those the choice had not seen",
        f"  first look       {found['first']:.4f}",
        f"  ranker           {found['ranker']:.4f}",
        f"  both             {found['fused']:.4f}  ({gain:+.4f}, p = {found['p']:.3f})",
    ]
    for name, own in found.get("poolings", {}).items():
        lines.append(f"    {name:<34} ranker {own['ranker']:.4f}  both {own['fused']:.4f}")
    chosen = (
        f"{found['weight']:.2f} of the first look, scale {found['scale']}"
        if best.fusion
        else "the ranker alone"
    )
    pooled = f", windows pooled by {found['pooling']}" if best.pooling else ""
    lines.append(f"{ranker}: {chosen}{pooled}{'' if found['stored'] else ' (not stored)'}")
    if found["stored"] and settings.calibration and _with(settings, best).calibration is None:
        lines.append(
            "its calibration was for another pooling; scores have the scale of the reference pairs "
            "until it is calibrated anew"
        )
    return "\n".join(lines)


def _draw(path: Path, tried: Tuning, best: Way, measure: str) -> None:
    """The mean over all queries for each weight, one line for each scale."""
    from secondlook.cli.plot import plotted

    means = dict(zip(tried.ways, tried.values.mean(axis=1), strict=True))
    own = {way.fusion: mean for way, mean in means.items() if way.pooling == best.pooling}
    with plotted(path, "weight of the first look", measure) as axes:
        for scale in dict.fromkeys(fusion.scale for fusion in own if fusion):
            points = [(f.weight, mean) for f, mean in own.items() if f and f.scale == scale]
            axes.plot(*zip((0.0, own[None]), *points, strict=True), marker=".", label=scale)
