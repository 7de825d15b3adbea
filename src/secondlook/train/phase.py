"""What a phase is: it makes a better ranker of one, or better data of some.

A phase is a settings model in `settings.py`, told by its `phase`, and a function

    def run(settings: RankingPhase, start: Model, data: TrainData, place: Place) -> Outcome

that `phases.py` names. It may stop at any moment, killed: called again with the same arguments it
continues from what it left in `place.folder` and gives the same outcome. `run.py` saves the
outcome, writes the lineage, and calls the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from secondlook.errors import UnknownName
from secondlook.progress import Unwatched, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from secondlook.model.network import Model


@dataclass(frozen=True, slots=True)
class TrainData:
    """What there is to learn from."""

    folder: Path
    """Where the files are that a phase's own settings name, such as a corpus."""
    train: tuple[Path, ...] = ()
    """Group files."""
    validate: Path | None = None
    """A group file with every candidate of the run that is to be re-ranked."""

    def chosen(self, only: Sequence[str], phase: str) -> list[Path]:
        """The group files that a phase names, in their own order; all where it names none."""
        names = [path.name for path in self.train]
        for name in only:
            if name not in names:
                raise UnknownName(f"file for the phase {phase!r}", name, names)
        return [path for path in self.train if not only or path.name in only]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a phase works."""

    folder: Path
    """Its own, kept when it is killed; it holds nothing but what the phase put there."""
    seed: int
    device: str | None = None
    """None takes CUDA, then MPS, then the CPU."""
    watch: Watch = field(default_factory=Unwatched)
    report_to: tuple[str, ...] = ()
    """Trackers, by the names transformers has for them: tensorboard, mlflow, wandb."""
    deadline: float | None = None
    """When training is to end, on the clock of `time.monotonic`, even if steps are left."""

    @property
    def run(self) -> Path:
        """For what is large and needed only to resume: removed once the outcome is saved."""
        return self.folder / "run"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a phase made."""

    model: Model
    data: TrainData
    """As it was given, unless the phase changes data."""
    learned_from: Mapping[str, str] = field(default_factory=dict)
    """Name → fingerprint."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    history: tuple[Mapping[str, float], ...] = ()
    """What was measured on the way, oldest first: `step`, and `loss` or a measure."""
    keep: tuple[Path, ...] = ()
    """Files of `Place.folder` that go beside the finished ranker, for a person to read."""
    labels: str = ""
    """Where the judgments came from, if not from people."""
