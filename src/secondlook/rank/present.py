"""Texts of what was found, where documents may have left the index since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.errors import MissingDocument, VanishedDocuments
from secondlook.types import Document, Ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.types import Corpus, Pair, Query


def pairs_of(
    queries: Sequence[Query], rankings: Sequence[Ranking], corpus: Corpus, scorer: object
) -> tuple[list[Ranking], list[Pair]]:
    """The rankings without hits whose documents vanished, and a pair for every hit left.

    Nothing is fetched for a scorer that knows documents by their ids: its `reads_texts` is False.
    """
    wanted = list(dict.fromkeys(hit.doc_id for ranking in rankings for hit in ranking.hits))
    documents: Mapping[str, Document]
    if getattr(scorer, "reads_texts", True):
        documents = fetch_present(corpus, wanted)
    else:
        documents = {doc_id: Document(doc_id, "") for doc_id in wanted}
    present = [still_there(ranking, documents) for ranking in rankings]
    pairs = [
        (query, documents[hit.doc_id])
        for query, ranking in zip(queries, present, strict=True)
        for hit in ranking.hits
    ]
    return present, pairs


def fetch_present(corpus: Corpus, doc_ids: Sequence[str]) -> Mapping[str, Document]:
    """The documents by id, without those that vanished from an index that others write to.

    Raises MissingDocument where none of several is left, and for any that is missing from an index
    that only its maker changes: then the ids are of another corpus.
    """
    try:
        return dict(zip(doc_ids, corpus.fetch(doc_ids), strict=True))
    except VanishedDocuments as gone:
        if not gone.found and len(doc_ids) > 1:
            raise MissingDocument(gone.doc_ids, gone.where) from gone
        found: Mapping[str, Document] = gone.found
        return found


def still_there(ranking: Ranking, documents: Mapping[str, Document]) -> Ranking:
    """The hits whose documents there are."""
    hits = tuple(hit for hit in ranking.hits if hit.doc_id in documents)
    return ranking if len(hits) == len(ranking.hits) else Ranking(ranking.query_id, hits)
