"""What `secondlook tune` does, stage by stage."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from secondlook.evaluate.compare import Comparisons

_VALIDATED = 30
"""Hits per query that training is validated on: enough to tell one set of weights from another."""


@dataclass(frozen=True)
class Tuning:
    """The stages, and where their results are. A stage whose result is there does nothing."""

    data: Path
    output: Path
    base: str
    minutes: float
    depth: int
    device: str | None
    clicks: Path | None
    expander: str | None

    @property
    def stages(self) -> list[tuple[str, Callable[[], None]]]:
        """Their names and what they do, in order."""
        made = [("make judgments of clicks", self._clicks)] if self.clicks else []
        made += [("make queries of passages", self._generate)] if self.expander else []
        return [
            ("index the corpus", self._index),
            *made,
            ("hold queries out", self._split),
            ("take the first look", self._first_look),
            ("mine hard negatives", self._mine),
            ("start from the base", self._start),
            ("train", self._train),
            ("export for this hardware", self._export),
            ("second look at the validation queries", self._keep_the_better),
            ("calibrate", self._calibrate),
            ("tune the fusion with BM25", self._fuse),
            ("second look, untuned", partial(self._rerank, "untuned", "test")),
            ("second look, tuned", partial(self._rerank, "tuned", "test")),
            ("report", self._report),
        ]

    @property
    def results(self) -> Path:
        """What the stages made."""
        return self.output / "stages"

    @property
    def index(self) -> Path:
        """The first look's index."""
        return self.results / "index"

    @property
    def judged(self) -> Path:
        """Queries and judgments: given, or made."""
        return self.results / "made" if self.clicks or self.expander else self.data

    @property
    def report(self) -> Path:
        """The page for people."""
        return self.output / "report.html"

    @property
    def shipped(self) -> Path:
        """The ranker, where it helps."""
        return self.output / "ranker"

    def claim(self) -> None:
        """Raises SecondlookError where the folder holds what was made with other arguments."""
        from secondlook.cli.claim import claim

        judged = self._qrels("train")
        asked: dict[str, tuple[str | int | None, Path]] = {
            "DATA": (str(self.data.resolve()), self.index),
            "--base": (self.base, self._ranker("untuned")),
            "--depth": (self.depth, self._run("bm25", "train")),
            "--clicks": (str(self.clicks.resolve()) if self.clicks else None, judged),
            "--expander": (self.expander, judged),
        }
        claim(self.results, asked)

    def _index(self) -> None:
        from secondlook.cli.index import index

        if not self.index.exists():
            index(str(_file(self.data, "corpus")), self.index)

    def _clicks(self) -> None:
        from secondlook.cli.clicks import clicks

        assert self.clicks is not None
        self._make(partial(clicks, self.clicks))

    def _generate(self) -> None:
        from secondlook.cli.generate import generate

        assert self.expander is not None
        corpus = str(_file(self.data, "corpus"))
        given = partial(generate, corpus, self.index, self.expander, device=self.device)
        self._make(given)

    def _make(self, write: Callable[[Path], None]) -> None:
        """Judgments that no person gave, beside those that somebody did."""
        from secondlook.data.splits import add_judged

        if not (self.judged / "qrels" / "train.tsv").exists():
            write(self.judged)
        add_judged(self.judged, self.data)

    def _split(self) -> None:
        from secondlook.data import read_qrels, write_qrels
        from secondlook.data.origin import read_origin, write_origin
        from secondlook.data.splits import read_splits

        folder = self.results / "qrels"
        folder.mkdir(exist_ok=True)
        splits = read_splits(self.judged)
        whole = self.judged / "qrels" / "train.tsv"
        origin = read_origin(whole)
        made = read_qrels(whole) if origin else {}
        for name, part in {"train": splits.train, "dev": splits.dev, "test": splits.test}.items():
            if not self._qrels(name).exists():
                if part.keys() & made.keys():
                    write_origin(self._qrels(name), origin)
                write_qrels(self._qrels(name), part)
        typer.echo(
            f"{len(splits.train):,} queries to learn from, {len(splits.dev):,} to validate on, "
            f"{len(splits.test):,} for the verdict"
        )

    def _first_look(self) -> None:
        from secondlook.cli.retrieve import retrieve

        for part in ("train", "dev", "test"):
            if not self._run("bm25", part).exists():
                retrieve(
                    self.index,
                    str(self._queries),
                    self._run("bm25", part),
                    k=self.depth,
                    judged=str(self._qrels(part)),
                )

    def _mine(self) -> None:
        from secondlook.cli.mine import mine

        (self.results / "groups").mkdir(exist_ok=True)
        for part, depth in {"train": self.depth, "dev": min(self.depth, _VALIDATED)}.items():
            groups = self.results / "groups" / f"{part}.parquet"
            if not groups.exists():
                mine(
                    str(self.index),
                    str(self._queries),
                    str(self._qrels(part)),
                    groups,
                    run=str(self._run("bm25", part)),
                    ranks=f"1-{depth}",
                    all_=part == "dev",
                )

    def _start(self) -> None:
        from secondlook.cli.warm import warm

        if not self._ranker("untuned").exists():
            warm(self.base, self._ranker("untuned"))

    def _train(self) -> None:
        from secondlook.cli.train import train

        if self._ranker("trained").exists():
            return
        recipe = self.results / "recipe.toml"
        if not recipe.exists():
            self._choose(recipe)
        train(
            recipe,
            self._ranker("trained"),
            base=self.base,
            data=self.results / "groups",
            resume=True,
            device=self.device,
        )

    def _choose(self, recipe: Path) -> None:
        """Say what will be done before it is."""
        from secondlook.data.durable import write_at_once
        from secondlook.model.checkpoint import open_checkpoint
        from secondlook.train.choice import fitted, whole_recipe
        from secondlook.train.recipe import DataSettings, resolved
        from secondlook.train.run import job

        data = DataSettings(train=("train.parquet",), validation="dev.parquet")
        longest = open_checkpoint(self._ranker("untuned")).settings.encode.max_length
        work = job(
            whole_recipe(self.base, data, longest),
            self.results / "groups",
            self._ranker("trained"),
            base=self.base,
            device=self.device,
        )
        chosen, plan = fitted(work, self.minutes * 60)
        write_at_once(recipe, resolved(chosen))
        typer.echo(f"{plan}; pairs of up to {chosen.encode['max_length']} tokens")

    def _export(self) -> None:
        """For OpenVINO, which is the fastest on a CPU, where it is installed."""
        from importlib.util import find_spec

        from secondlook.cli.export import Precision, export
        from secondlook.score.exports import Export

        if any(find_spec(name) is None for name in ("openvino", "onnx", "onnxscript")):
            typer.echo("torch runs it: for a faster CPU, pip install 'secondlook[export]'")
            return
        for name in self._candidates():
            if not Export(self._ranker(name), "openvino", "bf16").is_there():
                export(self._ranker(name), precision=Precision.bf16)

    def _candidates(self) -> list[str]:
        """The base and what training made of it, unless training itself kept the base's weights.

        The base reads longer texts than it is trained on, so it may be the better one even if
        training has gained.
        """
        from secondlook.model.checkpoint import open_checkpoint
        from secondlook.score.exports import fingerprint

        names = ["untuned", "trained"]
        made_of = {fingerprint(open_checkpoint(self._ranker(name))) for name in names}
        return names[: len(made_of)]

    def _keep_the_better(self) -> None:
        """As `tuned`, with its look at the validation queries."""
        from shutil import copyfile

        from secondlook.data import read_qrels, read_run
        from secondlook.evaluate.measures import evaluate

        if self._ranker("tuned").exists():
            return
        qrels, found = read_qrels(self._qrels("dev")), {}
        for name in self._candidates():
            self._rerank(name, "dev")
            means = evaluate(qrels, read_run(self._run(name, "dev")), ["nDCG@10"]).means
            found[name] = means["nDCG@10"]
        better = max(found, key=found.__getitem__)
        figures = ", ".join(f"{name} {mean:.4f}" for name, mean in found.items())
        typer.echo(f"nDCG@10 on the validation queries: {figures}; {better} goes on")
        copyfile(self._run(better, "dev"), self._run("tuned", "dev"))
        _copy(self._ranker(better), self._ranker("tuned"))

    def _rerank(self, name: str, part: str) -> None:
        from secondlook.cli.rerank import rerank

        if not self._run(name, part).exists():
            rerank(
                str(self._run("bm25", part)),
                self.index,
                str(self._queries),
                str(self._ranker(name)),
                self._run(name, part),
                raw=part == "dev",
            )

    def _calibrate(self) -> None:
        from secondlook.cli.calibrate import calibrate
        from secondlook.evaluate.calibration import NothingToCalibrate
        from secondlook.model.checkpoint import open_checkpoint

        if open_checkpoint(self._ranker("tuned")).settings.calibrated:
            return
        try:
            calibrate(
                self._ranker("tuned"),
                run=str(self._run("tuned", "dev")),
                qrels=str(self._qrels("dev")),
            )
        except NothingToCalibrate as too_few:  # judgments that only name what is relevant
            typer.echo(f"scores stay as they are: {too_few}")

    def _fuse(self) -> None:
        from secondlook.cli.fuse import tune as tune_fusion
        from secondlook.data.durable import write_at_once

        done = self.results / "fusion.done"  # that no mix is better is a result too
        if not done.exists():
            tune_fusion(
                self._ranker("tuned"),
                first=str(self._run("bm25", "dev")),
                raw=str(self._run("tuned", "dev")),
                qrels=str(self._qrels("dev")),
                curve=self.results / "fusion.svg",
            )
            write_at_once(done, "")

    def _report(self) -> None:
        from secondlook.cli.report import report
        from secondlook.data.durable import write_at_once

        experiment = self.results / "experiment.toml"
        lines = {
            "title": "Does the tuned ranker help?",
            "qrels": [str(self._qrels("test").resolve())],
            "queries": [str(self._queries.resolve())],
            "base": [str(self._run("bm25", "test").resolve())],
            "new": [str(self._run("tuned", "test").resolve())],
            "others": [str(self._run("untuned", "test").resolve())],
            "corpus": str(self.index.resolve()),
            "ranker": str(self._ranker("tuned").resolve()),
            "measures": ["nDCG@10"],
            "commands": [self._command()],
        }
        # JSON's strings and lists of strings are TOML's too
        write_at_once(experiment, "".join(f"{k} = {json.dumps(v)}\n" for k, v in lines.items()))
        if not self.report.exists():
            report(experiment, self.report)

    def _command(self) -> str:
        given = {"--base": self.base, "--clicks": self.clicks, "--expander": self.expander}
        words = [f"{name} {value}" for name, value in given.items() if value]
        return " ".join(["secondlook", "tune", str(self.data), "-o", str(self.output), *words])

    def verdict(self) -> Comparisons:
        """BM25 against the untuned and the tuned ranker, told and kept beside the report."""
        from secondlook.cli.compare import as_json_of, show
        from secondlook.data import read_qrels, read_queries, read_run
        from secondlook.data.durable import write_at_once
        from secondlook.evaluate.compare import compare

        runs = [(name, read_run(self._run(name, "test"))) for name in ("bm25", "untuned", "tuned")]
        qrels = read_qrels(self._qrels("test"))
        texts = {query.id: query.text for query in read_queries(self._queries)}
        found = compare(qrels, runs[0], runs[1:], ["nDCG@10"], texts=texts)
        show(found)
        write_at_once(self.output / "verdict.json", json.dumps(as_json_of(found), indent=2))
        return found

    def judged_by(self) -> str:
        """What the verdict rests on, if not on people's judgments."""
        from secondlook.data.origin import read_origin

        return read_origin(self._qrels("test"))

    def ship(self) -> None:
        """Put the ranker in place."""
        if not self.shipped.exists():
            _copy(self._ranker("tuned"), self.shipped)

    @property
    def _queries(self) -> Path:
        return _file(self.judged, "queries")

    def _qrels(self, part: str) -> Path:
        return self.results / "qrels" / f"{part}.tsv"

    def _run(self, name: str, part: str) -> Path:
        return self.results / f"{part}.{name}.trec.gz"

    def _ranker(self, name: str) -> Path:
        return self.results / name


def _copy(ranker: Path, target: Path) -> None:
    """Whole or not at all."""
    from shutil import copytree

    from secondlook.model.checkpoint import replacing

    with replacing(target) as half:
        copytree(ranker, half, dirs_exist_ok=True)


def _file(folder: Path, name: str) -> Path:
    from secondlook.errors import SecondlookError

    found = sorted(folder.glob(f"{name}.*"))
    if not found:
        raise SecondlookError(
            f"{folder} has no {name}.jsonl; `secondlook convert` makes one of other formats"
        )
    return found[0]
