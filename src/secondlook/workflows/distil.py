"""Train a small re-ranker to rank as a larger one does, on queries without judgments."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from secondlook.evaluate.agreement import Agreement
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.types import Scorer


@dataclass(frozen=True, slots=True)
class DistilResult:
    """Teacher, student, and how far they agree before and after."""

    ranker: Path
    """The student."""
    teacher: str
    student: str
    """The base model of the student."""
    queries: Mapping[str, int]
    """How many queries were learnt from (train), validated on (dev) and tested on (test)."""
    pairs: int
    """Scored by the teacher in all."""
    untaught: Agreement
    """Of the student before training with the teacher, on the test queries."""
    taught: Agreement
    p: float
    """Of the difference of Kendall's τ between the two, by the randomisation test."""
    kept: bool
    """Whether training was kept: where it did not rank the validation queries more like the
    teacher, the student is as it was."""

    def summary(self) -> str:
        """A table of the agreement, and what it was measured on."""
        from secondlook.evaluate.tables import as_text

        return f"{as_text(self.table())}\n{self.conclusion()}"

    def table(self) -> Table:
        """The agreement with the teacher, before and after."""
        from rich.table import Table

        table = Table(title=f"Agreement with {self.teacher}, {self.untaught.queries} test queries")
        for heading in ("student", "Kendall", "Spearman", "same first", "shared top 10"):
            table.add_column(heading, justify="left" if heading == "student" else "right")
        for name, own in (("before", self.untaught), ("after", self.taught)):
            figures = own.kendall, own.spearman, own.same_first, own.shared_top
            table.add_row(f"{self.student}, {name}", *(f"{figure:.4f}" for figure in figures))
        return table

    def conclusion(self) -> str:
        """Whether training was kept, and where the student is."""
        learnt = (
            f"{self.queries['train']:,} queries without judgments, {self.pairs:,} pairs scored by "
            f"the teacher; {self.ranker} is the student"
        )
        if not self.kept:
            return (
                f"{learnt}, as it was: training did not make it rank more like the teacher. More "
                "queries, more epochs or another learning rate may"
            )
        return f"{learnt}. Difference of Kendall's τ: p = {self.p:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"ranker": str(self.ranker), "queries": dict(self.queries)}


def distil(
    index: str | Path,
    queries: str | Path,
    output: str | Path,
    *,
    teacher: str | Path | Scorer,
    student: str | Path = "sentence-transformers/all-MiniLM-L6-v2",
    student_layers: int | None = None,
    loss: Literal["kl", "margin_mse"] = "kl",
    pool: int = 100,
    depth: int = 30,
    epochs: float = 2.0,
    max_steps: int | None = None,
    learning_rate: float = 2e-5,
    minutes: float | None = None,
    device: str | None = None,
    seed: int = 7,
    progress: Progress | ProgressCallback | None = None,
) -> DistilResult:
    """Train a student to rank as the teacher does, on queries that nobody has judged.

    `index` is an index folder and `queries` a query log, generated queries, or any other queries.
    `teacher` is a checkpoint, the address of a rerank API, or any object that scores pairs;
    `student` is a bi-encoder, a cross-encoder or a re-ranker made here, of which `student_layers`
    layers are kept, by default all: `student` may be the teacher itself, with half of its layers.
    The first stage retrieves `pool` documents for each query, of which the teacher scores `depth`:
    half are those that the student ranks highest (those that the first stage does, where layers
    were left out), half are drawn from the rest. `loss` is the divergence of the two score
    distributions ("kl") or the squared error of score differences ("margin_mse"). `minutes` limits
    the training alone.

    Of the queries a fifth is held out: some choose the best weights, the others measure the
    agreement with the teacher. All stages keep their results in `output`/stages, the teacher's
    scores too; the same call resumes. The student is `output`/ranker, the account
    `output`/agreement.json.

    >>> import secondlook as sl
    >>> index = sl.build_index("my-data/corpus.jsonl", "my-data.index")
    >>> result = sl.distil(
    ...     "my-data.index", "my-data/queries.jsonl", "small",
    ...     teacher="my.ranker", student="intfloat/e5-small", max_steps=1,
    ... )
    >>> result.teacher, result.ranker.name, -1 <= result.taught.kendall <= 1
    ('my.ranker', 'ranker', True)
    """
    from secondlook.data.lock import Hold
    from secondlook.workflows.distil_stages import Distillation

    reported, folder = as_progress(progress), Path(output)
    distillation = Distillation(
        Path(index),
        str(queries),
        folder,
        teacher if not isinstance(teacher, Path) else str(teacher),
        str(student),
        student_layers,
        loss,
        pool,
        depth,
        epochs,
        max_steps,
        learning_rate,
        minutes,
        device,
        seed,
        reported,
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    hold = Hold(folder, f"every finished stage is kept in {folder}; the same command resumes")
    distillation.claim()
    for number, (name, stage) in enumerate(distillation.stages, start=1):
        reported.stage(name, number, len(distillation.stages))
        stage()
    result = distillation.result()
    hold.release()
    return result
