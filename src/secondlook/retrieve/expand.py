"""doc2query−−: of the queries predicted for a corpus, those that a ranker finds answered.

Gospodinov, MacAvaney and Macdonald, 2023: sampled queries that their passage does not answer hurt
the first stage; a ranker tells them, and the best share of all queries is kept.
"""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from secondlook.data.beir import corpus_lines
from secondlook.errors import SecondlookError
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from secondlook.types import Scorer


@dataclass(frozen=True, slots=True)
class Expanded:
    """A document with the queries predicted for it, and a ranker's score of each."""

    document: Document
    queries: tuple[str, ...]
    scores: tuple[float, ...] | None = None

    @classmethod
    def read(cls, line: str) -> Expanded:
        """As `line` wrote it."""
        record = json.loads(line)
        doc_id, text, title, earlier, weights = record["document"]
        scores = record["scores"]
        return cls(
            Document(doc_id, text, title, tuple(earlier), weights),
            tuple(record["queries"]),
            None if scores is None else tuple(scores),
        )

    @property
    def line(self) -> str:
        """Everything in one line of JSON."""
        one = self.document
        record = {
            "document": [one.id, one.text, one.title, one.queries, one.weights],
            "queries": self.queries,
            "scores": self.scores,
        }
        return json.dumps(record, ensure_ascii=False)

    def above(self, bar: float) -> Document:
        """The document with those of its queries that score so much, all where none was scored.

        What it had before, earlier queries among it, it keeps.
        """
        scores = self.scores if self.scores is not None else [bar] * len(self.queries)
        kept = [q for q, score in zip(self.queries, scores, strict=True) if score >= bar]
        return replace(self.document, queries=(*self.document.queries, *kept))


def unweighed(documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents; raises SecondlookError at one whose new queries no search would see."""
    for document in documents:
        if document.weights is not None:
            raise SecondlookError(
                f"document {document.id!r} has term weights, and an index goes by these in place "
                "of predicted queries: expand the corpus as it was before it was weighed, and "
                "weigh the expanded one"
            )
        yield document


def text_of(document: Document) -> str:
    """What queries are asked of."""
    return f"{document.title} {document.text}".strip()


def scored(expanded: Sequence[Expanded], scorer: Scorer) -> list[Expanded]:
    """The same with the scorer's opinion of each query beside its document."""
    pairs = [(Query("", text), one.document) for one in expanded for text in one.queries]
    scores = scorer.score(pairs).tolist() if pairs else []
    ends = np.cumsum([0, *(len(one.queries) for one in expanded)]).tolist()
    return [
        Expanded(one.document, one.queries, tuple(scores[start:end]))
        for one, (start, end) in zip(expanded, pairwise(ends), strict=True)
    ]


def best(lines: Callable[[], Iterator[str]], share: float) -> Iterator[str]:
    """The lines as a corpus, with the best share of all queries; the lines are read twice.

    Only the scores are held in memory, four bytes a query.
    """
    scores = array("f")
    for line in lines():
        scores.extend(Expanded.read(line).scores or ())
    bar = float(np.quantile(np.frombuffer(scores, np.float32), 1 - share)) if scores else 0.0
    return corpus_lines(Expanded.read(line).above(bar) for line in lines())
