"""Which tokens make up one word of a text, whatever the tokenizer takes for a word.

A word is a run of letters and digits; every other character, such as a comma or an emoji, is a word
of its own. BERT's own splitter says the same. SentencePiece splits at white space only ("bogue." is
one word there), and byte-level BPE parts letters from digits and from combining marks; so for these
the words are read from the text, and tokens are assigned to them by their offsets.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

_UNREAD, _SPACE, _LETTER, _ALONE, _MARK, _OTHER = range(6)
_KINDS = np.zeros(0x110000, np.uint8)
"""The kind of each character, filled in as texts bring them."""

_UNSPACED = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # Thai, Lao, Burmese, Khmer
    *((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9D)),  # Japanese syllables
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),  # Chinese
)
"""Scripts without spaces between words: each letter is a word, as BERT reads Chinese."""


class WordFinder:
    """Finds the words of texts among the tokens that one tokenizer makes of them.

    Where a token holds parts of several words, as "▁U.S." or "'t" do, these are one word. A token
    of white space alone belongs to the word behind it where the tokenizer took both for one, as in
    "▁ 世界"; else it is a word of its own.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._continues = _continuations(tokenizer)

    @property
    def by_spelling(self) -> bool:
        """Whether token ids alone tell words apart, so that no offsets are needed."""
        return self._continues is not None

    def begins(
        self, text: str, encoding: Encoding, ids: NDArray[np.integer[Any]]
    ) -> NDArray[np.bool_]:
        """Whether each token is the first of a word; `ids` are all tokens or the first of them."""
        if self._continues is not None:
            begins: NDArray[np.bool_] = ~self._continues[ids]
            return begins
        return _begins(text, encoding.offsets[: len(ids)], encoding.word_ids[: len(ids)])

    def letters(self, word: str) -> str:
        """The word without the punctuation that a token may have joined to it."""
        if self._continues is not None or word.isalnum():
            return word
        kinds = _kinds(word)
        first = np.flatnonzero((kinds == _LETTER) | (kinds == _ALONE))
        if not len(first):
            return ""
        last = np.flatnonzero((kinds == _LETTER) | (kinds == _ALONE) | (kinds == _MARK))
        return word[first[0] : last[-1] + 1]


def _continuations(tokenizer: Tokenizer) -> NDArray[np.bool_] | None:
    """Which tokens go on with a word, where a token's spelling tells, as in "bog ##ue".

    That holds for WordPiece if no word can begin with its prefix, and spares the tokenizer's
    slower way, which keeps account of words and offsets.
    """
    model, splitter = tokenizer.model, tokenizer.pre_tokenizer
    if not (isinstance(model, WordPiece) and isinstance(splitter, BertPreTokenizer)):
        return None
    continues = np.zeros(max(tokenizer.get_vocab().values()) + 1, np.bool_)
    prefix = model.continuing_subword_prefix
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    continues[[i for token, i in vocabulary.items() if token.startswith(prefix)]] = True
    return continues


def _begins(
    text: str, offsets: Sequence[tuple[int, int]], word_ids: Sequence[int | None]
) -> NDArray[np.bool_]:
    """Whether each token is the first of a word of the text."""
    begins = np.ones(len(offsets), np.bool_)
    if not text or not offsets:
        return begins
    kinds = _kinds(text)
    starts_word = kinds != _MARK  # a mark goes on with whatever it stands on
    starts_word[1:] &= (kinds[1:] != _LETTER) | ~_ends_in_letter(kinds)[:-1]
    word = np.cumsum(starts_word)  # [characters]
    places = np.arange(len(text))
    spaces = np.where(kinds == _SPACE, len(text), places)
    next_letter = np.append(np.minimum.accumulate(spaces[::-1])[::-1], len(text))
    spans = np.array(offsets, np.intp)  # [tokens, 2]
    first = next_letter[spans[:, 0]]
    seen = np.flatnonzero(first < spans[:, 1])  # tokens of more than white space
    last = word[spans[seen, 1] - 1]
    begins[seen[1:]] = word[first[seen[1:]]] != last[:-1]
    for token in np.flatnonzero(first >= spans[:, 1])[::-1].tolist():
        behind = token + 1
        if behind == len(begins):
            continue
        if not begins[behind]:
            begins[token] = False  # it stands inside a word
        elif word_ids[token] == word_ids[behind]:
            begins[behind] = False  # the word begins with its white space
    return begins


def _ends_in_letter(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each character is a letter, or a mark on one."""
    places = np.where(kinds == _MARK, 0, np.arange(len(kinds)))
    bases = np.maximum.accumulate(places)
    ends: NDArray[np.bool_] = kinds[bases] == _LETTER
    return ends


def _kinds(text: str) -> NDArray[np.uint8]:
    """The kind of each character."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    kinds = _KINDS[codes]
    unread = np.unique(codes[kinds == _UNREAD])
    if len(unread):
        _KINDS[unread] = [_kind(code) for code in unread.tolist()]
        kinds = _KINDS[codes]
    return kinds


def _kind(code: int) -> int:
    character = chr(code)
    category = unicodedata.category(character)
    if character.isspace():
        return _SPACE
    if category[0] == "M" or category == "Cf":  # joiners and soft hyphens stand inside words
        return _MARK
    if category[0] not in "LN":
        return _OTHER
    return _ALONE if any(low <= code <= high for low, high in _UNSPACED) else _LETTER
