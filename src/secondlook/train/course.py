"""Training on examples in a fixed order, by transformers' Trainer; a kill costs a few steps.

For networks that know their own loss: `forward` takes a gathered batch and gives a `loss`.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from safetensors.torch import load_model
from torch.utils.data import Dataset, SequentialSampler
from transformers import PrinterCallback, Trainer

from secondlook.data.durable import write_at_once
from secondlook.data.lock import locked
from secondlook.errors import SecondlookError
from secondlook.train import processes
from secondlook.train.arguments import training_arguments
from secondlook.train.ranker import precision_of
from secondlook.train.saving import SavesInTime
from secondlook.train.states import MarksWhole, last_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import torch
    from torch import Tensor, nn
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from secondlook.progress import Watch
    from secondlook.train.phase import Place
    from secondlook.train.settings import AdaptPhase, CourseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How long and how fast."""

    steps: int
    learning_rate: float
    batch: int
    """Examples per step and process."""
    at_once: int
    """Of them, in one forward; the rest is accumulated."""
    warmup: float
    weight_decay: float
    precision: Literal["auto", "fp32", "bf16"]
    save_every: int | None
    """Steps; None is ten times in all."""

    @classmethod
    def of(cls, settings: AdaptPhase | CourseSettings, examples: int) -> Self:
        """The course that the settings mean for so many examples, shared by all processes."""
        per_epoch = ceil(examples / (settings.batch * processes.count()))
        return cls(
            steps=settings.max_steps or ceil(settings.epochs * per_epoch),
            learning_rate=settings.learning_rate,
            batch=settings.batch,
            at_once=settings.at_once,
            warmup=settings.warmup,
            weight_decay=settings.weight_decay,
            precision=settings.precision,
            save_every=settings.save_every,
        )

    @property
    def forward(self) -> int:
        """Examples in one forward."""
        return min(self.at_once, self.batch)

    @property
    def accumulated(self) -> int:
        """Forwards in a step."""
        return ceil(self.batch / self.forward)

    @property
    def shown(self) -> int:
        """Examples in all, those of other processes too."""
        return self.steps * self.forward * self.accumulated * processes.count()


@contextmanager
def claimed(output: Path, job: Mapping[str, Any]) -> Iterator[Path]:
    """A work folder beside `output`, removed once all went well.

    A killed run of the same job finds there what it had saved; another job's is removed. Raises
    OutputInUse where another process is at work on the same output.
    """
    folder = output.with_name(f"{output.name}.work")
    kept, text = folder / "job.json", json.dumps(job, sort_keys=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(output, f"what was last saved is kept in {folder}; the same command goes on there"):
        if kept.is_file() and kept.read_text("utf-8") != text:
            rmtree(folder)
        folder.mkdir(exist_ok=True)
        if not kept.is_file():
            write_at_once(kept, text)
        yield folder
        rmtree(folder)


def held_out(count: int, most: int, seed: int, too_few: str) -> tuple[list[int], list[int]]:
    """Which of so many are kept out, a tenth of them at most, and which are learned from.

    Raises SecondlookError with the complaint `too_few` where a tenth is none.
    """
    kept_out = min(most, count // 10)
    if not kept_out:
        raise SecondlookError(too_few)
    order = np.random.default_rng(seed).permutation(count).tolist()
    return order[:kept_out], order[kept_out:]


class Shown(Dataset[Any]):
    """All that is shown in the whole training, in order: epoch after epoch, each shuffled."""

    def __init__(
        self, example: Callable[[int, int], Any], items: Sequence[int], count: int, seed: int
    ) -> None:
        self._example, self._items, self._count, self._seed = example, items, count, seed
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> Any:  # noqa: ANN401 - whatever the network learns from
        epoch, at = divmod(place, len(self._items))
        if epoch != self._epoch:
            rng = np.random.default_rng((self._seed, epoch))
            self._epoch, self._order = epoch, rng.permutation(len(self._items))
        return self._example(self._items[self._order[at]], epoch)


@dataclass(frozen=True, slots=True)
class TrainingExamples:
    """What is gone through."""

    course: Course
    shown: Shown
    gather: Callable[[list[Any]], dict[str, Tensor]]
    """Examples as the network reads them."""
    name: str
    """Where in the place's run folder it is saved."""
    doing: str
    """What the watcher is told."""


def teach(
    network: nn.Module, exercise: TrainingExamples, place: Place, device: torch.device
) -> list[dict[str, Any]]:
    """Train, or go on where a killed run last saved, to the same weights; gives what was logged."""
    course = exercise.course
    run = place.run / exercise.name
    trainer = _OrderedTrainer(
        network, _arguments(course, run, place, device), exercise, place.watch
    )
    last, state = last_whole(run)
    place.watch.begin(exercise.doing, course.steps, done=state.global_step if state else 0)
    if state is not None and state.global_step >= course.steps:
        load_model(network, f"{last}/model.safetensors")
    else:
        trainer.train(resume_from_checkpoint=str(last) if last else None)
        state = trainer.state
    return list(state.log_history)


def _arguments(course: Course, run: Path, place: Place, device: torch.device) -> TrainingArguments:
    return training_arguments(
        place,
        run,
        device,
        steps=course.steps,
        warmup=course.warmup,
        per_device_train_batch_size=course.forward,
        gradient_accumulation_steps=course.accumulated,
        learning_rate=course.learning_rate,
        lr_scheduler_type="linear",
        weight_decay=course.weight_decay,
        bf16=precision_of(course.precision, device) == "bf16",
        save_steps=course.save_every or max(1, course.steps // 10),
        logging_steps=max(1, course.steps // 100),
    )


class _OrderedTrainer(Trainer):
    """Takes the examples in the order they are given."""

    def __init__(
        self,
        network: nn.Module,
        arguments: TrainingArguments,
        exercise: TrainingExamples,
        watch: Watch,
    ) -> None:
        self._shown = exercise.shown
        super().__init__(
            model=network,
            args=arguments,
            train_dataset=exercise.shown,
            data_collator=exercise.gather,
            callbacks=[SavesInTime(), _Teller(watch)],
        )
        self.remove_callback(PrinterCallback)

    def _get_train_sampler(self, train_dataset: Any = None) -> SequentialSampler:  # noqa: ANN401 - theirs
        return SequentialSampler(self._shown)


class _Teller(MarksWhole):
    """Tells the watcher what happens, too."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """One more step."""
        examples = args.per_device_train_batch_size * args.gradient_accumulation_steps
        losses = [logged["loss"] for logged in state.log_history[-1:] if "loss" in logged]
        self._watch.step(examples, {"loss": losses[0]} if losses else {})
