"""Queries as Lucene takes them, behind OpenSearch and Elasticsearch alike."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondlook.types import Query

CONTENTS = "contents"
"""The field that is searched: title and text as one."""

_MOST_TERMS = 1_024  # indices.query.bool.max_clause_count
_PIECE = 1_000  # words; more_like_this reads no more than 5,000 terms of one text

Search = dict[str, Any]


def match(text: str) -> Search:
    """Any text at all, as a disjunction of its terms.

    Lucene takes so many clauses and counts a repeated word each time. A text too short to hold
    that many words goes as it is; in a longer one each distinct word goes once, weighted by how
    often it comes, which gives the same scores.
    """
    if len(text) < 2 * _MOST_TERMS:
        return {"match": {CONTENTS: text}}
    by_times: defaultdict[int, list[str]] = defaultdict(list)
    for word, times in Counter(text.split()).items():
        by_times[times].append(word)
    groups = [
        {"match": {CONTENTS: {"query": " ".join(words), "boost": times}}}
        for times, words in by_times.items()
    ]
    return {"bool": {"should": groups}}


def most_telling(text: str) -> Search:
    """For a text of more distinct terms than Lucene takes: those that tell most (by tf·idf).

    Terms that the index lacks do not count, so that nothing is lost until it holds that many of
    the text's terms. Each counts once.
    """
    words = text.split()
    pieces = [" ".join(words[start : start + _PIECE]) for start in range(0, len(words), _PIECE)]
    return {
        "more_like_this": {
            "fields": [CONTENTS],
            "like": pieces,
            "max_query_terms": _MOST_TERMS,
            "min_term_freq": 1,
            "min_doc_freq": 1,
            "minimum_should_match": "1",
        }
    }


def is_too_long(answer: dict[str, Any]) -> bool:
    """Whether a search was refused for the number of its terms."""
    return "maxClauseCount" in str(answer.get("error"))


@dataclass(frozen=True, slots=True)
class SearchBody:
    """A search for a query: its `body` beside what all searches have."""

    query: Query
    body: Search
    words: bool = True
    """Whether it is by words, whose weights all shards must agree on."""


def msearch(searches: Iterable[SearchBody], k: int, *, of_all_shards: bool) -> str:
    """The body of a multi-search: what to search for queries.

    Ids come from doc values, so that no stored field is read. The same text is always answered by
    the same copy of a shard while the cluster stays as it is: copies may disagree on which of the
    documents that tie for the last place come in.
    """
    body = {
        "size": k,
        "track_total_hits": False,
        "_source": False,
        "stored_fields": "_none_",
        "docvalue_fields": ["doc_id"],
    }
    lines = []
    for asked in searches:
        text = asked.query.text.encode(errors="replace")
        header: dict[str, Any] = {
            "allow_partial_search_results": False,
            "preference": f"text{crc32(text)}",
        }
        if asked.words:
            exact = "dfs_" if of_all_shards else ""  # term statistics of all shards
            header["search_type"] = f"{exact}query_then_fetch"
        lines += [json.dumps(header), json.dumps({**asked.body, **body})]
    return "\n".join(lines) + "\n"
