"""transformers' Trainer, taught to learn from groups and to validate by re-ranking.

A step's groups are scored in sub-batches of like length; when they are too many for memory the
step is cut into parts whose gradients add up to the same.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils.memory import should_reduce_batch_size
from transformers import PrinterCallback, Trainer

from secondlook.errors import SecondlookError
from secondlook.model.warm import Warm
from secondlook.train.average import Average
from secondlook.train.batches import cut, score
from secondlook.train.saving import SavesInTime
from secondlook.train.states import MarksWhole, keep_validated, saved

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from secondlook.encode.settings import WindowSettings
    from secondlook.model.network import CrossEncoder
    from secondlook.progress import Watch
    from secondlook.train.batches import DrawnGroups, EncodedGroup, EncodeGroups, Order
    from secondlook.train.settings import RankingPhase
    from secondlook.train.validation import Validated

_SAVES = 10  # of a phase, at least


@dataclass(frozen=True, slots=True)
class Learning:
    """What is learnt, and how it is told whether it is."""

    settings: RankingPhase
    loss: Callable[[Tensor, EncodedGroup], Tensor]
    """Of one group, from its documents' scores."""
    validate: Callable[[], Validated] | None
    """Measures the network as it is now."""
    measure: str
    """What is measured, in ir_measures' own spelling."""
    windows: WindowSettings | None
    watch: Watch


class GroupTrainer(Trainer):
    """Trains a ranker's network on encoded groups."""

    def __init__(
        self,
        network: CrossEncoder,
        learning: Learning,
        args: TrainingArguments,
        data: tuple[DrawnGroups, Order, EncodeGroups],
    ) -> None:
        groups, order, encode = data
        self._order = order
        self.network, self._learning = network, learning
        small = args.device.type == "cpu"
        self.backward_tokens = learning.settings.backward_tokens or (4096 if small else 65_536)
        embeddings: Any = network.encoder.get_input_embeddings()
        # Each forward adds a gradient of the size of all word embeddings, where they are learnt.
        few = self.backward_tokens if embeddings.weight.requires_grad else 1024
        self._forward_tokens = learning.settings.forward_tokens or (few if small else 16_384)
        self.pairs, self.last_loss = 0, float("nan")
        self.validated: tuple[int, Validated] | None = None
        """After which step the network was last validated, and what came of it."""
        keep = learning.settings.average
        self.average = Average(network.to(args.device), keep) if keep else None
        super().__init__(
            model=network,
            args=args,
            train_dataset=groups,
            eval_dataset=groups if learning.validate else None,  # unused; Trainer wants one
            data_collator=encode,
            callbacks=[SavesInTime(), _Teller(self, order, learning.watch)],
        )
        self.remove_callback(PrinterCallback)

    def _get_train_sampler(self, train_dataset: Any = None) -> Order:  # noqa: ANN401 - theirs
        return self._order

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW, with learning rates of their own for what the warm form adds to its encoder."""
        if self.optimizer is None:
            settings = self._learning.settings
            decayed = set(self.get_decay_parameter_names(self.network))
            groups: dict[tuple[float, float], list[nn.Parameter]] = {}
            for name, weight in self.network.named_parameters():
                if not weight.requires_grad:
                    continue
                if isinstance(self.network, Warm) and name in ("alpha", "gate"):
                    kind = settings.scalar_learning_rate, 0.0
                elif isinstance(self.network, Warm) and name in ("head.weight", "head.bias"):
                    kind = settings.head_learning_rate, 0.0
                else:
                    decay = settings.weight_decay if name in decayed else 0.0
                    kind = settings.learning_rate, decay
                groups.setdefault(kind, []).append(weight)
            made, given = self.get_optimizer_cls_and_kwargs(self.args)
            self.optimizer = made(
                [
                    {"params": weights, "lr": rate, "weight_decay": decay}
                    for (rate, decay), weights in groups.items()
                ],
                **given,
            )
        return self.optimizer

    @property
    def gates(self) -> dict[str, float]:
        """How far the warm form's gates are open, by layer; nothing where there are none."""
        return gates_of(self.network)

    def training_step(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """One step's gradients, in as many parts as memory asks for."""
        model.train()
        groups: list[EncodedGroup] = inputs["groups"]
        while (loss := self._accumulate(model, groups)) is None:
            model.zero_grad()
        self.pairs = sum(len(group.labels) for group in groups)
        self.last_loss = loss.item()
        if not torch.isfinite(loss):
            raise SecondlookError(
                f"the loss is {self.last_loss} at step {self.state.global_step + 1}; lower "
                "learning_rate, or take precision fp32"
            )
        return loss

    def _accumulate(self, model: nn.Module, groups: list[EncodedGroup]) -> Tensor | None:
        """The loss, with its gradients added up; None where memory ran out and less is next."""
        parts = cut(groups, self.backward_tokens)
        total = torch.zeros((), device=self.args.device)
        try:
            for part in parts:
                last = part is parts[-1]
                with nullcontext() if last else self.accelerator.no_sync(model):
                    loss = self._loss(model, part) / len(groups)
                    self.accelerator.backward(loss)
                total += loss.detach()
        except RuntimeError as error:
            if not should_reduce_batch_size(error):
                raise
            if len(part) == 1:
                raise SecondlookError(
                    "one query's documents do not fit into memory; lower negatives or max_length"
                ) from error
        else:
            return total
        largest = max(sum(group.tokens for group in part) for part in parts)
        # A single list may be larger than what failed, and cannot be cut.
        self.backward_tokens = min(largest, self.backward_tokens) // 2
        self._learning.watch.say(
            f"memory is short: {self.backward_tokens} tokens at a time from here, same batch"
        )
        return None

    def _loss(self, model: nn.Module, groups: list[EncodedGroup]) -> Tensor:
        """The sum over groups. Weights are cast once for all sub-batches, not once for each."""
        with self.accelerator.autocast():
            scores = score(
                model,
                self.network.inputs,
                groups,
                pad_id=self.network.pad_id,
                positions=self.network.positions,
                forward_tokens=min(self._forward_tokens, self.backward_tokens),
                device=self.args.device,
                windows=self._learning.windows,
            )
        costs = [
            self._learning.loss(own.float(), group)
            for own, group in zip(scores, groups, strict=True)
        ]
        return torch.stack(costs).sum()

    def evaluate(
        self,
        eval_dataset: Any = None,  # noqa: ANN401 - theirs
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """The measure on the validation groups."""
        assert self._learning.validate is not None
        figures = self._learning.validate()
        self.validated = self.state.global_step, figures
        metrics = {f"{metric_key_prefix}_{self._learning.measure}": figures.mean}
        metrics |= {f"{metric_key_prefix}_{name}": gate for name, gate in self.gates.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


def gates_of(network: CrossEncoder) -> dict[str, float]:
    """`gate` and the layer → how far it is open; nothing where query and document never meet."""
    if not isinstance(network, Warm) or network.never_meet:
        return {}
    return {f"gate {layer}": value for layer, value in network.gates.items()}


class _Teller(MarksWhole):
    """Tells the order which epoch it is and the watcher what happens, too."""

    def __init__(self, trainer: GroupTrainer, order: Order, watch: Watch) -> None:
        self._trainer, self._order, self._watch = trainer, order, watch

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """The order is that of the epoch, after a resume too."""
        steps = ceil(len(self._order) / (args.train_batch_size * args.world_size))
        self._order.epoch = state.global_step // steps

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """One more step; a kill is to cost little, however seldom the ranker is validated."""
        if isinstance(self._trainer.network, Warm):
            self._trainer.network.bound_gates()
        if self._trainer.average:
            self._trainer.average.update()
        control.should_save |= state.global_step % max(1, state.max_steps // _SAVES) == 0
        self._watch.step(self._trainer.pairs, {"loss": self._trainer.last_loss})

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,  # noqa: ANN401 - theirs
    ) -> None:
        """A new figure."""
        metrics: dict[str, float] = given["metrics"]
        figures = {
            name.removeprefix("eval_"): value
            for name, value in metrics.items()
            if name.startswith("eval_")  # Trainer adds the epoch
        }
        gates = [figures.pop(name) for name in self._trainer.gates]
        if gates:
            values = " ".join(f"{gate:.4f}" for gate in gates)
            self._watch.say(f"step {state.global_step}: gates by layer {values}")
        self._watch.step(0, figures)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """The mean belongs to the state, too, and so does what each query's measure was."""
        folder = saved(Path(str(args.output_dir)), state.global_step)
        if self._trainer.average and state.is_world_process_zero:
            self._trainer.average.save(folder)
        step, validated = self._trainer.validated or (None, None)
        if validated and step == state.global_step and state.is_world_process_zero:
            keep_validated(validated, folder)
        super().on_save(args, state, control)
