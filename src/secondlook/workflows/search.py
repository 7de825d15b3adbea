"""Search an index, and re-rank what it finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.retrieve import Index
    from secondlook.retrieve.hybrid import By
    from secondlook.retrieve.search_options import SearchOptions
    from secondlook.retrieve.snippet import Snippet
    from secondlook.score.open_ranker import AnyRanker
    from secondlook.score.vector_scorer import StoredScorer
    from secondlook.types import Corpus, Document, Pair, Query, Ranking


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found."""

    rank: int
    document: Document
    score: float | None
    """With a re-ranker its relevance score, from 0 to 1, as the server gives it; None below the
    depth, where nothing was re-ranked."""
    first_rank: int | None = None
    """Before re-ranking; None without a re-ranker, as the following ones are."""
    first_score: float | None = None
    raw_score: float | None = None
    """The re-ranker's."""
    final_score: float | None = None
    """That the order is by, after score fusion."""
    passage: tuple[int, int] | None = None
    """Where the best window of a document in windows begins and ends, in characters."""

    @property
    def shown_score(self) -> str:
        """The score for people."""
        return "not re-ranked" if self.score is None else f"{self.score:.3f}"

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
    by: By = "bm25"
    """What the first stage went by; of an attached index, "bm25" stands for its own search."""
    advice: str | None = None
    """What to do where the re-ranker's scores have no weight in the order."""
    restricted: bool = False
    """Whether filters, parameters or a routing were given."""

    @property
    def hits(self) -> tuple[SearchHit, ...]:
        """Re-ranked, or of the first stage without a re-ranker; best first."""
        return self.first_stage if self.reranked is None else self.reranked

    def why_nothing(self) -> str:
        """Why there are no hits, where there are none."""
        if not self.query.strip():
            return "it is empty"
        if self.restricted:
            return "no document matches it within the filters, parameters and routing given"
        return "no document contains a word of it"

    def snippet(self, hit: SearchHit) -> Snippet:
        """The stretch of a hit's text, or of its passage, with the most words of the query."""
        from secondlook.retrieve.snippet import snippet

        return snippet(hit.document, self.query, hit.passage, self.language)

    def to_list(self) -> list[dict[str, Any]]:
        """The hits, for JSON."""
        return [hit.to_dict() for hit in self.hits]

    def summary(self) -> str:
        """A line for each hit: rank, id and score."""
        return "\n".join(f"{hit.rank}. {hit.document.id}  {hit.shown_score}" for hit in self.hits)


def search(
    index: str | Path,
    query: str,
    *,
    k: int = 10,
    ranker: str | Path | None = None,
    depth: int | None = None,
    by: By | None = None,
    options: SearchOptions | None = None,
) -> SearchResult:
    """The top `k` documents for a query; a re-ranker re-ranks the first `depth` candidates.

    By default these are 100.
    Where `k` is larger, the candidates below the depth follow in the order they had.
    `by` is "bm25", "vectors" or "hybrid"; by default as the index was tuned to be searched, or
    hybrid where it has vectors and was not tuned. `options` are filters, parameters and routing
    for an attached index.
    """
    from secondlook.errors import WrongArgument
    from secondlook.retrieve.search_options import SearchOptions, searched_with
    from secondlook.types import Query
    from secondlook.workflows.open_index import open_index, searched_by

    if k < 1 or (depth is not None and depth < 1):
        raise WrongArgument(f"`k` and `depth` are 1 or more, not {k if k < 1 else depth}")
    if depth is not None and ranker is None:
        raise WrongArgument("`depth` is how many candidates are re-ranked: it needs `ranker`")
    depth = 100 if depth is None else depth
    engine = searched_with(open_index(index, by=by).engine, options or SearchOptions())
    asked = Query("search", query)
    (first,) = engine.retrieve([asked], k if ranker is None else max(k, depth))
    top = _first_stage(first.top(k), engine)
    how = engine.card.analyzer, searched_by(engine)
    result = SearchResult(query, top, None, *how, restricted=bool(options))
    if ranker is None:
        return result
    reranked, advice = _reranked(ranker, asked, first, engine, k, depth)
    return replace(result, reranked=reranked, advice=advice)


def _first_stage(first: Ranking, corpus: Corpus) -> tuple[SearchHit, ...]:
    from secondlook.rank.present import fetch_present, still_there

    texts = fetch_present(corpus, [hit.doc_id for hit in first.hits])
    return tuple(
        SearchHit(rank, texts[hit.doc_id], hit.score)
        for rank, hit in enumerate(still_there(first, texts).hits, start=1)
    )


def _reranked(
    source: str | Path, query: Query, first: Ranking, corpus: Index, k: int, depth: int
) -> tuple[tuple[SearchHit, ...], str | None]:
    """The hits, and advice where the ranker's scores have no weight."""
    from secondlook.rank import second_look
    from secondlook.rank.present import fetch_present, still_there
    from secondlook.score.open_ranker import open_ranker, unused_scores_advice
    from secondlook.workflows.vectors import stored_scorer_of

    ranker = open_ranker(source)
    found = fetch_present(corpus, [hit.doc_id for hit in first.hits])
    first = still_there(first, found)
    texts = [found[hit.doc_id] for hit in first.hits]
    stored = stored_scorer_of(corpus, source)
    pairs = [(query, text) for text in texts[:depth]]
    scores, passages = _scores(ranker, pairs, stored)
    relevance = ranker.relevance(scores)
    places = {hit.doc_id: place for place, hit in enumerate(first.hits)}
    hits = []
    final = second_look(first.top(depth), scores, ranker.fusion)
    for rank, hit in enumerate(final.hits, start=1):
        place = places[hit.doc_id]
        hits.append(
            SearchHit(
                rank,
                texts[place],
                float(relevance[place]),
                first_rank=place + 1,
                first_score=first.hits[place].score,
                raw_score=float(scores[place]),
                final_score=hit.score,
                passage=passages[place],
            )
        )
    below = zip(first.hits[depth:], texts[depth:], strict=True)
    for rank, (hit, text) in enumerate(below, start=len(hits) + 1):
        hits.append(SearchHit(rank, text, None, first_rank=rank, first_score=hit.score))
    return tuple(hits[:k]), unused_scores_advice(source, ranker)


def _scores(
    ranker: AnyRanker, pairs: list[Pair], stored: StoredScorer | None
) -> tuple[NDArray[np.float32], list[tuple[int, int] | None]]:
    """Raw scores, and where the best window of each document in windows begins and ends."""
    from secondlook.score.remote_ranker import RemoteRanker

    if isinstance(ranker, RemoteRanker):
        return ranker.score(pairs), [None] * len(pairs)
    encoded = ranker.encode(pairs)
    scored = None if stored is None else stored.scored(pairs)
    # a text that has other windows than its stored vectors was changed since: texts are read
    if scored is None or any(
        len(own) != len(one.spans) for own, one in zip(scored.windows, encoded, strict=True)
    ):
        scored = ranker.score_encoded(encoded)
    return scored.scores, [
        one.spans[best] if len(one.spans) > 1 else None
        for one, best in zip(encoded, scored.best.tolist(), strict=True)
    ]
