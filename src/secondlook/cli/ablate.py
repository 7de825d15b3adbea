"""`secondlook ablate`: what each part of a recipe is worth."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.train import watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.evaluate.ablation import Ablated
    from secondlook.train.recipe import Recipe


def ablate(
    recipe: Annotated[Path, typer.Argument(help="The whole recipe, a TOML file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of all trainings.")],
    test: Annotated[
        Path, typer.Option(help="Groups to measure on, as `secondlook mine --all` writes them.")
    ],
    seeds: Annotated[
        int,
        typer.Option(
            help="Train each recipe so often, with the recipe's seed and the next.", min=1
        ),
    ] = 2,
    measure: Annotated[str, typer.Option("--measure", "-m", help="As ir-measures spells it.")] = (
        "nDCG@10"
    ),
    negatives: Annotated[
        list[int] | None,
        typer.Option(help="Train the whole with so many negatives too; repeat for a sweep.", min=1),
    ] = None,
    base: Annotated[str | None, typer.Option(help="Instead of the recipe's base.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where the recipe's files are, if not beside it.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or mps.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only name what would be trained.")
    ] = False,
) -> None:
    """Train a recipe without each of its parts, and the plain one with each, and compare.

    All with the same seeds and as many training steps. The table, as DR-BERT's table 1, has the
    mean and deviation over seeds and tests each recipe against the whole, corrected for their
    number; a sweep over negatives is drawn, as its figure 5. Interrupted, the same command goes on
    where it stopped.

    [bold]Example[/bold]

      secondlook ablate my.toml -o ablations --test groups/test.parquet --negatives 1 --negatives 5
    """
    from secondlook.train.ablation import WHOLE, negatives_of, swept, variants
    from secondlook.train.recipe import read_recipe

    made = variants(read_recipe(recipe), negatives or ())
    if dry_run:
        for name, one in made.items():
            typer.echo(f"{name}: {', '.join(phase.phase for phase in one.phases)}")
        return
    import numpy as np

    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.ablation import ablation, markdown

    figures: dict[str, list[dict[str, float]]] = {name: [] for name in made}
    for extra in range(seeds):
        for name, one in made.items():
            seeded = one.model_copy(update={"seed": one.seed + extra})
            place = output / f"{_slug(name)}.{seeded.seed}"
            typer.echo(f"{name}, seed {seeded.seed}", err=True)
            values = _measured(seeded, place, data or recipe.parent, test, measure, base, device)
            figures[name].append(values)
        known = {name: values for name, values in figures.items() if values}
        rows = ablation(known, np.random.default_rng(0))
        table = markdown(rows, measure)
        write_at_once(output / "ablations.md", table)
        if negatives:
            names = {WHOLE, *map(swept, negatives)}
            _draw_sweep(
                output / "negatives.svg",
                [(negatives_of(made[row.name]), row) for row in rows if row.name in names],
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
        typer.echo(f"the sweep is not drawn: {missing}", err=True)


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.replace("−", "without").replace("+", "with")).lower()


def _measured(
    recipe: Recipe,
    place: Path,
    data: Path,
    test: Path,
    measure: str,
    base: str | None,
    device: str | None,
) -> dict[str, float]:
    """The ranker's values per query; trained and measured now, or by an earlier call."""
    from shutil import rmtree

    from secondlook.data.durable import write_at_once
    from secondlook.errors import SecondlookError
    from secondlook.score.ranker import Ranker
    from secondlook.train.groups import Groups
    from secondlook.train.recipe import resolved
    from secondlook.train.run import job, train
    from secondlook.train.validation import Validation

    groups = Groups([test])
    made_of = {"recipe": resolved(recipe), "test": groups.fingerprint, "measure": measure}
    done = place.with_name(f"{place.name}.json")
    if done.is_file():
        kept = json.loads(done.read_text("utf-8"))
        if kept["made of"] != made_of:
            raise SecondlookError(
                f"{done} is of another recipe, test or measure; give another folder, or remove it"
            )
        values: dict[str, float] = kept["values"]
        return values
    with watched() as watch:
        work = job(recipe, data, place, base=base, watch=watch, device=device)
        train(work, resume=True)
    values = Validation(groups, measure).per_query(Ranker.load(place, device=device))
    write_at_once(done, json.dumps({"made of": made_of, "values": values}) + "\n")
    rmtree(work.work, ignore_errors=True)  # the phases' checkpoints; the ranker stays
    return values
