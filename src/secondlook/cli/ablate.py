"""`secondlook ablate`: what each part of a recipe is worth."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.training_bar import watched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.evaluate.ablation import Ablated
    from secondlook.train.ablation import Variant
    from secondlook.train.run import Job


def ablate(
    recipe: Annotated[Path, typer.Argument(help="The full recipe: a TOML file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output folder for all trained re-rankers.")
    ],
    test: Annotated[Path, typer.Option(help="Test groups, as written by `secondlook mine --all`.")],
    seeds: Annotated[
        int,
        typer.Option(
            help="Random seeds per recipe: the recipe's own and the following ones.", min=1
        ),
    ] = 2,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Measure, in ir-measures notation.")
    ] = ("nDCG@10"),
    negatives: Annotated[
        list[int] | None,
        typer.Option(
            help="Also train the full recipe with N negatives per query; repeat for a sweep.", min=1
        ),
    ] = None,
    base: Annotated[str | None, typer.Option(help="Base model; default: the recipe's.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the recipe's data files; default: the recipe's folder."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Device: cpu, cuda or mps.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print what would be trained and the estimated time, then stop."
        ),
    ] = False,
) -> None:
    """Measure what each part of a training recipe contributes.

    Trains the full recipe, the recipe without each of its parts, and a plain baseline with each
    part added. All use the same random seeds, the same number of training pairs and the same
    number of pairs per step; all but those without false-negative filtering train on the same
    data. The table, laid out as table 1 of DR-BERT, has the mean and standard deviation over seeds
    and tests each recipe against the full one (Holm-adjusted). A sweep over negatives is also
    plotted, as in its figure 5. If interrupted, the same command resumes.

    [bold]Example[/bold]

      secondlook ablate my.toml -o ablations --test groups/test.parquet --negatives 1 --negatives 5
    """
    from secondlook.train.ablation import WHOLE, negatives_of, swept, variants, work_of
    from secondlook.train.recipe import read_recipe
    from secondlook.train.run import job

    folder = data or recipe.parent
    whole = job(read_recipe(recipe), folder, output / WHOLE, base=base, device=device)
    made = variants(whole.recipe, work_of(whole), negatives or ())
    if dry_run:
        _show_plan(made, seeds, whole)
        return
    import numpy as np

    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.ablation import ablation, markdown

    figures: dict[str, list[dict[str, float]]] = {name: [] for name in made}
    for extra in range(seeds):
        for name, variant in made.items():
            seed = whole.recipe.seed + extra
            typer.echo(f"{name}, seed {seed}", err=True)
            work = _job(variant, seed, output / f"{_slug(name)}.{seed}", whole)
            figures[name].append(_measured(work, test, measure))
        known = {name: values for name, values in figures.items() if values}
        rows = ablation(known, np.random.default_rng(0))
        table = markdown(rows, measure)
        write_at_once(output / "ablations.md", table)
        if negatives:
            names = {WHOLE, *map(swept, negatives)}
            _draw_sweep(
                output / "negatives.svg",
                [(negatives_of(made[row.name].recipe), row) for row in rows if row.name in names],
                measure,
            )
    typer.echo(table)


def _draw_sweep(path: Path, rows: Sequence[tuple[int, Ablated]], measure: str) -> None:
    """The whole recipe's figure over its number of negatives, which stands before each row."""
    from secondlook.cli.plot import plotted
    from secondlook.errors import MissingExtra

    points = sorted((count, row.mean, row.deviation or 0) for count, row in rows)
    try:
        with plotted(path, "negatives of each query", measure) as axes:
            counts, means, deviations = zip(*points, strict=True)
            axes.errorbar(
                counts, means, deviations, marker="o", capsize=3, label="mean ± deviation"
            )
            axes.set_xticks(counts)
    except MissingExtra as missing:
        typer.echo(f"the sweep is not plotted: {missing}", err=True)


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.replace("−", "without").replace("+", "with")).lower()


def _show_plan(made: Mapping[str, Variant], seeds: int, whole: Job) -> None:
    """What would be trained, and how long about: all take as long as the whole, at most."""
    from secondlook.train.budget import duration
    from secondlook.train.plan import estimate

    typer.echo("| recipe | phases | steps | pairs |\n|---|---|---|---|")
    for name, one in made.items():
        phases: list[str] = [phase.phase for phase in one.recipe.phases]
        if one.cleaned:
            phases.append("on data that the whole cleaned")
        typer.echo(f"| {name} | {', '.join(phases)} | {one.steps:,} | {one.pairs:,} |")
    typer.echo("timing a few training steps of the full recipe on this machine", err=True)
    seconds = estimate(replace(whole, recipe=next(iter(made.values())).recipe)).seconds
    typer.echo(
        f"{len(made)} recipes with {seeds} seeds, each about {duration(seconds)}: in all about "
        f"{duration(seconds * len(made) * seeds)}, without what cannot be estimated"
    )


def _job(variant: Variant, seed: int, place: Path, whole: Job) -> Job:
    """The training of one recipe; files that the whole cleaned with this seed are found here."""
    from secondlook.train.run import job

    work = job(
        variant.recipe.model_copy(update={"seed": seed}),
        whole.data.folder,
        place,
        base=whole.base,
        device=whole.device,
    )
    cleaned = tuple(_cleaned(place.parent, seed) / name for name in variant.cleaned)
    return replace(work, data=replace(work.data, train=(*work.data.train, *cleaned)))


def _cleaned(output: Path, seed: int) -> Path:
    return output / f"cleaned.{seed}"


def _measured(work: Job, test: Path, measure: str) -> dict[str, float]:
    """The ranker's values per query; trained and measured now, or by an earlier call."""
    from shutil import rmtree

    from secondlook.data.durable import write_at_once
    from secondlook.errors import SecondlookError
    from secondlook.score.ranker import Ranker
    from secondlook.train.groups import Groups
    from secondlook.train.recipe import resolved
    from secondlook.train.run import train
    from secondlook.train.validation import Validation

    groups, place = Groups([test]), work.output
    made_of = {"recipe": resolved(work.recipe), "test": groups.fingerprint, "measure": measure}
    done = place.with_name(f"{place.name}.json")
    if done.is_file():
        kept = json.loads(done.read_text("utf-8"))
        if kept["made of"] != made_of:
            raise SecondlookError(
                f"{done} was made with another recipe, test set or measure; choose another folder, "
                "or remove it"
            )
        values: dict[str, float] = kept["values"]
        return values
    with watched() as watch:
        train(replace(work, watch=watch), resume=True)
    values = Validation(groups, measure).per_query(Ranker.load(place, device=work.device))
    _keep_cleaned(work)
    write_at_once(done, json.dumps({"made of": made_of, "values": values}) + "\n")
    rmtree(work.work, ignore_errors=True)  # the phases' checkpoints; the ranker stays
    return values


def _keep_cleaned(work: Job) -> None:
    """What its noise reduction left, for the recipes that learn from it."""
    from shutil import copyfile

    from secondlook.train.ablation import cleaned_file
    from secondlook.train.settings import DenoisePhase

    for at, phase in enumerate(work.recipe.phases):
        if isinstance(phase, DenoisePhase):
            folder = _cleaned(work.output.parent, work.recipe.seed)
            folder.mkdir(exist_ok=True)
            left = work.work / f"{at + 1:02}-{phase.phase}.work" / "denoised.parquet"
            copyfile(left, folder / cleaned_file(at))
