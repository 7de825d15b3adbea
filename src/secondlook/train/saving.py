"""A training that is saved every half minute, however long its steps and validations are."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from transformers import TrainerCallback

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import TrainerControl, TrainerState, TrainingArguments

_SECONDS = 30.0
_LONGER_THAN_A_SAVE = 20
"""A state that takes long to write is written less often: a twentieth of the time, at most."""


class SavesInTime(TrainerCallback):
    """Saves the state after the first step that ends half a minute after the last save."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._saved = self._began_saving = clock()
        self._cost = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """What was done before it began is saved, or none of its business."""
        self._saved = self._clock()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Whether it is time; several processes would have to agree on that, and do not."""
        self._began_saving = self._clock()
        waited = self._began_saving - self._saved
        if args.world_size == 1 and waited >= max(_SECONDS, _LONGER_THAN_A_SAVE * self._cost):
            control.should_save = True

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """A validation comes before the save, and is no part of its cost."""
        self._began_saving = self._clock()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """How long it took."""
        self._saved = self._clock()
        self._cost = self._saved - self._began_saving
