"""Pairs of query and document become Features."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from secondlook.encode.chat import ChatEncoder
from secondlook.encode.features import Features
from secondlook.encode.markers import QueryTerms, insert, marker_ids, match, term_reader
from secondlook.encode.query_types import TYPES, read_type
from secondlook.encode.template import Template
from secondlook.encode.tokens import Reader, Tokens, TokenStore, text_only
from secondlook.encode.windows import Window, split
from secondlook.errors import MissingQueryType, UnusableTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

    from secondlook.encode.markers import Marks
    from secondlook.encode.settings import EncodeSettings
    from secondlook.encode.type_classifier import TypeClassifier
    from secondlook.types import Document, Pair, Query

_QUERY_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class _Head:
    """What stands before the document's own tokens: the same in all pairs of a query."""

    tokens: Tokens
    terms: QueryTerms
    first: int
    cut: int
    room: int
    """How many tokens are left for the document and for all markers."""


class Encoder:
    """Encodes pairs as one tokenizer and one set of settings say.

    Special tokens are the tokenizer's own. One that is spelled out inside a text, as in
    "what does [SEP] do", is text there: no document can forge the frame it is put in. A lone
    surrogate becomes U+FFFD. The document's tail is cut where the whole would be too long; without
    `max_query_length`, the tail of the longer text. In the forms of two sequences each text is cut
    for itself, so that no query changes what is read of a document. With `chat`, `ChatEncoder` does
    all of this.

    `types` predicts the type of a query that comes without one. `cache_bytes` bounds the memory
    for documents already tokenised. Threads may share an encoder.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        settings: EncodeSettings,
        *,
        types: TypeClassifier | None = None,
        cache_bytes: int = 128 * 2**20,
    ) -> None:
        tokenizer = text_only(tokenizer)  # the caller's stays as it is
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.settings = settings
        self._tokenizer = tokenizer
        self._types = types
        self._chat: ChatEncoder | None = None
        if settings.chat is not None:
            self._chat = ChatEncoder(tokenizer, settings.chat, settings.max_length)
            return
        self._template = Template.read(tokenizer, settings.form)
        self._markers, term_of = None, None
        if settings.markers is not None:
            self._markers = marker_ids(tokenizer, settings.markers)
            term_of = term_reader(tokenizer, settings.markers)
        reader = Reader(tokenizer, settings.max_length, term_of)
        self._queries = TokenStore(reader, settings.query_prompt, _QUERY_BYTES)
        self._documents = TokenStore(reader, settings.document_prompt, cache_bytes)
        [prompt] = reader.read([settings.query_prompt])
        self._prompt_length = prompt.total
        self._starts = self._read_starts(reader)
        frame = self._template
        # markers come in both texts and share one limit, in every form
        self._cut_apart = settings.form != "joint" and settings.markers is None
        around_document = len(frame.opening) + len(frame.after)
        self._document_room = settings.max_length - around_document
        taken = len(frame.between) + (0 if self._cut_apart else around_document)
        self._rooms = {
            name: settings.max_length - taken - len(start) for name, start in self._starts.items()
        }

    def encode(self, pairs: Sequence[Pair]) -> list[Features]:
        """One Features per pair, in the order given."""
        if not pairs:
            return []
        if self._chat is not None:
            before_query, before_text = self.settings.query_prompt, self.settings.document_prompt
            return self._chat.encode(
                [(before_query + q.text, before_text + self._text(d)) for q, d in pairs]
            )
        documents = self._documents.read([self._text(document) for _, document in pairs])
        heads = self._heads([query for query, _ in pairs], documents)
        if self.settings.markers is None:
            shown = [d.clip(head.room) for head, d in zip(heads, documents, strict=True)]
            return self._lay_out(heads, shown)
        most = self.settings.markers.max_terms
        marks = [match(h.terms, d, h.room, most) for h, d in zip(heads, documents, strict=True)]
        shown = [d.clip(one.shown) for d, one in zip(documents, marks, strict=True)]
        return self._lay_out(heads, shown, marks)

    def windows(self, documents: Sequence[Document]) -> list[list[Window]]:
        """Each document as the windows its scores are pooled from; without settings, one."""
        if self.settings.windows is None:
            return [[Window(document, 0, len(document.text))] for document in documents]
        return split(documents, self.settings.windows, self._tokenizer)

    def _read_starts(self, reader: Reader) -> dict[str | None, Tokens]:
        """What stands before the query, for each type it may have; None is none."""
        frame = self._template
        if not self.settings.query_types:
            return {None: frame.before}
        return {
            name: Tokens.join(frame.before, tokens.unmatched(), frame.separator)
            for name, tokens in zip(TYPES, reader.read(TYPES), strict=True)
        }

    def lead(self, document: Document) -> str:
        """What is read before the document's text: its title, where the settings want it."""
        separator = self.settings.title_separator
        return "" if separator is None or not document.title else document.title + separator

    def _text(self, document: Document) -> str:
        return self.lead(document) + document.text

    def _heads(self, queries: Sequence[Query], documents: Sequence[Tokens]) -> list[_Head]:
        distinct = {(query.text, query.type): query for query in queries}
        tokens = self._queries.read([text for text, _ in distinct])
        types = self._types_of(list(distinct.values()))
        read = dict(zip(distinct, zip(tokens, types, strict=True), strict=True))
        heads: dict[tuple[str, str | None, int], _Head] = {}
        found = []
        for query, document in zip(queries, documents, strict=True):
            own, query_type = read[query.text, query.type]
            limit = self._query_limit(own.total, document.total, query_type)
            key = query.text, query.type, limit
            if key not in heads:
                heads[key] = self._head(own, query_type, limit)
            found.append(heads[key])
        return found

    def _types_of(self, queries: Sequence[Query]) -> list[str | None]:
        if not self.settings.query_types:
            return [None] * len(queries)
        untyped = [query for query in queries if query.type is None]
        if untyped and self._types is None:
            raise MissingQueryType(
                f"query {untyped[0].id!r} has no type, and the ranker has no classifier to "
                "predict one; give queries a type, or train one with: secondlook types train"
            )
        texts = [query.text for query in untyped]
        predicted = iter(self._types.predict(texts) if self._types else ())
        return [read_type(next(predicted) if q.type is None else q.type) for q in queries]

    def _query_limit(self, query: int, document: int, query_type: str | None) -> int:
        """How many of the query's tokens are shown beside a document of so many."""
        room, limit = self._rooms[query_type], self.settings.max_query_length
        if (least := min(room, self._document_room)) < 0:
            raise UnusableTokenizer(
                f"this tokenizer's special tokens alone are {self.settings.max_length - least}, "
                f"and max_length is {self.settings.max_length}; raise max_length"
            )
        if limit is None:
            return min(query, room) if self._cut_apart else longest_first(query, document, room)
        return min(limit + self._prompt_length, room, query)

    def _head(self, query: Tokens, query_type: str | None, limit: int) -> _Head:
        frame, shown = self._template, query.clip(limit)
        tokens = Tokens.join(self._starts[query_type], shown, frame.between, frame.opening)
        return _Head(
            tokens,
            QueryTerms(tokens.terms),
            first=len(tokens) - len(frame.opening),
            cut=query.total - len(shown),
            room=self._document_room
            if self._cut_apart
            else self.settings.max_length - len(tokens) - len(frame.after),
        )

    def _lay_out(
        self, heads: list[_Head], shown: list[Tokens], marks: list[Marks] | None = None
    ) -> list[Features]:
        """All pairs in one run of tokens, marked there, then taken apart again."""
        after = self._template.after
        couples = list(zip(heads, shown, strict=True))
        runs = [run for head, document in couples for run in (head.tokens, document, after)]
        ids = np.concatenate([run.ids for run in runs])
        begins = np.concatenate([run.begins for run in runs])
        sides = np.array(  # [pairs, 2], how many tokens either part has
            [(h.first, len(h.tokens) - h.first + len(d) + len(after)) for h, d in couples]
        )
        if marks is not None:
            assert self._markers is not None
            unmarked = np.zeros(len(after), np.intp)
            parts = [part for one in marks for part in (one.query, one.document, unmarked)]
            ids, begins = insert(ids, begins, np.concatenate(parts), self._markers)
            counts = [
                (np.count_nonzero(one.query), np.count_nonzero(one.document)) for one in marks
            ]
            sides += 2 * np.array(counts)
        told_apart = self._template.segments if self.settings.segments else (0, 0)
        segments = np.array(told_apart, np.int32)
        segments = np.repeat(np.tile(segments, len(couples)), sides.ravel())
        lengths = sides.sum(axis=1)
        ends = np.cumsum(lengths)
        words = np.cumsum(begins, dtype=np.int32)
        words -= np.repeat(words[ends - lengths], lengths)
        bounds = [0, *ends.tolist()]
        return [
            Features(
                ids[start:end],
                segments[start:end],
                words[start:end],
                first=first,
                cut=document.total - len(document),
                cut_query=head.cut,
            )
            for (start, end), first, (head, document) in zip(
                pairwise(bounds), sides[:, 0].tolist(), couples, strict=True
            )
        ]


def longest_first(query: int, document: int, room: int) -> int:
    """How many of the query's tokens fit beside the document's, the longer text being cut first.

    Both are cut to the same length in the end, where an odd token is the longer one's: the rule of
    `longest_first` in Hugging Face's tokenizers.
    """
    if query + document <= room:
        return query
    if query <= document:
        return min(query, room // 2)
    return room - min(document, room // 2)
