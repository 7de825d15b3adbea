"""The scale of relevance scores that needs no judgments: fitted to related and unrelated texts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from heapq import nsmallest
from importlib.resources import files
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import SecondlookError
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import FittedOn, PlattCalibration
from secondlook.score.scale import fit_spread
from secondlook.score.scale_cache import cached_scale
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from secondlook.model.settings import ScoreSource
    from secondlook.types import Pair, Qrels, Scorer

UNRELATED = 2
"""Unrelated documents for each query."""
SAMPLED = 64
"""Queries."""
_LEAST = 10
"""Pairs of each kind that a scale needs."""
_SHORTEST = 20
"""Characters of a text that is worth a score."""
_QUESTION_TYPES = {
    "who": "person",
    "where": "location",
    "when": "numeric",
    "how many": "numeric",
    "how much": "numeric",
    "what year": "numeric",
}
_LONGEST = 200
"""Characters of a title or sentence that stands for a query."""


@dataclass(frozen=True, slots=True)
class ScalePairs:
    """Pairs to fit a scale to."""

    source: ScoreSource
    related: tuple[Pair, ...]
    unrelated: tuple[Pair, ...]
    assumed: str
    """What makes them related or unrelated."""


def scale_summary(fitted_on: FittedOn) -> str:
    """What a scale without judgments was fitted on, for people."""
    return (
        f"scores from 0 to 1 by {fitted_on.source}: {fitted_on.relevant:,} related and "
        f"{fitted_on.pairs - fitted_on.relevant:,} unrelated pairs\n"
        f"assumed: {fitted_on.assumed}"
    )


def fit_scale(scorer: Scorer, pairs: ScalePairs) -> PlattCalibration:
    """The scale on which related pairs lie near 1 and unrelated ones near 0; seconds of scoring.

    One pair in four is taken to be related, so .5 lies between the two kinds. A scale by the
    reference pairs, which are the same for everybody, is kept in the user's cache.
    """
    if not pairs.related or not pairs.unrelated:
        raise SecondlookError("a scale needs related and unrelated pairs; there are none")
    every, data = (*pairs.related, *pairs.unrelated), _fingerprint(pairs)

    def fit() -> PlattCalibration:
        scores = scorer.score(every).astype(np.float64)
        fitted = fit_spread(scores, np.arange(len(scores)) < len(pairs.related))
        return PlattCalibration(
            slope=fitted.slope,
            intercept=fitted.intercept,
            fitted_on=FittedOn(
                source=pairs.source,
                pairs=len(scores),
                relevant=len(pairs.related),
                assumed=f"{pairs.assumed}; one pair in four is related",
                data=data,
            ),
        )

    return cached_scale(scorer, every, data, fit) if pairs.source == "reference pairs" else fit()


def store_scale(folder: Path, scorer: Scorer, pairs: ScalePairs) -> PlattCalibration:
    """Fit the scale of the ranker in `folder`, which `scorer` has loaded, and store it there."""
    scale = fit_scale(scorer, pairs)
    settings = open_checkpoint(folder).settings
    write_settings(folder, settings.model_copy(update={"calibration": scale}))
    return scale


def reference_pairs(every: int = 1) -> ScalePairs:
    """64 questions of SQuAD, each with its own passage and with two of other articles.

    `every` takes only each second, third, … question.
    """
    text = (files("secondlook.score") / "reference_pairs.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()[::every]]
    return _paired(
        "reference pairs",
        [
            (
                _asked(str(n), row["question"]),
                Document(str(n), row["passage"]),
                (row["article"],),
                row["article"],
            )
            for n, row in enumerate(rows)
        ],
        "a question is related to its own passage, and to no passage of another article",
    )


def _asked(query_id: str, question: str) -> Query:
    """With a type, which a ranker of query types may have no classifier to predict."""
    words = f"{question.lower()} "
    types = (kind for start, kind in _QUESTION_TYPES.items() if f"{start} " in words)
    return Query(query_id, question, next(types, "description"))


def training_pairs(positives: Iterable[tuple[Query, Document, Collection[str]]]) -> ScalePairs:
    """Queries that have a relevant document, each with its own and with other queries'.

    Of each: the query, its document, and the ids of all that are relevant to it.
    """
    own = [(query, document, ids, document.id) for query, document, ids in positives]
    return _paired(
        "training data",
        own,
        "a query is related to a document that was judged relevant to it, and to no document that "
        "was judged relevant to another query only",
    )


def corpus_pairs(
    documents: Iterable[Document],
    queries: Iterable[Query] = (),
    qrels: Qrels | None = None,
    seed: int = 0,
) -> ScalePairs:
    """Pairs of a user's own texts, drawn in one pass over the corpus.

    A query is related to a document that was judged relevant to it. Where there are no judgments,
    titles, or first sentences where there are none, stand for queries, and are related to the
    rest of their own document. Unrelated is any query with documents drawn at random.
    """
    judged = qrels or {}
    asked = list(islice((q for q in queries if not judged or q.id in judged), SAMPLED))
    wanted = (
        {doc_id for query in asked for doc_id, grade in judged[query.id].items() if grade > 0}
        if judged
        else set()
    )
    sample, by_id = _drawn(documents, wanted, seed)
    stand_ins = list(_stand_ins(sample))[:SAMPLED]
    related = [
        (query, by_id[doc_id])
        for query in asked
        for doc_id in islice(
            (
                doc_id
                for doc_id, grade in judged.get(query.id, {}).items()
                if grade > 0 and doc_id in by_id  # which holds other queries' relevant ones, too
            ),
            1,
        )
    ]
    assumed = "a query is related to what was judged relevant to it"
    if not related:
        related = stand_ins
        assumed = "a title or first sentence is related to the rest of its document"
    rng = Random(seed)  # noqa: S311 - a sample
    unrelated = [
        (query, document)
        for query in asked or [query for query, _ in stand_ins]
        for document in rng.sample(sample, min(UNRELATED, len(sample)))
        if document.id != query.id and document.id not in judged.get(query.id, {})
    ]
    if len(related) < _LEAST or len(unrelated) < _LEAST:
        raise SecondlookError(
            f"the corpus makes {len(related)} related and {len(unrelated)} unrelated pairs; at "
            f"least {_LEAST} of each are needed. Give a larger corpus, or none: then the built-in "
            "reference pairs are taken"
        )
    assumed += ", and to no document drawn at random"
    return ScalePairs("corpus", tuple(related), tuple(unrelated), assumed)


def _drawn(
    documents: Iterable[Document], wanted: Collection[str], seed: int
) -> tuple[list[Document], dict[str, Document]]:
    """A sample by a hash of the ids, so of a corpus that grew mostly the same; and the wanted."""
    found: dict[str, Document] = {}

    def passing() -> Iterator[Document]:
        for document in documents:
            if document.id in wanted:
                found[document.id] = document
            yield document

    def draw(document: Document) -> bytes:
        return sha256(f"{seed}\0{document.id}".encode()).digest()

    return nsmallest(4 * SAMPLED, passing(), key=draw), found


def _stand_ins(documents: Iterable[Document]) -> Iterator[tuple[Query, Document]]:
    """Titles or first sentences as queries, with what is left of their documents."""
    for document in documents:
        title, text = document.title.strip(), document.text.strip()
        if not title:
            title, _, text = text.partition(". ")
        if title and len(title) <= _LONGEST and len(text) >= _SHORTEST:
            yield Query(document.id, title), replace(document, title="", text=text)


def _paired(
    source: ScoreSource, own: Sequence[tuple[Query, Document, Collection[str], str]], assumed: str
) -> ScalePairs:
    """Each query with its own document, and with the next ones that are not of its kinds.

    Of each: a query, its document, the kinds that are related to it, and the document's kind.
    """
    related_to: dict[str, set[str]] = {}
    for query, _, kinds, _ in own:
        related_to.setdefault(query.text, set()).update(kinds)
    unrelated = []
    for place, (query, *_) in enumerate(own):
        turned = [*own[place + 1 :], *own[:place]]
        others = [document for _, document, _, kind in turned if kind not in related_to[query.text]]
        unrelated += [(query, document) for document in others[:UNRELATED]]
    related = tuple((query, document) for query, document, *_ in own)
    return ScalePairs(source, related, tuple(unrelated), assumed)


def _fingerprint(pairs: ScalePairs) -> str:
    digest = sha256()
    for query, document in (*pairs.related, *pairs.unrelated):
        digest.update(f"{query.text}\0{document.title}\0{document.text}\0".encode())
    return f"sha256:{digest.hexdigest()}"
