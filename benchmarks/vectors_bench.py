"""What the parts of benchmarks/vectors.py share: data, rankers, indexes, judged queries, runs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from secondlook.data import (
    read_corpus,
    read_qrels,
    read_queries,
    read_run,
    write_corpus,
    write_qrels,
)
from secondlook.evaluate.measures import evaluate
from secondlook.retrieve.vector_files import ENCODER, FOLDER, VectorFiles, VectorWriter
from secondlook.score.warm import make_warm
from secondlook.types import Query, Ranking
from secondlook.workflows.export import export, export_for_speed
from secondlook.workflows.index import build_index
from secondlook.workflows.retrieve import retrieve

_TRIAL_QUERIES, _TRIAL_RELEVANT, _TRIAL_OTHERS, _TRIAL_WORDS = 12, 3, 60, 30
"""Of each split, for each query, of the corpus, of each text: every part runs to its end."""


@dataclass(frozen=True)
class Bench:
    """Where data, models and results are, and how much of the data is taken."""

    sets: Path
    weights: Path
    work: Path
    share: float
    queries: int
    """Judged queries of a set, at most."""
    minutes: float
    """Of each call of `tune`."""
    layers: int
    """Of the encoder that a million passages are encoded with."""
    base: Path
    """The bi-encoder."""
    cross: int
    """Judged queries of a set whose candidates the cross-encoder reads, at most."""

    @property
    def cross_encoder(self) -> Path:
        """The re-ranker that reads query and document together, exported to be fast."""
        return self.weights / "ms-marco-minilm-l12"

    def of_share(self, number: int, least: int) -> int:
        """So many of a number as the share says."""
        return number if self.share >= 1 else max(least, round(number * self.share))

    def data(self, name: str) -> Path:
        """A set, or in a trial a little of it."""
        whole = self.sets / name
        if self.share >= 1:
            return whole
        small = self.work / "data" / name
        if not (small / "whole").exists():
            shutil.rmtree(small, ignore_errors=True)
            write_trial(whole, small)
            (small / "whole").touch()
        return small

    def separate_ranker(self) -> Path:
        """The bi-encoder as a re-ranker whose layers are all separate, with its exports."""
        folder = self.work / "separate.ranker"
        if not folder.exists():
            make_warm(self.base, folder, separate_layers="all")
        if not (folder / "openvino").exists():
            export(folder, precision="fp32")
        export_for_speed(folder)
        return folder

    def exported_cross_encoder(self) -> Path:
        """A copy of the cross-encoder, with an export."""
        folder = self.work / "cross.ranker"
        if not folder.exists():
            half = self.work / "cross.half"
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(self.cross_encoder, half)
            half.rename(folder)
        export_for_speed(folder)
        return folder

    def index(self, name: str) -> Path:
        """The index of a set with the separate ranker's vectors, fp32."""
        folder = self.work / f"{name}.index"
        build_index(file_of(self.data(name), "corpus"), folder, vectors=self.separate_ranker())
        return folder

    def judged(self, name: str, split: str, most: int | None = None) -> Path:
        """The judgments of the first queries of a split."""
        path = self.work / f"{name}.{split}.{most or self.queries}.tsv"
        if not path.exists():
            qrels = read_qrels(self.data(name) / "qrels" / f"{split}.tsv")
            write_qrels(path, dict(islice(qrels.items(), most or self.queries)))
        return path

    def query_file(self, name: str) -> Path:
        """All queries of a set."""
        return file_of(self.data(name), "queries")

    def judged_queries(self, name: str, qrels: Path) -> list[Query]:
        """Those with judgments."""
        wanted = read_qrels(qrels)
        return [query for query in read_queries(self.query_file(name)) if query.id in wanted]

    def run_file(self, index: Path, qrels: Path, label: str) -> Path:
        """Where the results of these queries are."""
        return self.work / f"{index.name}.{qrels.stem}.{label}.trec"

    def run(self, name: str, index: Path, qrels: Path, by: str | None, label: str) -> Path:
        """The hundred best of each judged query, by one way to search."""
        path = self.run_file(index, qrels, label)
        if not path.exists():
            given: dict[str, Any] = {"k": 100, "by": by, "judged": qrels}
            retrieve(index, self.query_file(name), path, **given)
        return path


def file_of(data: Path, name: str) -> Path:
    """`corpus.jsonl` or `queries.jsonl` of a set, compressed or not."""
    return next(iter(sorted(data.glob(f"{name}.jsonl*"))))


def write_trial(whole: Path, small: Path) -> None:
    """A few queries of each split, what is relevant for them, and a few other documents."""
    (small / "qrels").mkdir(parents=True)
    relevant = set[str]()
    for path in sorted((whole / "qrels").glob("*.tsv")):
        few: dict[str, dict[str, int]] = {}
        for query, judged in islice(read_qrels(path).items(), _TRIAL_QUERIES):
            best = sorted(judged, key=lambda doc_id, own=judged: -own[doc_id])[:_TRIAL_RELEVANT]
            few[query] = {doc_id: judged[doc_id] for doc_id in best}
            relevant |= few[query].keys()
        write_qrels(small / "qrels" / path.name, few)
    queries, corpus = file_of(whole, "queries"), file_of(whole, "corpus")
    shutil.copyfile(queries, small / queries.name)
    others = {one.id for one in islice(read_corpus(corpus), _TRIAL_OTHERS)}
    kept = (one for one in read_corpus(corpus) if one.id in relevant | others)
    short = (replace(one, text=" ".join(one.text.split()[:_TRIAL_WORDS])) for one in kept)
    write_corpus(small / "corpus.jsonl", short)


def in_precision(index: Path, precision: Any) -> Path:
    """The same index with its vectors in another precision: as `index --precision` writes them."""
    folder = index.with_name(f"{index.stem}.{precision}.index")
    if (folder / FOLDER / "vectors.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(index, folder, ignore=shutil.ignore_patterns(FOLDER))
    stored = VectorFiles(index / FOLDER)
    writer = VectorWriter(folder, {}, stored.card.dimension, precision)
    shutil.copytree(index / FOLDER / ENCODER, writer.folder / ENCODER)
    for start in range(0, stored.card.documents, 8192):
        places = np.arange(start, min(start + 8192, stored.card.documents))
        rows, counts = stored.rows_of(places)
        writer.add(stored.ids.at(places), counts, stored.rows.read(rows))
    writer.complete()
    writer.finish(stored.card.model_copy(update={"precision": precision}))
    return folder


def carry_over(index: Path, folder: Path, ranker: Path) -> None:
    """Leave the rows of an index where a build of `folder` finds them, as if it had made them."""
    from secondlook.score.encoder_copy import identity

    stored = VectorFiles(index / FOLDER)
    card = stored.card
    folder.mkdir()
    job = {"ranker": identity(ranker), "corpus": card.corpus, "precision": card.precision}
    writer = VectorWriter(folder, job, card.dimension, card.precision)
    shutil.copytree(index / FOLDER / ENCODER, writer.folder / ENCODER)
    places = np.arange(card.documents)
    rows, counts = stored.rows_of(places)
    writer.add(stored.ids.at(places), counts, stored.rows.read(rows))
    writer.close()


def by_query(run: Path, qrels: Path) -> dict[str, Ranking]:
    """The rankings of judged queries."""
    wanted = read_qrels(qrels)
    return {one.query_id: one for one in read_run(run) if one.query_id in wanted}


def values(run: Path, qrels: Path, measure: str) -> np.ndarray:
    """A measure of each judged query, in the judgments' order."""
    found = evaluate(read_qrels(qrels), list(read_run(run)), [measure])
    return np.array(list(found.per_query[measure].values()))


def gain(more: np.ndarray) -> dict[str, float]:
    """The mean difference of each query's values, with its standard error."""
    return {"difference": more.mean(), "standard error": more.std(ddof=1) / len(more) ** 0.5}


def percentiles(seconds: list[float]) -> list[float]:
    """The middle and the 95th, in milliseconds."""
    return (1e3 * np.percentile(seconds, [50, 95])).tolist()
