"""A recipe becomes a ranker, one phase after the other, each from the checkpoint of the last.

Everything on the way lies in a work folder beside the ranker: `00-start`, `01-pointwise`, … are
whole checkpoints, and a phase's folder ending in `.work` is where it was when it was killed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfile, copytree, rmtree
from typing import TYPE_CHECKING, Any

from secondlook.data.durable import write_at_once
from secondlook.data.lock import locked
from secondlook.errors import MalformedInput, MissingExtra, SecondlookError

try:
    import accelerate  # noqa: F401 - what the phases need, said at once
    import torch
except ImportError as error:
    raise MissingExtra("train", "training a ranker") from error

from secondlook.model.checkpoint import (
    CARD,
    base_name,
    locate,
    open_checkpoint,
    read_tokenizer,
    refuse_to_replace,
    replacing,
)
from secondlook.model.network import load_model, new_joint, new_warm, save_model
from secondlook.model.settings import Phase as LineagePhase
from secondlook.model.warm import Warm
from secondlook.progress import Unwatched
from secondlook.score.default_scale import store_scale
from secondlook.score.ranker import Ranker
from secondlook.train import processes
from secondlook.train.base_heads import store_heads
from secondlook.train.denoise import DENOISED
from secondlook.train.groups import Groups
from secondlook.train.phase import Outcome, Place, TrainData
from secondlook.train.phases import ALONE, run_phase
from secondlook.train.recipe import NAME, Recipe, resolved
from secondlook.train.scale import scale_pairs
from secondlook.train.settings import AdaptPhase, DenoisePhase, RankingPhase, WarmPhase
from secondlook.train.training_card import draw_curve, full_card
from secondlook.train.triples import is_up_to_date, write_triple_groups
from secondlook.train.truncation import texts_cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.model.network import Model
    from secondlook.model.settings import RankerSettings
    from secondlook.progress import Watch
    from secondlook.train.settings import PhaseSettings

_OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class Job:
    """A recipe with the places it is used in."""

    recipe: Recipe
    output: Path
    base: str | Path
    """The recipe's own, or what is taken instead."""
    data: TrainData
    watch: Watch = field(default_factory=Unwatched)
    device: str | None = None
    report_to: tuple[str, ...] = ()
    deadline: float | None = None
    """As `Place.deadline`."""

    @property
    def work(self) -> Path:
        """Where the run lives until it is done, and its phases' checkpoints after."""
        return self.output.with_name(self.output.name + ".work")

    @property
    def named(self) -> Recipe:
        """The recipe with the base it really starts from, without where that lies."""
        return self.recipe.model_copy(update={"base": base_name(self.base)})


def job(
    recipe: Recipe,
    folder: Path,
    output: Path,
    *,
    base: str | Path | None = None,
    watch: Watch | None = None,
    device: str | None = None,
    report_to: tuple[str, ...] = (),
    more: Sequence[Path] = (),
) -> Job:
    """Find the recipe's files in `folder`; raises MalformedInput for one that is not there.

    `more` are group files beside those that the recipe names.
    """
    names = [*recipe.data.train, *([recipe.data.validation] if recipe.data.validation else [])]
    for name in names:
        if not (folder / name).is_file():
            raise MalformedInput(
                folder / name,
                None,
                "the recipe names it and it is not there; make it with `secondlook mine`, or give "
                "the folder that has it as `data`",
            )
    triples = recipe.data.triples
    data = TrainData(
        folder,
        (
            *(folder / name for name in recipe.data.train),
            *([triples.groups_file(folder)] if triples else []),
            *more,
        ),
        folder / recipe.data.validation if recipe.data.validation else None,
    )
    _check_files(recipe, data)
    return Job(recipe, output, base or recipe.base, data, watch or Unwatched(), device, report_to)


def _check_files(recipe: Recipe, data: TrainData) -> None:
    """Refuse a file that a phase names and will not find, before earlier phases have trained."""
    for settings in recipe.phases:
        if isinstance(settings, RankingPhase):
            data.chosen(settings.only, settings.phase)
        elif isinstance(settings, DenoisePhase):
            data = replace(data, train=(Path(DENOISED),))


def prepare_data(job: Job) -> None:
    """Make the group file of the recipe's triples, unless it is there and up to date."""
    triples = job.recipe.data.triples
    if triples is not None and not is_up_to_date(triples, job.data.folder):
        job.watch.say(f"reading {triples.file} into a group file")
        write_triple_groups(triples, job.data.folder)


def train(job: Job, *, resume: bool = False) -> RankerSettings:
    """Run all phases and write the ranker; gives what the ranker says of itself.

    With `resume`, what an earlier run left is continued, to the same result as if it had never
    been interrupted, and a ranker that it finished stays as it is; without it, such a run is not
    touched. Raises CheckpointProblem where anything else is at the output, and OutputInUse where
    another process is training the same ranker.
    """
    processes.join(job.device)
    if not processes.first():
        return _train(replace(job, watch=Unwatched()), resume=resume)
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with locked(
        job.output,
        f"what was last saved is kept in {job.work}; the same with `resume=True` goes on",
    ):
        prepare_data(job)
        return _train(job, resume=resume)


def _train(job: Job, *, resume: bool) -> RankerSettings:
    finished = processes.first() and _claim(job, resume=resume)
    if processes.gather([float(finished)])[0] == [1.0]:  # all do as the first found it
        job.watch.say(f"{job.output} was trained already, and stays as it is")
        return open_checkpoint(job.output).settings
    folder = _begin(job)
    data, outcomes = job.data, []
    for number, settings, done in _trained_phases(job):
        if not done.is_dir():
            job.watch.say(f"phase {number} of {len(job.recipe.phases)}: {settings.phase}")
            _run(job, settings, folder, data, done)
            processes.wait()
        elif processes.first():  # it may have been killed before all of this was removed
            rmtree(_place(job, done).run, ignore_errors=True)
        outcome = _read_outcome(job, done.name, data)
        outcomes.append((settings.phase, outcome))
        folder, data = done, outcome.data
    if processes.first():
        _finish(job, folder, outcomes, data)
    processes.wait()
    return open_checkpoint(job.output).settings


def _trained_phases(job: Job) -> list[tuple[int, PhaseSettings, Path]]:
    """The phases that train: number, settings, and the folder of the checkpoint each makes."""
    return [
        (number, settings, job.work / f"{number:02}-{settings.phase}")
        for number, settings in enumerate(job.recipe.phases, start=1)
        if not isinstance(settings, WarmPhase)
    ]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of a phase beside its checkpoint."""

    data: TrainData
    history: tuple[Mapping[str, float], ...]
    keep: tuple[Path, ...]


def begin(recipe: Recipe, base: str | Path) -> Model:
    """The ranker before its first phase; a new head is the same for the same seed."""
    torch.manual_seed(recipe.seed)
    first = recipe.phases[0]
    if isinstance(first, WarmPhase):
        model = new_warm(base, separate_layers=first.separate_layers, encode=recipe.encode)
        assert isinstance(model.network, Warm)
        if first.cross_attention:
            return model
        return new_warm(base, separate_layers=model.network.layers, encode=recipe.encode)
    folder = locate(base)
    form = open_checkpoint(folder).settings.form if (folder / CARD).is_file() else "joint"
    if form != "joint":
        if recipe.encode:
            raise SecondlookError(
                f"{base} is a {form} ranker, and goes on as it encodes already; leave [encode] out"
            )
        return load_model(base)
    return new_joint(base, recipe.encode)


def _claim(job: Job, *, resume: bool) -> bool:
    """Make the work folder this recipe's own, or see that it is; whether its ranker is finished."""
    kept = job.work / NAME
    files = (*job.data.train, *([job.data.validate] if job.data.validate else []))
    digests = "".join(f"# {path.name} {Groups([path]).fingerprint}\n" for path in files)
    text = resolved(job.named) + digests
    begun = kept.is_file()
    if begun and resume:
        if kept.read_text("utf-8") != text:
            raise SecondlookError(
                f"{kept} is of another recipe or other data than this one, so it cannot be "
                f"continued; give another name for the ranker, or remove {job.work}"
            )
        all_done = all(done.is_dir() for *_, done in _trained_phases(job))
        if all_done and (job.output / CARD).is_file():
            return True
    refuse_to_replace(job.output)
    if begun and not resume:
        raise SecondlookError(
            f"an earlier run left {job.work}; continue it with `resume=True`, or remove it"
        )
    if not begun:
        job.work.mkdir(parents=True, exist_ok=True)
        write_at_once(kept, text)
    return False


def _begin(job: Job) -> Path:
    """The folder with the ranker before its first phase, made by the first process."""
    first = job.recipe.phases[0]
    folder = job.work / ("01-warm" if isinstance(first, WarmPhase) else "00-start")
    if processes.first() and not folder.is_dir():
        model = begin(job.recipe, job.base)
        if isinstance(first, WarmPhase):
            model = _learned(model, "warm", Outcome(model, job.data))
        save_model(model, folder)
        if told := texts_cut(model.tokenizer, model.settings.encode, job.data.train):
            job.watch.say(f"{told}; a longer max_length, or windows, under [encode] reads them")
    processes.wait()
    return folder


def _run(job: Job, settings: PhaseSettings, start: Path, data: TrainData, done: Path) -> None:
    """One phase, from a checkpoint to the next."""
    if settings.phase in ALONE and not processes.first():
        return
    place = _place(job, done)
    if isinstance(settings, AdaptPhase):
        if processes.first():  # the ranker's own checkpoint has no place for them
            store_heads(job.base, place.folder)
        processes.wait()
    outcome = run_phase(settings, load_model(start, untrained_head=True), data, place)
    made = outcome.data
    kept = {
        # what was given is given again, perhaps from another place
        "data": None
        if made == data
        else {
            "train": [_noted(path, job) for path in made.train],
            "validate": _noted(made.validate, job) if made.validate else None,
        },
        "history": [dict(point) for point in outcome.history],
        "keep": [_noted(path, job) for path in outcome.keep],
    }
    if not processes.first():
        return
    write_at_once(place.folder / _OUTCOME, json.dumps(kept))
    save_model(_learned(outcome.model, settings.phase, outcome), done)
    rmtree(place.run, ignore_errors=True)


def _place(job: Job, done: Path) -> Place:
    """Where the phase works that makes the checkpoint `done`."""
    return Place(
        done.with_name(done.name + ".work"),
        job.recipe.seed,
        job.device,
        job.watch,
        job.report_to,
        job.deadline,
    )


def _learned(model: Model, name: str, outcome: Outcome) -> Model:
    phase = LineagePhase(
        name=name,
        data=dict(outcome.learned_from),
        labels=outcome.labels,
        metrics=dict(outcome.metrics),
    )
    lineage = model.settings.lineage.then(phase)
    return replace(model, settings=model.settings.model_copy(update={"lineage": lineage}))


def _noted(path: Path, job: Job) -> str:
    """A path as it is found again, though the work folder has been moved."""
    return str(path.relative_to(job.work) if path.is_relative_to(job.work) else path.absolute())


def _read_outcome(job: Job, name: str, data: TrainData) -> Kept:
    """What the phase left, which was given `data`."""
    kept: dict[str, Any] = json.loads((job.work / f"{name}.work" / _OUTCOME).read_text("utf-8"))
    if made := kept["data"]:
        data = TrainData(
            data.folder,
            tuple(job.work / path for path in made["train"]),
            job.work / made["validate"] if made["validate"] else None,
        )
    return Kept(data, tuple(kept["history"]), tuple(job.work / path for path in kept["keep"]))


def histories(job: Job) -> list[tuple[str, tuple[Mapping[str, float], ...]]]:
    """What each phase measured on the way, while the work folder is there."""
    return [
        (settings.phase, _read_outcome(job, done.name, job.data).history)
        for _, settings, done in _trained_phases(job)
    ]


def _finish(job: Job, last: Path, outcomes: Sequence[tuple[str, Kept]], data: TrainData) -> None:
    """The last checkpoint, with what a person wants to know of it, as the ranker."""
    settings = open_checkpoint(last).settings
    with replacing(job.output) as half:
        copytree(last, half, dirs_exist_ok=True)
        if settings.trained and not settings.calibrated:
            store_scale(half, Ranker.load(half, device=job.device), scale_pairs(data))
        recipe = resolved(job.named, settings.encode)
        (half / NAME).write_text(recipe, encoding="utf-8")
        for _, kept in outcomes:
            for path in kept.keep:
                copyfile(path, half / path.name)
        curves = [(name, kept.history) for name, kept in outcomes if kept.history]
        if curves and not draw_curve(half / "curve.png", curves):
            job.watch.say("no curve was drawn: pip install 'secondlook[report]'")
        (half / "README.md").write_text(
            full_card(
                settings,
                recipe,
                job.data,
                cut=texts_cut(read_tokenizer(half), settings.encode, job.data.train),
                curve=(half / "curve.png").is_file(),
            ),
            encoding="utf-8",
        )
