"""The stages of tuning a re-ranker, and where their results are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from secondlook.progress import Progress
from secondlook.workflows.tune_files import TuneFiles, file_of, files_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from secondlook.data.splits import Overlap
    from secondlook.evaluate.tuned import TunedComparison
    from secondlook.train.budget import Clock

MINED = 100
"""Candidates of a training query, at least: few positives are among fewer."""


class _Summarised(Protocol):
    def summary(self) -> str: ...


@dataclass(frozen=True)
class Tuning(TuneFiles):
    """The stages, and where their results are. A stage whose result is there does nothing."""

    data: Path
    output: Path
    bases: tuple[str, ...]
    depth: int
    device: str | None
    clicks: Path | None
    expander: str | None
    clock: Clock
    """Of this call: what an earlier one made costs no time, and the minutes count anew."""
    overlap: Overlap = "drop"
    progress: Progress = field(default_factory=Progress)
    report_to: tuple[str, ...] = ()
    """Experiment trackers of the training."""
    seed: int = 7
    """Of the training."""
    given_index: Path | None = None
    known: dict[str, float] = field(default_factory=dict)
    """Seconds and speeds that were measured in this call."""

    @property
    def stages(self) -> list[tuple[str, Callable[[], None]]]:
        """Their names and what they do, in order."""
        index = ("open the index" if self.given_index else "index the corpus", self._index)
        split = ("split the queries", self._split)
        if self.clicks:
            first = [("derive judgments from clicks", self._clicks), split, index]
        elif self.expander:
            first = [index, ("generate queries from passages", self._generate), split]
        else:
            first = [split, index]  # what is wrong with the judgments is said at once
        return [
            *first,
            ("load and export the base model", self._start),
            ("plan the time", self._plan),
            ("choose the first stage", self._choose_first_stage),
            ("retrieve candidates (the first stage)", self._first_look),
            ("mine hard negatives", self._mine),
            ("train", self._train),
            ("export the trained model", self._export_trained),
            ("re-rank the validation queries", self._keep_the_better),
            # the first: which pooling of windows it chooses decides what there is to calibrate
            ("tune the fusion with the first stage", self._fuse),
            ("calibrate", self._calibrate),
            ("re-rank the test queries", self._test),
            ("report", self._report),
        ]

    def claim(self) -> None:
        """Raises SecondlookError where the folder holds what was made with other arguments or data.

        What the data folder lacks is said here, too.
        """
        from secondlook.data.splits import split_files
        from secondlook.workflows.claim import CONTENTS, claim, contents

        split, made_of = self.qrels("train"), self.results / "made" / "qrels" / "train.tsv"
        retrieved = self.run("bm25", "train") if self.given_index else self.index
        settings: dict[str, tuple[str | int | None, Path]] = {
            "data": (str(self.data.resolve()), retrieved),
            "index": (self._given_fingerprint(), retrieved),
            "base": (", ".join(self.bases), self.ranker("untuned")),
            "seed": (self.seed, self.results / "recipe.toml"),
            "depth": (self.depth, self.results / "plan.json"),
            "clicks": (str(self.clicks.resolve()) if self.clicks else None, split),
            "expander": (self.expander, split),
            "overlap": (self.overlap, split),
        }
        judged = [*files_of(self.data, "queries"), *split_files(self.data).values()]
        corpus = [] if self.given_index else [file_of(self.data, "corpus")]
        for name, paths, made in (
            ("the corpus", corpus, retrieved),
            ("queries and judgments", judged, split),
            ("the click log", [self.clicks] if self.clicks else [], made_of),
        ):
            settings[f"{CONTENTS}{name}"] = contents(paths), made
        claim(self.results, settings)

    def check_bases(self) -> None:
        """Raises CheckpointProblem for a base that cannot be read, before anything is made."""
        from secondlook.train.start import kind_of

        if not self.ranker("untuned").exists():
            for base in self.bases:
                kind_of(base)

    def _given_fingerprint(self) -> str | None:
        """Of the index that the user gave, if any."""
        from secondlook.retrieve.folder import read_card

        return read_card(self.given_index).fingerprint if self.given_index else None

    def _index(self) -> None:
        from secondlook.workflows.index import build_index

        if self.given_index:
            self.progress.say(f"{self.index}: candidates and texts come from this index")
        elif not self.index.exists():
            corpus = file_of(self.data, "corpus")
            card = build_index(corpus, self.index, progress=self.progress).card
            self.progress.say(f"{self.index}: {card.documents:,} documents, {card.engine}")

    def _clicks(self) -> None:
        from secondlook.workflows.clicks import clicks

        assert self.clicks is not None
        self._make(partial(clicks, self.clicks, progress=self.progress))

    def _generate(self) -> None:
        from secondlook.workflows.generate import generate

        assert self.expander is not None
        corpus = self.given_index or file_of(self.data, "corpus")
        given = partial(generate, corpus, self.index, self.expander)
        self._make(partial(given, device=self.device, progress=self.progress))

    def _make(self, write: Callable[[Path], _Summarised]) -> None:
        """Judgments that no person gave, beside those that somebody did."""
        from secondlook.data.splits import add_judged

        if not (self.judged / "qrels" / "train.tsv").exists():
            self.progress.say(write(self.judged).summary())
        add_judged(self.judged, self.data)

    def _split(self) -> None:
        from secondlook.data import read_qrels, write_qrels
        from secondlook.data.origin import read_origin, write_origin
        from secondlook.data.splits import read_splits

        folder = self.results / "qrels"
        folder.mkdir(exist_ok=True)
        splits = read_splits(self.judged, self.overlap)
        whole = self.judged / "qrels" / "train.tsv"
        origin = read_origin(whole)
        made = read_qrels(whole) if origin else {}
        for name, part in {"train": splits.train, "dev": splits.dev, "test": splits.test}.items():
            if not self.qrels(name).exists():
                if part.keys() & made.keys():
                    write_origin(self.qrels(name), origin)
                write_qrels(self.qrels(name), part)
        if splits.repeats:
            fate = "they are KEPT" if self.overlap == "keep" else "they are left out"
            self.progress.warn(f"{splits.repeated()}; {fate}")
        self.progress.say(
            f"{len(splits.train):,} training, {len(splits.dev):,} validation and "
            f"{len(splits.test):,} test queries"
        )

    def _start(self) -> None:
        from secondlook.workflows.tune_bases import start

        start(self)
        self.export(self.ranker("untuned"))

    def _export_trained(self) -> None:
        if "trained" in self._candidates():
            self.export(self.ranker("trained"))
        else:
            self.progress.say("nothing to export: the base model is kept")

    def export(self, ranker: Path) -> None:
        """Export a ranker into its folder, and note how long that takes."""
        from time import monotonic

        from secondlook.workflows.export import export_for_speed

        began = monotonic()
        if export_for_speed(ranker, progress=self.progress):
            self.known["export"] = monotonic() - began

    def _plan(self) -> None:
        from secondlook.workflows.tune_budget import plan

        plan(self)

    def _train(self) -> None:
        from secondlook.workflows.tune_budget import train

        if not (self.ranker("trained").exists() or self.ranker("tuned").exists()):
            train(self)

    def _choose_first_stage(self) -> None:
        from secondlook.workflows.tune_first_stage import choose

        choose(self)

    def _first_look(self) -> None:
        from secondlook.workflows.retrieve import retrieve

        for part in ("train", "dev", "test"):
            if not self.candidates(part).exists():
                retrieved = retrieve(
                    self.index,
                    self.queries,
                    self.candidates(part),
                    k=self.mined if part == "train" else self.planned("depth"),
                    judged=self.used(part),
                    progress=self.progress,
                )
                self.progress.say(retrieved.summary())

    @property
    def mined(self) -> int:
        """Of a training query's ranking, the hits that its positives and negatives come from."""
        return max(self.depth, MINED)

    def _mine(self) -> None:
        """A positive that the first stage does not find is none to learn from.

        The lists that are re-ranked never hold it, and beside the best hits as negatives it teaches
        that what matches the query is not relevant.
        """
        from secondlook.workflows.mine import mine
        from secondlook.workflows.tune_budget import VALIDATED

        (self.results / "groups").mkdir(exist_ok=True)
        for part, last in {"train": self.mined, "dev": VALIDATED}.items():
            groups = self.results / "groups" / f"{part}.parquet"
            if not groups.exists():
                mined = mine(
                    self.index,
                    self.queries,
                    self.used(part),
                    groups,
                    run=self.candidates(part),
                    ranks=(1, last),
                    keep_all=part == "dev",
                    add_positives=False,
                    progress=self.progress,
                )
                self.progress.say(f"{groups}: {mined.summary()}")

    def _candidates(self) -> list[str]:
        """The base and what training made of it, unless training itself kept the base's weights.

        The base reads longer texts than it is trained on, so it may be the better one even if
        training has gained.
        """
        from secondlook.model.checkpoint import open_checkpoint
        from secondlook.score.export_folder import fingerprint

        names = [name for name in ("untuned", "trained") if self.ranker(name).exists()]
        made_of = {fingerprint(open_checkpoint(self.ranker(name))) for name in names}
        return names[: len(made_of)]

    def _keep_the_better(self) -> None:
        """As `tuned`, with the training that was not kept in its lineage."""
        from secondlook.data import read_qrels
        from secondlook.workflows.tune_form import cheapest, try_separate
        from secondlook.workflows.tune_results import keep

        if self.ranker("tuned").exists():
            return
        found = {name: self.validated(name) for name in self._candidates()}
        found = try_separate(self, max(found, key=found.__getitem__), found)
        better = cheapest(found)
        figures = ", ".join(f"{name} {mean:.4f}" for name, mean in found.items())
        self.progress.say(
            f"nDCG@10 over {len(read_qrels(self.used('dev'))):,} validation queries, "
            f"{self.planned('depth')} candidates each, texts as long as each ranker reads: "
            f"{figures}; {better} is kept"
        )
        keep(self, better, found)

    def validated(self, name: str) -> float:
        """The nDCG@10 of a ranker on the validation queries."""
        from secondlook.data import read_qrels, read_run
        from secondlook.evaluate.measures import evaluate
        from secondlook.workflows.tune_results import whole_documents

        self._rerank(name, "dev")
        qrels = read_qrels(self.used("dev"))
        run = read_run(whole_documents(self, name, "dev"))
        return evaluate(qrels, run, ["nDCG@10"]).means["nDCG@10"]

    def _rerank(self, name: str, part: str) -> None:
        """Raw scores: each pair is scored once by each set of weights, and fused afterwards."""
        from time import monotonic

        from secondlook.workflows.rerank import rerank

        if self.run(name, part).exists():
            return
        began = monotonic()
        reranked = rerank(
            self.candidates(part),
            self.index,
            self.queries,
            self.ranker(name),
            self.run(name, part),
            raw=True,
            progress=self.progress,
        )
        self.progress.say(reranked.summary())
        if reranked.pairs:  # none where an interrupted call had scored them all
            self.known["pairs_per_second"] = reranked.pairs / (monotonic() - began)

    def _calibrate(self) -> None:
        from secondlook.evaluate.calibration import NothingToCalibrate
        from secondlook.model.checkpoint import open_checkpoint
        from secondlook.workflows.calibrate import calibrate

        if open_checkpoint(self.ranker("tuned")).settings.calibrated:
            return
        try:
            calibrated = calibrate(
                self.ranker("tuned"),
                run=self.run(self.better, "dev"),
                qrels=self.used("dev"),
                progress=self.progress,
            )
            self.progress.say(calibrated.summary())
        except NothingToCalibrate as too_few:  # judgments that only name what is relevant
            self.progress.say(f"scores are not calibrated: {too_few}")

    def _fuse(self) -> None:
        from secondlook.data.durable import write_at_once
        from secondlook.workflows.fuse import tune_fusion

        if not self.fusion_done.exists():
            fused = tune_fusion(
                self.ranker("tuned"),
                first=self.candidates("dev"),
                raw=self.run(self.better, "dev"),
                qrels=self.used("dev"),
                curve=self.results / "fusion.svg",
                progress=self.progress,
            )
            self.progress.say(fused.summary())
            write_at_once(self.fusion_done, "")

    def _test(self) -> None:
        """Score the test queries: by the base, by the trained ranker if it goes on, each once."""
        from secondlook.workflows.tune_budget import REPORT_SECONDS
        from secondlook.workflows.tune_results import write_fused, write_tested

        names = list(dict.fromkeys(["untuned", self.better]))
        if not self.candidates("tested").exists():
            speed = self.known.get("pairs_per_second", self.planned("pairs_per_second"))
            left = self.clock.left - REPORT_SECONDS
            write_tested(self, int(left * speed / len(names) / self.planned("depth")))
        for name in names:
            self._rerank(name, "tested")
        if not self.run("tuned", "tested").exists():
            write_fused(self)

    def _report(self) -> None:
        from secondlook.workflows.tune_results import write_report

        write_report(self)

    def verdict(self) -> TunedComparison:
        """What was tested, told and kept beside the report."""
        from secondlook.workflows.tune_results import write_verdict

        return write_verdict(self)

    def judged_by(self) -> str:
        """What the verdict rests on, if not on people's judgments."""
        from secondlook.data.origin import read_origin

        return read_origin(self.qrels("test"))

    def ship(self) -> None:
        """Put the ranker in place."""
        from secondlook.workflows.tune_results import ship

        ship(self)
