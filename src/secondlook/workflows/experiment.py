"""What a report is about: one TOML file that names a comparison's files."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from secondlook.data import read_corpus, read_qrels, read_queries, read_run
from secondlook.errors import MissingDocument
from secondlook.recipe import Settings, read_toml
from secondlook.retrieve import open_index

if TYPE_CHECKING:
    from collections.abc import Collection

    from secondlook.types import Document, Qrels, Query, Ranking


class Experiment(Settings):
    """A change to be judged. Files that are not absolute lie beside the experiment's own."""

    title: str = "Does re-ranking improve the results?"
    qrels: tuple[str, ...] = Field(min_length=1)
    """Several are taken together, as are several files of queries and of one run."""
    queries: tuple[str, ...] = Field(min_length=1)
    base: tuple[str, ...] = Field(min_length=1)
    """The run as it is."""
    new: tuple[str, ...] = Field(min_length=1)
    """The run as it would be."""
    others: tuple[str, ...] = ()
    """Further runs that were tested with it: p-values are corrected for these too, as by `compare`
    of all of them."""
    untuned: tuple[str, ...] = ()
    """The run of the ranker before it was tuned, which the new one is tested against, too."""
    raw: tuple[str, ...] = ()
    """The ranker's raw scores of the same hits, for the calibration of a ranker that fuses: a
    calibration is of raw scores."""
    corpus: str | None = None
    """An index folder or a corpus file: texts for the queries' stories and two breakdowns."""
    ranker: str | None = None
    """What made the new run: its lineage, training curves, calibration and vocabulary."""
    measures: tuple[str, ...] = Field(("nDCG@10", "RR@10", "R@100"), min_length=1)
    """The verdict goes by all; breakdowns and plots by the first."""
    relevant_from: int = Field(1, ge=1)
    """The grade from which a document counts as relevant in breakdowns and calibration."""
    commands: tuple[str, ...] = ()
    """How the runs were made."""

    @field_validator("measures")
    @classmethod
    def _known_measures(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        """A misspelt one is a mistake in this file, as a misspelt key is."""
        from secondlook.evaluate.measures import parse_measure

        for spelling in measures:
            parse_measure(spelling)
        return measures


def read_experiment(path: Path) -> Experiment:
    """Read the file; raises MalformedInput, which says what is wrong with it."""
    return _placed(read_toml(path, Experiment), path.parent)


def _placed(experiment: Experiment, folder: Path) -> Experiment:
    def place(name: str) -> str:
        return name if name.startswith("irds:") else str(folder / name)

    placed: dict[str, object] = {
        key: tuple(map(place, getattr(experiment, key)))
        for key in ("qrels", "queries", "base", "new", "others", "untuned", "raw")
    }
    if experiment.corpus:
        placed["corpus"] = place(experiment.corpus)
    if experiment.ranker and (folder / experiment.ranker).is_dir():  # else it is a hub id
        placed["ranker"] = place(experiment.ranker)
    return experiment.model_copy(update=placed)


def judgments(paths: Collection[str]) -> Qrels:
    """All judgments; a query may be in several files."""
    merged: dict[str, dict[str, int]] = {}
    for path in paths:
        for query, grades in read_qrels(path).items():
            merged.setdefault(query, {}).update(grades)
    return merged


def judged_queries(paths: Collection[str], judged: Qrels) -> list[Query]:
    """The judged queries."""
    return [query for path in paths for query in read_queries(path) if query.id in judged]


def rankings(paths: Collection[str], judged: Qrels) -> list[Ranking]:
    """The rankings of judged queries, which is all that is kept of the runs."""
    read = chain.from_iterable(map(read_run, paths))
    return [ranking for ranking in read if ranking.query_id in judged]


def texts(corpus: str, wanted: Collection[str]) -> dict[str, Document]:
    """The documents by id, as far as the corpus has them."""
    if not Path(corpus).is_dir():
        return {document.id: document for document in read_corpus(corpus) if document.id in wanted}
    index, left = open_index(Path(corpus)), list(wanted)
    try:
        found = index.fetch(left)
    except MissingDocument as missing:
        gone = set(missing.doc_ids)
        left = [doc_id for doc_id in left if doc_id not in gone]
        found = index.fetch(left)
    return dict(zip(left, found, strict=True))
