"""What weighing and expanding a corpus share: its copy with more, and the training of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from secondlook.model.deepct import WeigherModel
    from secondlook.model.doc2query import ExpanderModel
    from secondlook.model.settings import Lineage
    from secondlook.progress import Progress
    from secondlook.scale.documents import Rows
    from secondlook.train.phase import Place
    from secondlook.types import Document

    Every = Callable[[], Iterator[str]]
    """Gives the rows that were made of all documents, in their order; may be called again."""

Model = TypeVar("Model", "WeigherModel", "ExpanderModel")


@dataclass(frozen=True, slots=True)
class CorpusCopy:
    """What the copy of a corpus is made of."""

    corpus: str | Path
    corpus_format: str
    output: Path
    made_with: Mapping[str, Any]
    """Models and settings: an interrupted job goes on only with the same ones."""
    tools: Callable[[], Rows]
    """Opens what makes rows of documents; a worker of a cluster opens its own."""
    at_once: int
    """Documents."""
    ray: str | None
    checked: Callable[[Iterable[Document]], Iterable[Document]] = iter
    """Gives the documents on; raises where they are not to be worked on, before any is."""

    def write(
        self, doing: str, finished: Callable[[Every], Iterable[str]], progress: Progress
    ) -> int:
        """Write the rows of every document as `finished` gives them; the number of documents.

        Interrupted, the same goes on.
        """
        from secondlook.data import Fingerprint
        from secondlook.scale.documents import made
        from secondlook.workflows.documents import documents_of

        given = documents_of(self.corpus, progress, self.corpus_format)
        fingerprint = Fingerprint.of(self.checked(given))
        job = {"corpus": fingerprint.digest(), **self.made_with}
        again = documents_of(self.corpus, None, self.corpus_format)
        with progress.counting(doing, "documents", fingerprint.documents) as advance:
            rows = made(
                self.output, job, self.tools, again, self.at_once, advance=advance, ray=self.ray
            )
        rows.finish(finished(rows.rows))
        return fingerprint.documents


@dataclass(frozen=True, slots=True)
class FirstStageTraining:
    """The training of a weigher or an expander."""

    output: Path
    made_of: Mapping[str, Any]
    """Settings and data: an interrupted training goes on only with the same ones."""
    base: str | Path
    seed: int
    device: str | None
    report_to: Sequence[str]

    def run(
        self,
        train: Callable[[Place], Model],
        save: Callable[[Model, Path], object],
        progress: Progress,
    ) -> TrainedModel:
        """Train and save; interrupted, the same goes on from the last saved step."""
        from secondlook.model.checkpoint import files_fingerprint, locate
        from secondlook.train.course import claimed
        from secondlook.train.phase import Place
        from secondlook.train.trackers import refuse_unusable

        refuse_unusable(self.report_to)
        base = files_fingerprint(locate(self.base))
        job = {**self.made_of, "seed": self.seed, "base": base}
        with progress.training() as watch, claimed(self.output, job) as folder:
            place = Place(folder, self.seed, self.device, watch, tuple(self.report_to))
            model = train(place)
            save(model, self.output)
        return TrainedModel(self.output, model.settings.lineage)


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A weigher or an expander that was written."""

    model: Path
    lineage: Lineage

    def summary(self) -> str:
        """What was measured on held-out passages."""
        return f"{self.model}: {self.lineage.phases[-1].figures}"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        phases = [phase.model_dump() for phase in self.lineage.phases]
        return {"model": str(self.model), "base": self.lineage.base, "phases": phases}
