"""How a pair of texts becomes numbers: part of the checkpoint, so that all rooms encode alike."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from secondlook.recipe import Settings


class MarkerSettings(Settings):
    """MarkedBERT's exact-match markers around query terms that the document holds."""

    match: Literal["exact", "stem"] = "stem"
    skip_stop_words: bool = True
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


class EncodeSettings(Settings):
    """Everything the encoder needs to know beside the tokenizer."""

    form: Literal["joint", "warm"] = "joint"
    """`joint`: the papers' one sequence. `warm`: two, each as its bi-encoder would see it."""
    max_length: int = Field(512, ge=8)
    max_query_length: int = Field(64, ge=1)
    title_separator: str | None = " "
    """Between title and text; None leaves the title out."""
    query_prompt: str = ""
    document_prompt: str = ""
    strm: bool = False
    query_types: bool = False
    """DR-BERT's three-part form: `[CLS] T [SEP] Q [SEP] D [SEP]`."""
    markers: MarkerSettings | None = None
    windows: WindowSettings | None = None
