"""The stages of a distillation, and where their results are."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from secondlook.progress import Progress
    from secondlook.train.recipe import Recipe
    from secondlook.types import Scorer
    from secondlook.workflows.distil import DistilResult

_PARTS = ("train", "dev", "test")
_VALIDATIONS = 4


@dataclass(frozen=True)
class Distillation:
    """The stages, and where their results are. A stage whose result is there does nothing."""

    index: Path
    queries: str
    output: Path
    teacher: str | Scorer
    student: str
    student_layers: int | None
    loss: str
    pool: int
    depth: int
    epochs: float
    max_steps: int | None
    learning_rate: float
    minutes: float | None
    device: str | None
    seed: int
    progress: Progress

    @property
    def stages(self) -> list[tuple[str, Callable[[], None]]]:
        """Their names and what they do, in order."""
        return [
            ("load and export student and teacher", self._load),
            ("retrieve candidates", self._retrieve),
            ("rank the candidates with the student", self._rank),
            ("choose the candidates that the teacher scores", self._choose),
            ("score them with the teacher", self._teach),
            ("train the student", self._train),
            ("export the student", self._export),
            ("measure the agreement on the held-out queries", self._compare),
        ]

    @property
    def results(self) -> Path:
        """What the stages made."""
        return self.output / "stages"

    def claim(self) -> None:
        """Raises SecondlookError where the folder holds what was made with other arguments."""
        from secondlook.retrieve.folder import read_card
        from secondlook.workflows.claim import CONTENTS, claim
        from secondlook.workflows.teach import teacher_name

        teacher, scored = self._folder("teacher"), self._groups("train", "scored")
        taught_by = teacher if teacher.exists() else scored
        settings: dict[str, tuple[str | int | None, Path]] = {
            "student": (self.student, self._folder("untaught")),
            "student layers": (self.student_layers, self._folder("untaught")),
            "pool": (self.pool, self._run("pool")),
            "depth": (self.depth, self._groups("train", "candidates")),
            "teacher": (teacher_name(self.teacher), taught_by),
            "teacher folder": (self._teacher_folder(), taught_by),
            **{
                name: (str(getattr(self, name)), self._folder("taught"))
                for name in ("loss", "epochs", "max_steps", "learning_rate", "seed")
            },
        }
        for name, digest in {
            "the queries": self._queries_digest(),
            "the index": read_card(self.index).fingerprint,
        }.items():
            settings[f"{CONTENTS}{name}"] = digest, self._run("pool")
        claim(self.results, settings)

    def _teacher_folder(self) -> str | None:
        """Where it lies: many are called `ranker`. None for a hub id, an address or an object."""
        from pathlib import Path

        folder = Path(self.teacher).expanduser() if isinstance(self.teacher, str) else None
        return str(folder.resolve()) if folder and folder.is_dir() else None

    def _queries_digest(self) -> str:
        from hashlib import sha256

        from secondlook.data import read_queries

        digest = sha256()
        for query in read_queries(self.queries):
            digest.update(f"{query.id}\0{query.text}\n".encode())
        return digest.hexdigest()

    def _folder(self, name: str) -> Path:
        return self.results / name

    def _run(self, name: str) -> Path:
        return self.results / f"{name}.trec.gz"

    def _groups(self, part: str, what: str) -> Path:
        return self.results / f"{part}.{what}.parquet"

    @cached_property
    def _teacher(self) -> str | Scorer:
        """A checkpoint's own copy here, the ranker at an address, or the object that was given.

        An address is opened once, so that its limits of cost and rate hold for all stages.
        """
        from secondlook.remote.address import is_remote
        from secondlook.score.remote_ranker import RemoteRanker

        if not isinstance(self.teacher, str):
            return self.teacher
        if is_remote(self.teacher):
            return RemoteRanker.load(self.teacher)
        return str(self._folder("teacher"))

    @property
    def _base(self) -> str:
        """What the student begins as: the model that was given, or that with fewer layers."""
        from secondlook.workflows.teach import teacher_name

        if self.student_layers is None:
            return self.student
        name = teacher_name(self.student).rpartition("/")[2]
        return str(self._folder(f"{name}-{self.student_layers}-layers"))

    def _leave_layers_out(self) -> None:
        from pathlib import Path

        from secondlook.model.fewer_layers import write_fewer_layers

        if self.student_layers is not None and not Path(self._base).exists():
            write_fewer_layers(self.student, self.student_layers, Path(self._base))

    def _load(self) -> None:
        from secondlook.train.start import make_start
        from secondlook.workflows.export import export_for_speed

        self._leave_layers_out()
        given = {"untaught": self._base}
        if isinstance(self._teacher, str):
            given["teacher"] = str(self.teacher)
        for name, source in given.items():
            if not self._folder(name).exists():
                with self.progress.busy(f"loading {source}"):
                    make_start(source, self._folder(name))
            export_for_speed(self._folder(name), progress=self.progress)

    def _retrieve(self) -> None:
        from secondlook.workflows.retrieve import retrieve

        if not self._run("pool").exists():
            given = self.index, self.queries, self._run("pool")
            retrieved = retrieve(*given, k=self.pool, progress=self.progress)
            self.progress.say(retrieved.summary())

    @property
    def _hard(self) -> str:
        """The run whose best documents the student learns most from: its own, where it has one."""
        ranks = self.pool > self.depth and self.student_layers is None
        return "student" if ranks else "pool"

    def _rank(self) -> None:
        from secondlook.workflows.rerank import rerank

        if self._hard == "student" and not self._run("student").exists():
            given = self._run("pool"), self.index, self.queries, self._folder("untaught")
            ranked = rerank(*given, self._run("student"), progress=self.progress)
            self.progress.say(ranked.summary())

    def _choose(self) -> None:
        from secondlook.data import read_queries, read_run
        from secondlook.retrieve import open_index
        from secondlook.train.distillation import split_queries, unlabelled_groups
        from secondlook.train.groups import write_groups

        if all(self._groups(part, "candidates").exists() for part in _PARTS):
            return
        corpus = open_index(self.index)
        own = self._run(self._hard)
        about = {"corpus": corpus.card.fingerprint, "queries": self.queries.rpartition("/")[2]}
        for part, queries in split_queries(list(read_queries(self.queries))).parts().items():
            rankings = read_run(self._run("pool")), read_run(own)
            groups = unlabelled_groups(queries, *rankings, corpus, self.depth)
            count = write_groups(self._groups(part, "candidates"), groups, about=about)
            self.progress.say(f"{part}: {count:,} queries, up to {self.depth} candidates each")

    def _teach(self) -> None:
        from secondlook.train.distillation import labelled_by_teacher
        from secondlook.train.groups import Groups, write_groups
        from secondlook.workflows.teach import teach, teacher_name

        about = {"labels": f"the scores of {teacher_name(self.teacher)}, without judgments"}
        for part in _PARTS:
            scored = self._groups(part, "scored")
            if not scored.exists():
                given = self._groups(part, "candidates"), self._teacher, scored
                self.progress.say(teach(*given, progress=self.progress).summary())
            if not self._groups(part, "taught").exists():
                groups = map(labelled_by_teacher, Groups([scored]))
                write_groups(self._groups(part, "taught"), groups, about=about)

    def _train(self) -> None:
        from time import monotonic

        from secondlook.train.run import job, train

        if self._folder("taught").exists():
            return
        self._groups("test", "by.taught").unlink(missing_ok=True)  # by a student that is gone
        with self.progress.training() as watch:
            work = job(
                self._recipe(),
                self.results,
                self._folder("taught"),
                base=self._base,
                watch=watch,
                device=self.device,
            )
            if self.minutes is not None:
                work = replace(work, deadline=monotonic() + 60 * self.minutes)
            train(work, resume=True)

    def _recipe(self) -> Recipe:
        from secondlook.train.distillation import fitting_temperature
        from secondlook.train.groups import Groups
        from secondlook.train.recipe import Recipe
        from secondlook.train.start import first_settings

        batch, groups = 8, Groups([self._groups("train", "taught")])
        steps = self.max_steps or ceil(self.epochs * len(groups) / batch)
        phase: dict[str, Any] = {
            "phase": "distil",
            "loss": self.loss,
            "max_steps": steps,
            "batch": batch,
            "learning_rate": self.learning_rate,
            "fit_score_scale": True,
            "dropout": 0.0,
            "freeze_embeddings": True,
            "validate_every": ceil(steps / _VALIDATIONS),
        }
        if self.loss == "kl":
            phase["temperature"] = fitting_temperature(groups)
        started = first_settings(self._base)
        train, dev = (self._groups(part, "taught").name for part in ("train", "dev"))
        return Recipe.model_validate(
            started
            | {
                "seed": self.seed,
                "data": {"train": [train], "validation": dev},
                "phases": (*started["phases"], phase),
            }
        )

    @property
    def _kept(self) -> bool:
        """Whether the taught student has other weights than the untaught one."""
        from secondlook.model.checkpoint import open_checkpoint

        metrics = open_checkpoint(self._folder("taught")).settings.lineage.phases[-1].metrics
        return not any(name.endswith("of the rejected training") for name in metrics)

    def _export(self) -> None:
        from secondlook.workflows.export import export_for_speed
        from secondlook.workflows.tune_results import copy, make_once

        source = self._folder("taught" if self._kept else "untaught")
        export_for_speed(source, progress=self.progress)
        target, noted = self.output / "ranker", self.results / "ranker.made-of"
        make_once(target, source, noted, partial(copy, source, target))

    def _compare(self) -> None:
        from secondlook.workflows.teach import teach

        names = ["untaught", *(["taught"] if self._kept else [])]
        for name in names:
            scored = self._groups("test", f"by.{name}")
            if not scored.exists():
                given = self._groups("test", "candidates"), self._folder(name), scored
                self.progress.say(teach(*given, progress=self.progress).summary())

    def result(self) -> DistilResult:
        """The account, which is written beside the student too."""
        import numpy as np

        from secondlook.data.durable import write_at_once
        from secondlook.evaluate.agreement import agreement
        from secondlook.evaluate.significance import randomisation_test
        from secondlook.train.groups import Groups
        from secondlook.workflows.distil import DistilResult
        from secondlook.workflows.teach import teacher_name

        def scores(what: str) -> list[tuple[float, ...]]:
            return [group.teacher or () for group in Groups([self._groups("test", what)])]

        reference = scores("scored")
        untaught = agreement(reference, scores("by.untaught"))
        taught = agreement(reference, scores("by.taught")) if self._kept else untaught
        deltas = np.array(taught.per_query) - np.array(untaught.per_query)
        groups = {part: Groups([self._groups(part, "scored")]) for part in _PARTS}
        result = DistilResult(
            self.output / "ranker",
            teacher_name(self.teacher),
            teacher_name(self._base),
            {part: len(some) for part, some in groups.items()},
            sum(len(group.documents) for some in groups.values() for group in some),
            untaught,
            taught,
            randomisation_test(deltas, np.random.default_rng(0)),
            self._kept,
        )
        write_at_once(self.output / "agreement.json", json.dumps(result.to_dict(), indent=2))
        return result
