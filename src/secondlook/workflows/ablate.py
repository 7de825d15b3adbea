"""What each part of a recipe is worth: every variant trained, measured and tested."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.evaluate.ablation import Ablated
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.train.ablation import Variant
    from secondlook.train.groups import Groups
    from secondlook.train.run import Job


@dataclass(frozen=True, slots=True)
class AblationPlan:
    """What would be trained, and how long that would take."""

    variants: Mapping[str, Variant]
    seeds: int
    seconds: float
    """Of one training of the whole recipe: the others take as long, or a share of it by pairs."""

    @property
    def all_seconds(self) -> float:
        """Of all trainings."""
        from secondlook.train.ablation import WHOLE

        whole = self.variants[WHOLE].pairs
        pairs = sum(variant.pairs for variant in self.variants.values())
        return self.seconds * pairs / whole * self.seeds

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
            f"{len(self.variants)} recipes with {self.seeds} seed{'s' * (self.seeds > 1)}, the "
            f"whole one about {duration(self.seconds)}: in all about "
            f"{duration(self.all_seconds)}, without what cannot be estimated"
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
    pairs: Sequence[int] = (),
    parts: bool = True,
    base: str | Path | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> AblationResult:
    """Train and measure the recipe, the recipe without each part, and a baseline with each part.

    All re-rankers go into the folder `output`, with the table ablations.md; `test` are groups with
    every candidate. With `negatives`, the full recipe is also trained with these numbers of
    negatives, and the sweep is drawn in negatives.svg; with `pairs`, with these numbers of training
    pairs, drawn in pairs.svg. Without `parts` there are only the full recipe and the sweeps.
    Interrupted, the same call goes on.
    """
    import numpy as np

    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.ablation import ablation
    from secondlook.workflows.ablation_curves import draw, sweeps

    folder = Path(output)
    trainings = AblationTrainings.of(
        recipe,
        folder,
        test,
        measure=measure,
        negatives=negatives,
        pairs=pairs,
        parts=parts,
        base=base,
        data=data,
        device=device,
    )
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in trainings.variants}
    first = trainings.whole.recipe.seed
    for seed in range(first, first + seeds):
        for name in trainings.variants:
            figures[name].append(trainings.values(name, seed, as_progress(progress)))
        result = AblationResult(folder, measure, ablation(figures, np.random.default_rng(0)))
        write_at_once(folder / "ablations.md", result.summary())
        if drawn := sweeps(trainings.variants, negatives, pairs):
            result = replace(result, not_plotted=draw(result, drawn))
    return result


def plan(
    recipe: str | Path,
    *,
    seeds: int = 2,
    negatives: Sequence[int] = (),
    pairs: Sequence[int] = (),
    parts: bool = True,
    base: str | Path | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> AblationPlan:
    """Name what `ablate` would train, and estimate its time by trying a few steps."""
    from secondlook.train.ablation import WHOLE
    from secondlook.train.estimate import estimate

    trainings = AblationTrainings.of(
        recipe,
        "ablations",
        "",
        negatives=negatives,
        pairs=pairs,
        parts=parts,
        base=base,
        data=data,
        device=device,
    )
    whole, variants = trainings.whole, trainings.variants
    with as_progress(progress).training() as watch:
        watch.say("timing a few training steps of the full recipe on this machine")
        seconds = estimate(replace(whole, recipe=variants[WHOLE].recipe)).seconds
    return AblationPlan(variants, seeds, seconds)


@dataclass(frozen=True, slots=True)
class AblationTrainings:
    """The trainings of one recipe's variants, in one folder; what is measured once is kept.

    `NAME.SEED` is a trained re-ranker, `NAME.SEED.json` its figures, `NAME.SEED.trec.gz` its run
    over the test queries. A training that is killed goes on where it was.
    """

    whole: Job
    variants: Mapping[str, Variant]
    output: Path
    test: Path
    measure: str
    _fingerprints: dict[Path, str] = field(default_factory=dict, repr=False, compare=False)
    """Of group files, which can be large: each is read once for all variants."""

    @classmethod
    def of(
        cls,
        recipe: str | Path,
        output: str | Path,
        test: str | Path,
        *,
        measure: str = "nDCG@10",
        negatives: Sequence[int] = (),
        pairs: Sequence[int] = (),
        parts: bool = True,
        base: str | Path | None = None,
        data: str | Path | None = None,
        device: str | None = None,
    ) -> AblationTrainings:
        """The whole recipe and all variants of it; nothing is trained yet."""
        from secondlook.train.ablation import WHOLE, variants, work_of
        from secondlook.train.recipe import read_recipe
        from secondlook.train.run import job, prepare_data

        path, folder = Path(recipe), Path(output)
        beside = path.parent if data is None else Path(data)
        whole = job(read_recipe(path), beside, folder / WHOLE, base=base, device=device)
        prepare_data(whole)
        made = variants(whole.recipe, work_of(whole), negatives, pairs, parts=parts)
        return cls(whole, made, folder, Path(test), measure)

    def ranker(self, name: str, seed: int) -> Path:
        """Where the re-ranker is, or will be."""
        return self.output / f"{slug(name)}.{seed}"

    def kept(self, name: str, seed: int) -> dict[str, Any] | None:
        """The figures of a training that is over; None of one that is not."""
        return read_figures(self.output, name, seed)

    def can_begin(self, name: str, seed: int) -> bool:
        """Whether the files are there that the whole recipe's noise reduction makes for it."""
        return all(path.is_file() for path in self._cleaned(name, seed))

    def values(self, name: str, seed: int, progress: Progress | None = None) -> dict[str, float]:
        """The measure of each test query; the training is run now unless an earlier call did.

        Raises OutputInUse where another process is at the same training.
        """
        with as_progress(progress).training() as watch:
            watch.say(f"{name}, seed {seed}")
            work = replace(self._job(name, seed), watch=watch)
            return _measured(work, self.test, self.measure, self._made_of(work))

    def _made_of(self, work: Job) -> dict[str, Any]:
        """What the figures of a training depend on."""
        from secondlook.model.checkpoint import base_name
        from secondlook.train.recipe import resolved

        files = (*work.data.train, *([work.data.validate] if work.data.validate else []))
        return {
            "recipe": resolved(work.recipe),
            "base": base_name(work.base),
            "training set": {path.name: self._fingerprint(path) for path in files},
            "test": self._fingerprint(self.test),
            "measure": self.measure,
        }

    def _fingerprint(self, path: Path) -> str:
        from secondlook.train.groups import Groups

        if path not in self._fingerprints:
            self._fingerprints[path] = Groups([path]).fingerprint
        return self._fingerprints[path]

    def _job(self, name: str, seed: int) -> Job:
        """The training of one variant; files that the whole cleaned with this seed are read."""
        from secondlook.train.run import job

        return job(
            self.variants[name].recipe.model_copy(update={"seed": seed}),
            self.whole.data.folder,
            self.ranker(name, seed),
            base=self.whole.base,
            device=self.whole.device,
            more=self._cleaned(name, seed),
        )

    def _cleaned(self, name: str, seed: int) -> list[Path]:
        return [_cleaned(self.output, seed) / file for file in self.variants[name].cleaned]


def read_figures(output: str | Path, name: str, seed: int) -> dict[str, Any] | None:
    """The figures of a variant that was trained in this folder; None where that is not over.

    `values` are the measure by query, `history` what each phase measured on the way, `precision`
    is what it was trained and tested in.
    """
    path = Path(output) / f"{slug(name)}.{seed}.json"
    if not path.is_file():
        return None
    figures: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return figures


def slug(name: str) -> str:
    """The variant's name as files have it."""
    return re.sub(r"\W+", "-", name.replace("−", "without").replace("+", "with")).lower()


def _cleaned(output: Path, seed: int) -> Path:
    return output / f"cleaned.{seed}"


def _measured(job: Job, test: Path, measure: str, made_of: Mapping[str, Any]) -> dict[str, float]:
    """The ranker's values per query; trained and measured now, or by an earlier call."""
    from secondlook.data.lock import locked
    from secondlook.errors import SecondlookError
    from secondlook.train.groups import Groups

    ranker = job.output
    done = ranker.with_name(f"{ranker.name}.json")
    if not done.is_file():
        ranker.parent.mkdir(parents=True, exist_ok=True)
        with locked(ranker, "the same command goes on where it was"):
            _train_and_measure(job, Groups([test]), measure, made_of, done)
    kept = json.loads(done.read_text("utf-8"))
    recorded = kept["made of"]  # earlier versions recorded neither base nor training set
    if changed := [name for name in recorded if recorded[name] != made_of[name]]:
        raise SecondlookError(
            f"{done} was made with another {' and another '.join(changed)}; choose another "
            f"folder, or remove it and {ranker}"
        )
    values: dict[str, float] = kept["values"]
    return values


def _train_and_measure(
    job: Job, groups: Groups, measure: str, made_of: Mapping[str, Any], done: Path
) -> None:
    """Train, write the run over the test groups, and at last the figures: then it is over."""
    from shutil import rmtree

    from secondlook.data.durable import write_at_once
    from secondlook.data.run import Run
    from secondlook.score.ranker import Ranker
    from secondlook.score.torch_backend import device_of
    from secondlook.train.ranker import precision_of_ranking
    from secondlook.train.run import histories, train
    from secondlook.train.validation import Validation

    train(job, resume=True)
    test = Validation(groups, measure)
    precision = precision_of_ranking(job.recipe, device_of(job.device))  # as it was validated
    rankings = test.rankings(Ranker.load(job.output, device=job.device, precision=precision))
    Run(rankings, job.output.name).write(job.output.with_name(f"{job.output.name}.trec.gz"))
    _keep_cleaned(job)
    figures = {
        "made of": made_of,
        "precision": precision,
        "values": dict(test.measured(rankings).per_query[test.measure]),
        "history": [{"phase": phase, "points": points} for phase, points in histories(job)],
    }
    write_at_once(done, json.dumps(figures) + "\n")
    rmtree(job.work, ignore_errors=True)  # the phases' checkpoints; the ranker stays


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
