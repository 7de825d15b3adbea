"""Lower-casing and accents of a tokenizer, where files beside `tokenizer.json` decide them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import normalizers

from secondlook.model.saved_files import read_json

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

_AS_SAVED = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Tokenizer classes with which transformers takes `tokenizer.json` as it is."""


def normalize_as_configured(tokenizer: Tokenizer, folder: Path) -> None:
    """Let it normalize texts as transformers and sentence-transformers would from this folder."""
    if isinstance(tokenizer.normalizer, normalizers.BertNormalizer):
        _follow_transformers(tokenizer.normalizer, folder / "tokenizer_config.json")
    own = folder / "sentence_bert_config.json"
    if own.is_file() and read_json(own).get("do_lower_case"):
        _lower_case(tokenizer)


def _follow_transformers(given: normalizers.BertNormalizer, path: Path) -> None:
    """BERT's tokenizer classes set their normalizer by `tokenizer_config.json`, and its absence."""
    config = read_json(path) if path.is_file() else {}
    if config.get("tokenizer_class") not in _AS_SAVED:
        given.lowercase = config.get("do_lower_case", True)
        given.strip_accents = config.get("strip_accents")
        given.handle_chinese_chars = config.get("tokenize_chinese_chars", True)


def _lower_case(tokenizer: Tokenizer) -> None:
    """Lower-case texts first, as sentence-transformers does it, where that is not done already."""
    given = tokenizer.normalizer
    if given is None or given.normalize_str("A") != "a":
        steps = [normalizers.Lowercase(), *([] if given is None else [given])]
        tokenizer.normalizer = normalizers.Sequence(steps)
