"""Pairs in the frame of a chat template become Features: what decoders read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from secondlook.encode.features import Features
from secondlook.encode.tokens import in_batches, text_only, well_formed
from secondlook.encode.words import WordFinder
from secondlook.errors import UnusableTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Encoding

    from secondlook.encode.settings import ChatSettings

_PROBES = (("bogue, a fish?", " tide. "), ("", "\n"))
"""Pairs on which our way to tokenise must agree with that of the whole as one text."""
_FILLERS = ("0", "1 2 3 4")
"""Texts that end differently: what conversations of both end in is the template's."""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Tokens of a text between two special tokens of the frame."""

    ids: NDArray[np.int32]  # [tokens]
    words: NDArray[np.int32]  # [tokens], -1 for those of the frame
    query: NDArray[np.bool_]  # [tokens], whether it is (also) the query's
    document: NDArray[np.bool_]  # [tokens]

    @classmethod
    def frame(cls, ids: Sequence[int]) -> _Run:
        """Tokens that are neither text's."""
        no = np.zeros(len(ids), np.bool_)
        return cls(np.array(ids, np.int32), np.full(len(ids), -1, np.int32), no, no)

    @classmethod
    def join(cls, runs: Sequence[_Run]) -> _Run:
        """One run after the other, words numbered along them."""
        words, count = [], 0
        for run in runs:
            words.append(np.where(run.words < 0, -1, run.words + count))
            count += int(run.words.max(initial=-1)) + 1
        return cls(
            np.concatenate([run.ids for run in runs]),
            np.concatenate(words).astype(np.int32),
            np.concatenate([run.query for run in runs]),
            np.concatenate([run.document for run in runs]),
        )


class ChatEncoder:
    """Encodes pairs of texts as conversations.

    The whole is tokenised as one text, since a decoder's tokens reach over the seam between frame
    and text (of ": what", one token is " what"). Only the special tokens of the frame divide it,
    and those that a text spells out are text there.
    """

    def __init__(self, tokenizer: Tokenizer, chat: ChatSettings, max_length: int) -> None:
        self._max_length = max_length
        self._parsing = Tokenizer.from_str(tokenizer.to_str())
        self._parsing.encode_special_tokens = False
        self._tokenizer = text_only(tokenizer)
        self._words = WordFinder(self._tokenizer)
        self._chat = chat
        special = [t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special]
        longest_first = sorted(map(re.escape, special), key=len, reverse=True)
        self._special = re.compile("|".join(longest_first) or "(?!)")
        before, self._lead = self._divide(chat.before, last=True)
        self._between, between = self._divide(chat.between, last=False)
        middle, self._opening = self._divide(between, last=True)
        self._trail, after = self._divide(chat.after, last=False)
        self._before, self._middle, self._after = map(self._frame, (before, middle, after))
        self._check()
        self._suffix = self._common_end()
        if len(self._suffix) >= max_length:
            raise UnusableTokenizer(
                f"the chat template ends in {len(self._suffix)} tokens, and max_length is "
                f"{max_length}; raise max_length"
            )

    def encode(self, pairs: Sequence[tuple[str, str]]) -> list[Features]:
        """One Features per pair of texts, in the order given."""
        texts = [(well_formed(query), well_formed(document)) for query, document in pairs]
        return [self._features(run) for run in self._runs(texts)]

    def _runs(self, pairs: Sequence[tuple[str, str]]) -> list[_Run]:
        """Each pair in its frame, as long as it is."""
        if not len(self._middle.ids):  # nothing divides the texts
            between = self._between + self._opening
            texts = [(self._lead, q, between, d, self._trail) for q, d in pairs]
            return [_Run.join([self._before, run, self._after]) for run in self._tokenise(texts)]
        queries = self._tokenise([(self._lead, q, self._between, "", "") for q, _ in pairs])
        documents = self._tokenise([("", "", self._opening, d, self._trail) for _, d in pairs])
        return [
            _Run.join([self._before, query, self._middle, document, self._after])
            for query, document in zip(queries, documents, strict=True)
        ]

    def _tokenise(self, parts: Sequence[tuple[str, str, str, str, str]]) -> list[_Run]:
        """Frame, query, frame, document, frame: as one text each."""
        rest, runs = iter(parts), []
        for texts in in_batches(["".join(some) for some in parts]):
            encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
            for text, encoding in zip(texts, encodings, strict=True):
                runs.append(self._run(text, encoding, next(rest)))
        return runs

    def _run(self, text: str, encoding: Encoding, parts: tuple[str, str, str, str, str]) -> _Run:
        ids = np.array(encoding.ids, np.int32)
        ends = np.cumsum([len(part) for part in parts])  # in characters
        spans = np.array(encoding.offsets, np.intp).reshape(-1, 2)
        inside = [(spans[:, 1] > ends[index - 1]) & (spans[:, 0] < ends[index]) for index in (1, 3)]
        words = np.full(len(ids), -1, np.int32)
        own = inside[0] | inside[1]
        if own.any():
            numbers = np.cumsum(self._words.begins(text, encoding, ids))
            words[own] = np.unique(numbers[own], return_inverse=True)[1]
        return _Run(ids, words, inside[0], inside[1] & ~inside[0])

    def _features(self, run: _Run) -> Features:
        """The run within the limit; as sentence-transformers, its end is put back over a cut."""
        limit, suffix = self._max_length, len(self._suffix)
        ids, words = run.ids[:limit].copy(), run.words[:limit].copy()
        shown = np.arange(len(run.ids)) < limit
        if len(run.ids) >= limit and suffix:
            ids[-suffix:] = self._suffix
            words[-suffix:] = -1
            shown[limit - suffix :] = False
        documents = np.flatnonzero(run.document)
        first = int(documents[0]) if len(documents) else len(run.ids) - len(self._after.ids)
        return Features(
            ids,
            np.zeros_like(ids),
            words,
            first=min(first, len(ids)),
            cut=int(np.count_nonzero(run.document & ~shown)) if len(run.ids) > limit else 0,
            cut_query=int(np.count_nonzero(run.query & ~shown)) if len(run.ids) > limit else 0,
        )

    def _divide(self, text: str, *, last: bool) -> tuple[str, str]:
        """The text before and from its first special token on, or up to and behind its last."""
        found = list(self._special.finditer(text))
        if not found:
            return ("", text) if last else (text, "")
        place = found[-1].end() if last else found[0].start()
        return text[:place], text[place:]

    def _frame(self, text: str) -> _Run:
        return _Run.frame(self._parsing.encode(text, add_special_tokens=False).ids)

    def _whole(self, query: str, document: str) -> list[int]:
        """The conversation tokenised at once, as other libraries do it."""
        chat = self._chat
        text = f"{chat.before}{query}{chat.between}{document}{chat.after}"
        ids: list[int] = self._parsing.encode(text, add_special_tokens=False).ids
        return ids

    def _check(self) -> None:
        for pair, run in zip(_PROBES, self._runs(_PROBES), strict=True):
            if run.ids.tolist() != self._whole(*pair):
                raise UnusableTokenizer(
                    "this tokenizer gives other tokens for the parts of the chat template than for "
                    "the whole, so pairs cannot be encoded safely; take another ranker"
                )

    def _common_end(self) -> NDArray[np.int32]:
        """The tokens that conversations of any texts end in."""
        first, second = (self._whole(filler, filler) for filler in _FILLERS)
        count = 0
        while count < min(len(first), len(second)) and first[-1 - count] == second[-1 - count]:
            count += 1
        return np.array(first[len(first) - count :], np.int32)
