"""The states of a run that the Trainer saves, and which of them a kill has left whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from transformers import TrainerCallback, TrainerState

from secondlook.data.durable import write_at_once
from secondlook.train import processes
from secondlook.train.validation import Validated

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainingArguments

_LIST = "whole.json"
"""Written last into every state: its files and their sizes. Without it the state was killed while
it was saved; with fewer files than it names, while it was removed."""

_VALIDATED = "validated.json"


def saved(run: Path, step: int) -> Path:
    """Where the Trainer saves the state after so many steps."""
    return run / f"checkpoint-{step}"


def keep_validated(validated: Validated, folder: Path) -> None:
    """Keep what a validation gave beside the weights it is of."""
    write_at_once(folder / _VALIDATED, json.dumps(asdict(validated)))


def read_validated(folder: Path) -> Validated | None:
    """What was kept there; None where nothing was."""
    path = folder / _VALIDATED
    return Validated(**json.loads(path.read_text("utf-8"))) if path.is_file() else None


def mark_whole(state: Path) -> None:
    """All files of the state are there."""
    sizes = {path.name: path.stat().st_size for path in state.iterdir() if path.is_file()}
    write_at_once(state / _LIST, json.dumps(sizes))


def whole(run: Path) -> list[Path]:
    """The states that are whole, oldest first."""
    found = [path.parent for path in run.glob(f"checkpoint-*/{_LIST}") if _all_there(path)]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def remove_halves(run: Path) -> None:
    """Remove the states that a kill halved."""
    for path in set(run.glob("checkpoint-*")) - set(whole(run)):
        rmtree(path)


def last_whole(run: Path) -> tuple[Path | None, TrainerState | None]:
    """Where a killed run is to go on, and what it knew there; what it left halved is removed."""
    if processes.first():
        remove_halves(run)
    processes.wait()
    last = next(reversed(whole(run)), None)
    return last, TrainerState.load_from_json(str(last / "trainer_state.json")) if last else None


class MarksWhole(TrainerCallback):
    """Marks every state that was saved to its end."""

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """All files of the state are there."""
        if state.is_world_process_zero:
            mark_whole(saved(Path(str(args.output_dir)), state.global_step))


def _all_there(listed: Path) -> bool:
    sizes: dict[str, int] = json.loads(listed.read_text("utf-8"))
    files = [(listed.parent / name, size) for name, size in sizes.items()]
    return all(path.is_file() and path.stat().st_size == size for path, size in files)
