"""How a pair of texts becomes numbers: part of the checkpoint, so that all rooms encode alike."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from secondlook.analyze import DEFAULT
from secondlook.recipe import Settings

Form = Literal["joint", "warm", "frozen"]
"""The forms of a ranker's network."""


class MarkerSettings(Settings):
    """MarkedBERT's exact-match markers around query terms that the document holds."""

    match: Literal["exact", "stem"] = "stem"
    skip_stop_words: bool = True
    """Punctuation is never marked."""
    analyzer: str = DEFAULT
    """Whose stems and stop words: a language as `index --language` has it."""
    max_terms: int = Field(32, ge=1, le=1000)
    tokens: Literal["added", "unused"] = "added"
    """`added` grows the vocabulary by [e1], [/e1], …; `unused` takes BERT's [unusedN]."""


class WindowSettings(Settings):
    """A long document as overlapping windows, and how their scores become the document's."""

    unit: Literal["words", "tokens"] = "words"
    length: int = Field(100, ge=1)
    stride: int = Field(50, ge=1)
    pooling: Literal["first", "max", "mean", "top"] = "max"
    weights: tuple[float, ...] = ()
    """For `top`: the weight of the best window's score, of the second best, and so on."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.stride > self.length:
            raise ValueError(
                f"a stride of {self.stride} skips {self.unit} between windows of {self.length}; "
                f"make it at most {self.length}"
            )
        if self.pooling == "top" and not (self.weights and min(self.weights) > 0):
            raise ValueError('pooling "top" needs weights above zero, such as [0.5, 0.3, 0.2]')
        if self.pooling != "top" and self.weights:
            raise ValueError(f'weights are for pooling "top"; {self.pooling!r} has none')
        return self


class ChatSettings(Settings):
    """A pair as a conversation, for decoders: `before` query `between` document `after`.

    Special tokens of the tokenizer are spelled out in these texts. Of a pair that is too long the
    end is cut, and what stands behind the document is put back over it.
    """

    before: str
    between: str
    after: str


class EncodeSettings(Settings):
    """Everything the encoder needs to know beside the tokenizer."""

    form: Form = "joint"
    """`joint`: the papers' one sequence. `warm` and `frozen`: two, each as an encoder of single
    texts would see it."""
    max_length: int = Field(512, ge=8)
    """Of the whole: special tokens, markers and prompts counted. In the forms of two sequences, of
    each."""
    max_query_length: int | None = Field(64, ge=1)
    """Of the query's own tokens: special tokens, markers, prompt and type are not counted. None:
    the query has no limit of its own, and of a joint pair that is too long the longer text is cut
    first, as sentence-transformers does it."""
    title_separator: str | None = " "
    """Between title and text; None leaves the title out."""
    query_prompt: str = ""
    document_prompt: str = ""
    segments: bool = True
    """Whether query and document are told apart by segment where the tokenizer does so; false for
    cross-encoders that were trained without."""
    strm: bool = False
    query_types: bool = False
    """DR-BERT's three-part form: `[CLS] T [SEP] Q [SEP] D [SEP]`."""
    markers: MarkerSettings | None = None
    windows: WindowSettings | None = None
    chat: ChatSettings | None = None
    """What a decoder's chat template puts around the texts, in place of the tokenizer's own special
    tokens."""

    @property
    def longest_pair(self) -> int:
        """The tokens of a pair, at most."""
        return self.max_length if self.form == "joint" else 2 * self.max_length

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.chat is None:
            return self
        unfit = {
            f"form = {self.form!r}": self.form != "joint",
            "strm": self.strm,
            "query_types": self.query_types,
            "markers": self.markers is not None,
            "max_query_length": self.max_query_length is not None,
        }
        if wrong := [name for name, is_set in unfit.items() if is_set]:
            raise ValueError(
                f"a ranker with a chat template cannot have {', '.join(wrong)}; leave it out"
            )
        return self
