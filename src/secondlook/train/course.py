"""Training on examples in a fixed order, by transformers' Trainer; a kill costs a few steps.

For networks that know their own losses: `forward` takes a gathered batch and gives them by name.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
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
    """Of them, at most so many in one forward; the rest is accumulated."""
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
        """Examples in one forward; the last of a step has fewer where they do not come out even."""
        return ceil(self.batch / ceil(self.batch / self.at_once))

    @property
    def shown(self) -> int:
        """Examples in all, those of other processes too."""
        return self.steps * self.batch * processes.count()


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
    counts: Callable[[Mapping[str, Tensor]], Mapping[str, float]]
    """Of gathered examples: the losses that the network gives for them, and how many terms (words,
    say) each is the mean of. A step's loss is the mean over all its terms, in however many
    forwards."""


def teach(
    network: nn.Module, exercise: TrainingExamples, place: Place, device: torch.device
) -> list[dict[str, Any]]:
    """Train, or go on where a killed run last saved, to the same weights; gives what was logged.

    Raises SecondlookError where the training diverged.
    """
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
    if not all(weight.isfinite().all() for weight in network.parameters()):
        raise _diverged("weights are not finite", state.global_step)
    return list(state.log_history)


def _diverged(what: str, step: int) -> SecondlookError:
    return SecondlookError(f"{what} at step {step}: the training diverged; lower `learning_rate`")


def _arguments(course: Course, run: Path, place: Place, device: torch.device) -> TrainingArguments:
    return training_arguments(
        place,
        run,
        device,
        steps=course.steps,
        warmup=course.warmup,
        per_device_train_batch_size=course.batch,
        learning_rate=course.learning_rate,
        lr_scheduler_type="linear",
        weight_decay=course.weight_decay,
        bf16=precision_of(course.precision, device) == "bf16",
        save_steps=course.save_every or max(1, course.steps // 10),
        logging_steps=max(1, course.steps // 100),
        logging_nan_inf_filter=False,
    )


class _OrderedTrainer(Trainer):
    """Takes the examples in the order they are given, and accumulates a step's gradients itself.

    Trainer's own accumulation knows only forwards of one size, and takes the loss of any network
    whose `forward` has keywords of any name to be that of the whole step.
    """

    def __init__(
        self,
        network: nn.Module,
        arguments: TrainingArguments,
        exercise: TrainingExamples,
        watch: Watch,
    ) -> None:
        self._exercise = exercise
        super().__init__(
            model=network,
            args=arguments,
            train_dataset=exercise.shown,
            data_collator=self._gathered,
            callbacks=[SavesInTime(), _Teller(watch)],
        )
        self.remove_callback(PrinterCallback)

    def _get_train_sampler(self, train_dataset: Any = None) -> SequentialSampler:  # noqa: ANN401 - theirs
        return SequentialSampler(self._exercise.shown)

    def _gathered(self, examples: list[Any]) -> dict[str, list[Any]]:
        """A step's examples, forward by forward, and the part of each loss that each makes."""
        size = self._exercise.course.forward
        some = [examples[first : first + size] for first in range(0, len(examples), size)]
        parts = list(map(self._exercise.gather, some))
        counts = list(map(self._exercise.counts, parts))
        whole = {name: max(1.0, sum(one[name] for one in counts)) for name in counts[0]}
        return {"parts": parts, "shares": [{n: one[n] / whole[n] for n in one} for one in counts]}

    def training_step(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """One step's gradients: those of the mean over its terms."""
        model.train()
        parts, shares = inputs["parts"], inputs["shares"]
        total = torch.zeros((), device=self.args.device)
        for part, share in zip(parts, shares, strict=True):
            last = part is parts[-1]
            with nullcontext() if last else self.accelerator.no_sync(model):
                with self.compute_loss_context_manager():
                    means = model(**self._prepare_inputs(part))
                    loss = torch.stack([means[name] * of_it for name, of_it in share.items()]).sum()
                self.accelerator.backward(loss)
            total += loss.detach()
        if not total.isfinite():
            raise _diverged(f"the loss is {total.item()}", self.state.global_step + 1)
        return total


class _Teller(MarksWhole):
    """Tells the watcher what happens, too."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """One more step."""
        losses = [logged["loss"] for logged in state.log_history[-1:] if "loss" in logged]
        self._watch.step(args.per_device_train_batch_size, {"loss": losses[0]} if losses else {})
