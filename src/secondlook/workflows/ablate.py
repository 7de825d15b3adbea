"""What each part of a recipe is worth: every variant trained, measured and tested."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.evaluate.ablation import Ablated
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.train.ablation import Variant
    from secondlook.train.run import Job


@dataclass(frozen=True, slots=True)
class AblationPlan:
    """What would be trained, and how long that would take."""

    variants: Mapping[str, Variant]
    seeds: int
    seconds: float
    """Of one training of the whole recipe: the others take as long, at most."""

    @property
    def all_seconds(self) -> float:
        """Of all trainings."""
        return self.seconds * len(self.variants) * self.seeds

    def summary(self) -> str:
        """A table of the variants, and the time."""
        from secondlook.train.budget import duration

        lines = ["| recipe | phases | steps | pairs |", "|---|---|---|---|"]
        for name, variant in self.variants.items():
            phases: list[str] = [phase.phase for phase in variant.recipe.phases]
            if variant.cleaned:
                phases.append("on data that the whole cleaned")
            lines.append(
                f"| {name} | {', '.join(phases)} | {variant.steps:,} | {variant.pairs:,} |"
            )
        lines.append(
            f"{len(self.variants)} recipes with {self.seeds} seeds, each about "
            f"{duration(self.seconds)}: in all about {duration(self.all_seconds)}, without what "
            "cannot be estimated"
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        variants = [
            {"recipe": name, "steps": variant.steps, "pairs": variant.pairs}
            for name, variant in self.variants.items()
        ]
        return {"variants": variants, "seeds": self.seeds, "seconds": self.all_seconds}


@dataclass(frozen=True, slots=True)
class AblationResult:
    """The table of all variants."""

    output: Path
    measure: str
    rows: tuple[Ablated, ...]
    not_plotted: str = ""
    """Why a sweep over negatives has no picture."""

    def summary(self) -> str:
        """The table, in Markdown."""
        from secondlook.evaluate.ablation import markdown

        return markdown(self.rows, self.measure)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        from dataclasses import asdict

        return {"measure": self.measure, "rows": [asdict(row) for row in self.rows]}


def ablate(
    recipe: str | Path,
    output: str | Path,
    test: str | Path,
    *,
    seeds: int = 2,
    measure: str = "nDCG@10",
    negatives: Sequence[int] = (),
    base: str | Path | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> AblationResult:
    """Train and measure the recipe, the recipe without each part, and a baseline with each part.

    All re-rankers go into the folder `output`, with the table ablations.md; `test` are groups with
    every candidate. With `negatives`, the full recipe is also trained with these numbers of
    negatives, and the sweep is drawn in negatives.svg. Interrupted, the same call goes on.
    """
    import numpy as np

    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.ablation import ablation

    folder = Path(output)
    whole, variants = _variants(recipe, folder, negatives, base, data, device)
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in variants}
    for seed in range(whole.recipe.seed, whole.recipe.seed + seeds):
        for name, variant in variants.items():
            with as_progress(progress).training() as watch:
                watch.say(f"{name}, seed {seed}")
                job = _job(variant, seed, folder / f"{_slug(name)}.{seed}", whole)
                figures[name].append(_measured(replace(job, watch=watch), Path(test), measure))
        result = AblationResult(folder, measure, ablation(figures, np.random.default_rng(0)))
        write_at_once(folder / "ablations.md", result.summary())
        if negatives:
            result = replace(result, not_plotted=_draw_sweep(result, variants, negatives))
    return result


def plan(
    recipe: str | Path,
    *,
    seeds: int = 2,
    negatives: Sequence[int] = (),
    base: str | Path | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> AblationPlan:
    """Name what `ablate` would train, and estimate its time by trying a few steps."""
    from secondlook.train.ablation import WHOLE
    from secondlook.train.estimate import estimate

    whole, variants = _variants(recipe, Path("ablations"), negatives, base, data, device)
    with as_progress(progress).training() as watch:
        watch.say("timing a few training steps of the full recipe on this machine")
        seconds = estimate(replace(whole, recipe=variants[WHOLE].recipe)).seconds
    return AblationPlan(variants, seeds, seconds)


def _variants(
    recipe: str | Path,
    output: Path,
    negatives: Sequence[int],
    base: str | Path | None,
    data: str | Path | None,
    device: str | None,
) -> tuple[Job, Mapping[str, Variant]]:
    """The training of the whole recipe, and all that are compared."""
    from secondlook.train.ablation import WHOLE, variants, work_of
    from secondlook.train.recipe import read_recipe
    from secondlook.train.run import job

    path = Path(recipe)
    folder = path.parent if data is None else Path(data)
    whole = job(read_recipe(path), folder, output / WHOLE, base=base, device=device)
    return whole, variants(whole.recipe, work_of(whole), negatives)


def _draw_sweep(
    result: AblationResult, variants: Mapping[str, Variant], negatives: Sequence[int]
) -> str:
    """The whole recipe's figure over its number of negatives; gives why it was not drawn."""
    from secondlook.errors import MissingExtra
    from secondlook.evaluate.curve import plotted
    from secondlook.train.ablation import WHOLE, negatives_of, swept

    names = {WHOLE, *map(swept, negatives)}
    points = sorted(
        (negatives_of(variants[row.name].recipe), row.mean, row.deviation or 0)
        for row in result.rows
        if row.name in names
    )
    path = result.output / "negatives.svg"
    try:
        with plotted(path, "negatives of each query", result.measure) as axes:
            counts, means, deviations = zip(*points, strict=True)
            axes.errorbar(
                counts, means, deviations, marker="o", capsize=3, label="mean ± deviation"
            )
            axes.set_xticks(counts)
    except MissingExtra as missing:
        return str(missing)
    return ""


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.replace("−", "without").replace("+", "with")).lower()


def _job(variant: Variant, seed: int, output: Path, whole: Job) -> Job:
    """The training of one recipe; files that the whole cleaned with this seed are read here."""
    from secondlook.train.run import job

    work = job(
        variant.recipe.model_copy(update={"seed": seed}),
        whole.data.folder,
        output,
        base=whole.base,
        device=whole.device,
    )
    cleaned = tuple(_cleaned(output.parent, seed) / name for name in variant.cleaned)
    return replace(work, data=replace(work.data, train=(*work.data.train, *cleaned)))


def _cleaned(output: Path, seed: int) -> Path:
    return output / f"cleaned.{seed}"


def _measured(job: Job, test: Path, measure: str) -> dict[str, float]:
    """The ranker's values per query; trained and measured now, or by an earlier call."""
    from shutil import rmtree

    from secondlook.data.durable import write_at_once
    from secondlook.errors import SecondlookError
    from secondlook.score.ranker import Ranker
    from secondlook.train.groups import Groups
    from secondlook.train.recipe import resolved
    from secondlook.train.run import train
    from secondlook.train.validation import Validation

    groups, ranker = Groups([test]), job.output
    made_of = {"recipe": resolved(job.recipe), "test": groups.fingerprint, "measure": measure}
    done = ranker.with_name(f"{ranker.name}.json")
    if done.is_file():
        kept = json.loads(done.read_text("utf-8"))
        if kept["made of"] != made_of:
            raise SecondlookError(
                f"{done} was made with another recipe, test set or measure; choose another folder, "
                "or remove it"
            )
        values: dict[str, float] = kept["values"]
        return values
    train(job, resume=True)
    values = Validation(groups, measure).per_query(Ranker.load(ranker, device=job.device))
    _keep_cleaned(job)
    write_at_once(done, json.dumps({"made of": made_of, "values": values}) + "\n")
    rmtree(job.work, ignore_errors=True)  # the phases' checkpoints; the ranker stays
    return values


def _keep_cleaned(job: Job) -> None:
    """What its noise reduction left, for the recipes that learn from it."""
    from shutil import copyfile

    from secondlook.train.ablation import cleaned_file
    from secondlook.train.settings import DenoisePhase

    for at, phase in enumerate(job.recipe.phases):
        if isinstance(phase, DenoisePhase):
            folder = _cleaned(job.output.parent, job.recipe.seed)
            folder.mkdir(exist_ok=True)
            left = job.work / f"{at + 1:02}-{phase.phase}.work" / "denoised.parquet"
            copyfile(left, folder / cleaned_file(at))
