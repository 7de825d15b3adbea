"""Search an index, and re-rank what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.retrieve import Index
    from secondlook.retrieve.hybrid import By
    from secondlook.retrieve.snippet import Snippet
    from secondlook.types import Corpus, Document, Query, Ranking


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found."""

    rank: int
    document: Document
    score: float
    """With a re-ranker its relevance score, from 0 to 1, as the server gives it."""
    first_rank: int | None = None
    """Before re-ranking; None without a re-ranker, as the following ones are."""
    first_score: float | None = None
    raw_score: float | None = None
    """The re-ranker's."""
    final_score: float | None = None
    """That the order is by, after score fusion."""
    passage: tuple[int, int] | None = None
    """Where the best window of a document in windows begins and ends, in characters."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what there is none of is left out."""
        row: dict[str, Any] = {"rank": self.rank, "id": self.document.id, "score": self.score}
        if self.first_rank is not None:
            row |= {"first_rank": self.first_rank, "first_score": self.first_score}
        if self.raw_score is not None:
            row |= {"raw_score": self.raw_score, "final_score": self.final_score}
        if self.passage is not None:
            start, end = self.passage
            text = self.document.text[start:end]
            row["passage"] = {"start": start, "end": end, "text": text}
        return row | {"title": self.document.title, "text": self.document.text}


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The top results of a search, before and after re-ranking."""

    query: str
    first_stage: tuple[SearchHit, ...]
    reranked: tuple[SearchHit, ...] | None = None
    """None without a re-ranker."""
    language: str = "english"
    """Of the index: its analyzer, by which words of the query match."""

    @property
    def hits(self) -> tuple[SearchHit, ...]:
        """Re-ranked, or of the first stage without a re-ranker; best first."""
        return self.first_stage if self.reranked is None else self.reranked

    def snippet(self, hit: SearchHit) -> Snippet:
        """The stretch of a hit's text, or of its passage, with the most words of the query."""
        from secondlook.retrieve.snippet import snippet

        return snippet(hit.document, self.query, hit.passage, self.language)

    def to_list(self) -> list[dict[str, Any]]:
        """The hits, for JSON."""
        return [hit.to_dict() for hit in self.hits]

    def summary(self) -> str:
        """A line for each hit: rank, id and score."""
        return "\n".join(f"{hit.rank}. {hit.document.id}  {hit.score:.3f}" for hit in self.hits)


def search(
    index: str | Path,
    query: str,
    *,
    k: int = 10,
    ranker: str | Path | None = None,
    depth: int = 100,
    by: By | None = None,
) -> SearchResult:
    """The top `k` documents for a query; a re-ranker re-ranks the first `depth` candidates.

    `by` is "bm25", "vectors" or "hybrid"; by default as the index was tuned to be searched, or
    hybrid where it has vectors and was not tuned.
    """
    from secondlook.types import Query
    from secondlook.workflows.open_index import open_index

    engine, asked = open_index(index, by=by).engine, Query("search", query)
    (first,) = engine.retrieve([asked], k if ranker is None else max(k, depth))
    top = _first_stage(first.top(k), engine)
    reranked = None if ranker is None else _reranked(ranker, asked, first, engine, k)
    return SearchResult(query, top, reranked, engine.card.analyzer)


def _first_stage(first: Ranking, corpus: Corpus) -> tuple[SearchHit, ...]:
    texts = corpus.fetch([hit.doc_id for hit in first.hits])
    return tuple(
        SearchHit(rank, text, hit.score)
        for rank, (hit, text) in enumerate(zip(first.hits, texts, strict=True), start=1)
    )


def _reranked(
    source: str | Path, query: Query, first: Ranking, corpus: Index, k: int
) -> tuple[SearchHit, ...]:
    from secondlook.rank import second_look
    from secondlook.score.ranker import Ranker
    from secondlook.workflows.vectors import stored_scorer_of

    ranker = Ranker.load(source)
    texts = corpus.fetch([hit.doc_id for hit in first.hits])
    pairs = [(query, text) for text in texts]
    encoded = ranker.encode(pairs)
    stored = stored_scorer_of(corpus, source)
    scored = ranker.score_encoded(encoded) if stored is None else stored.scored(pairs)
    relevance = ranker.relevance(scored.scores)
    places = {hit.doc_id: place for place, hit in enumerate(first.hits)}
    hits = []
    final = second_look(first, scored.scores, ranker.fusion)
    for rank, hit in enumerate(final.hits[:k], start=1):
        place = places[hit.doc_id]
        spans = encoded[place].spans
        hits.append(
            SearchHit(
                rank,
                texts[place],
                float(relevance[place]),
                first_rank=place + 1,
                first_score=first.hits[place].score,
                raw_score=float(scored.scores[place]),
                final_score=hit.score,
                passage=spans[int(scored.best[place])] if len(spans) > 1 else None,
            )
        )
    return tuple(hits)
