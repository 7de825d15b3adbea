"""Work over a corpus, batch by batch: by this process, or in parts by the workers of a cluster.

Both call the same function on a batch, so what is made is the same.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.data.beir import corpus_lines
from secondlook.data.lines import lines, write_lines
from secondlook.data.partial import PartialLines
from secondlook.scale.parts import Parts
from secondlook.scale.ray_job import run
from secondlook.types import Document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from secondlook.retrieve.weigh import FrequencySettings
    from secondlook.score.vectors import TextVectors

    Rows = Callable[[list[Document]], list[str]]
    """What a batch of documents becomes."""


def weighing(weigher: str, settings: FrequencySettings, device: str | None) -> Rows:
    """Opens a weigher; what it returns gives documents their weights."""
    from secondlook.model.deepct import load_weigher
    from secondlook.retrieve.weigh import PartReader, Weigher
    from secondlook.score.word_weights import WordWeights

    model = load_weigher(weigher)
    reader = PartReader(model.tokenizer, model.settings.max_length, model.settings.analyzer)
    worker = Weigher(reader, WordWeights(model.network, device=device), settings)
    return lambda documents: list(corpus_lines(worker.weighed(documents)))


def expanding(
    expander: str, ranker: str | None, count: int, top_k: int, seed: int, device: str | None
) -> Rows:
    """Opens an expander, and a ranker; what it returns gives documents their queries, scored."""
    from secondlook.model.doc2query import load_expander
    from secondlook.retrieve.expand import Expanded, scored, text_of
    from secondlook.score.predicted_queries import PredictedQueries
    from secondlook.score.ranker import Ranker

    ask = PredictedQueries(load_expander(expander), count, top_k=top_k, seed=seed, device=device)
    scorer = None if ranker is None else Ranker.load(ranker)

    def rows(documents: list[Document]) -> list[str]:
        found = ask([(one.id, text_of(one)) for one in documents])
        batch = [Expanded(*both) for both in zip(documents, found, strict=True)]
        return [one.line for one in (batch if scorer is None else scored(batch, scorer))]

    return rows


def encoding(encoder: Path) -> Rows:
    """Opens an encoder; what it returns gives documents their vectors, to the last bit."""
    from secondlook.score.vectors import VectorEncoder

    opened = VectorEncoder.load(encoder)

    def rows(documents: list[Document]) -> list[str]:
        made = opened.documents(documents)
        own = np.split(made.rows, np.cumsum(made.counts)[:-1])  # of each [windows, dimension]
        return [
            json.dumps([document.id, int(cut), b64encode(vectors.tobytes()).decode()])
            for document, cut, vectors in zip(documents, made.cut, own, strict=True)
        ]

    return rows


def vectors_of(rows: Iterable[str], dimension: int) -> tuple[list[str], TextVectors]:
    """The ids and vectors of the documents that these rows were made of."""
    from secondlook.score.vectors import TextVectors

    ids, cut, encoded = zip(*map(json.loads, rows), strict=True)
    own = [np.frombuffer(b64decode(one), np.float32).reshape(-1, dimension) for one in encoded]
    counts = np.array([len(vectors) for vectors in own], np.int64)
    return list(ids), TextVectors(np.concatenate(own), counts, np.array(cut, np.int64))


class MadeInParts:
    """The rows that a cluster made, as PartialLines has them."""

    def __init__(self, target: Path, parts: Parts, count: int) -> None:
        self._target, self._parts, self._count = target, parts, count

    def rows(self) -> Iterator[str]:
        """All rows, in the order of the documents."""
        made = self._parts.results(self._count)
        return (row for path in made for _, row in lines(path, may_be_empty=True))

    def finish(self, rows: Iterable[str]) -> None:
        """Write the target, compressed as its name says, and remove what was beside it."""
        write_lines(self._target, rows)
        self.remove()

    def remove(self) -> None:
        """Nothing is left beside the target."""
        self._parts.remove()


def made(
    target: Path,
    job: Mapping[str, Any],
    tools: Callable[[], Rows],
    documents: Iterable[Document],
    at_once: int,
    *,
    advance: Callable[[int], None],
    ray: str | None = None,
    first: int = 0,
) -> PartialLines | MadeInParts:
    """All rows of the documents, made here or on the Ray cluster at `ray`; killed, it goes on.

    On a cluster, `documents` may be those of the parts from number `first` on.
    """
    if ray is None:
        here = PartialLines(target, job)
        here.fill(documents, tools(), at_once, advance)
        return here
    parts = Parts(target, job, first)
    rest = iter(documents)
    batches = iter(lambda: list(islice(rest, at_once)), [])
    count = parts.give(map(as_work, batches))
    missing = parts.missing(count)
    advance(at_once * (count - first - len(missing)))
    run(ray, missing, partial(_on_work, tools), advance=advance)
    return MadeInParts(target, parts, count)


def as_work(documents: Sequence[Document]) -> str:
    """A part's documents."""
    return json.dumps([[d.id, d.text, d.title, d.queries, d.weights] for d in documents])


def from_work(text: str) -> list[Document]:
    """The same back."""
    return [
        Document(doc_id, body, title, tuple(queries), weights)
        for doc_id, body, title, queries, weights in json.loads(text)
    ]


def _on_work(tools: Callable[[], Rows]) -> Callable[[str], tuple[str, int]]:
    rows = tools()

    def do(work: str) -> tuple[str, int]:
        documents = from_work(work)
        return "".join(row + "\n" for row in rows(documents)), len(documents)

    return do
