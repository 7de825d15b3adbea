"""The words of a pair as the ranker reads them, and where they stand in its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from secondlook.analyze import DEFAULT
from secondlook.encode.markers import marker_ids, term_reader
from secondlook.encode.settings import MarkerSettings
from secondlook.encode.template import Template
from secondlook.encode.tokens import text_only, well_formed, word_spans
from secondlook.encode.words import WordFinder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from secondlook.encode.features import Features
    from secondlook.encode.settings import EncodeSettings

Match = Literal["", "word", "stem"]
"""Whether another text holds the same word, or one of its stem; never for stop words."""


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A word in its text, and what it is read as."""

    text: str
    start: int
    end: int
    pieces: tuple[str, ...]
    outside: bool
    term: int
    """What it matches by; 0 matches nothing."""
    stem: int
    """The same, with words of one stem made equal."""


class WordReader:
    """Finds the words of texts, and of encoded pairs the tokens of each.

    Words match by `analyzer`, a language; by that of the ranker's markers where none is named.
    """

    def __init__(
        self, tokenizer: Tokenizer, settings: EncodeSettings, analyzer: str | None = None
    ) -> None:
        self._tokenizer = text_only(tokenizer)  # the caller's stays as it is
        self._settings = settings
        self._words = WordFinder(tokenizer)
        language = analyzer or (settings.markers.analyzer if settings.markers else DEFAULT)
        plain = MarkerSettings.model_validate({"analyzer": language})
        self._term_of = term_reader(tokenizer, plain.model_copy(update={"match": "exact"}))
        self._stem_of = term_reader(tokenizer, plain)
        self._before, special = 0, [np.empty(0, np.int32)]
        if settings.chat is None:
            frame = Template.read(tokenizer, settings.form)
            self._before = len(frame.before)
            runs = (frame.before, frame.between, frame.opening, frame.after, frame.separator)
            special = [run.ids for run in runs]
        if settings.markers is not None:
            special.append(marker_ids(tokenizer, settings.markers).ravel())
        self._special = np.unique(np.concatenate(special))
        unknown = getattr(tokenizer.model, "unk_token", None)
        self._unknown = {unknown} if isinstance(unknown, str) else set()

    def read(self, text: str, prompt: str = "") -> list[ReadWord]:
        """All words of the text, in order; those of the prompt have an empty span at 0."""
        whole = well_formed(prompt + text)
        encoding = self._tokenizer.encode(whole, add_special_tokens=False)
        begins = self._words.begins(whole, encoding, np.array(encoding.ids, np.intp))
        starts = [*np.flatnonzero(begins).tolist(), len(begins)]
        tokens = encoding.tokens  # once: the library makes the list anew for every look
        words = []
        for number, (start, end) in enumerate(word_spans(encoding, begins)):
            pieces = tuple(tokens[starts[number] : starts[number + 1]])
            written = whole[start:end].strip()
            words.append(
                ReadWord(
                    written,
                    max(0, end - len(written) - len(prompt)),
                    max(0, end - len(prompt)),
                    pieces,
                    len(pieces) > 1 or not self._unknown.isdisjoint(pieces),
                    self._term_of(written),
                    self._stem_of(written),
                )
            )
        return words

    def places(self, pair: Features) -> tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]]:
        """The tokens of each word of the query and of the document, prompts included.

        They stand in the order of `read`; words that were cut off are not there.
        """
        own = ~np.isin(pair.ids, self._special) & (pair.words >= 0)  # a chat's frame has word -1
        if self._settings.query_types:  # the type, up to the special token behind it
            own[: self._before + int(own[self._before :].argmin())] = False
        query: list[NDArray[np.intp]] = []
        document: list[NDArray[np.intp]] = []
        for word in np.unique(pair.words[own]):
            tokens = np.flatnonzero((pair.words == word) & own)
            (query if tokens[0] < pair.first else document).append(tokens)
        return query, document


def matches(words: Sequence[ReadWord], others: Sequence[ReadWord]) -> list[Match]:
    """How each word is found among the others."""
    terms = {word.term for word in others} - {0}
    stems = {word.stem for word in others} - {0}
    return ["word" if w.term in terms else "stem" if w.stem in stems else "" for w in words]
