"""A training that ends in time, however slow the machine becomes."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from transformers import TrainerCallback

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from secondlook.progress import Watch


class StopsAt(TrainerCallback):
    """Ends the training by `deadline`, on the clock of `time.monotonic`, after one step at least.

    What was learnt by then is validated and saved; the best so far is kept as at any other end. A
    validation is expected to take as long as the last one did.
    """

    def __init__(self, deadline: float, watch: Watch) -> None:
        self._deadline, self._watch = deadline, watch
        self._stepped, self._validation = monotonic(), 0.0

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Whether time is up."""
        self._stepped = monotonic()
        if (
            self._stepped + self._validation < self._deadline
            or state.global_step >= state.max_steps
        ):
            return
        self._watch.say(
            f"time is up: training ends after {state.global_step:,} of {state.max_steps:,} steps, "
            "and the best so far is kept"
        )
        control.should_training_stop = control.should_save = True
        control.should_evaluate = args.eval_strategy != "no"

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """How long it took."""
        self._validation = monotonic() - self._stepped
