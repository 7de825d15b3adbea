"""Lower-casing and accents of a tokenizer, where files beside `tokenizer.json` decide them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import normalizers

from secondlook.errors import CheckpointProblem
from secondlook.model.saved_files import read_json

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

_AS_SAVED = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Tokenizer classes with which transformers takes `tokenizer.json` as it is."""


def normalize_as_configured(tokenizer: Tokenizer, folder: Path, *, ours: bool) -> None:
    """Let it normalize texts as transformers and sentence-transformers would from this folder.

    `ours` says that we saved it, and so as it is to be read.
    """
    given, config = tokenizer.normalizer, folder / "tokenizer_config.json"
    if not ours and config.is_file() and isinstance(given, normalizers.BertNormalizer):
        _follow_transformers(given, config)
    own = folder / "sentence_bert_config.json"
    if own.is_file() and read_json(own).get("do_lower_case"):
        _lower_case(tokenizer)


def _follow_transformers(given: normalizers.BertNormalizer, path: Path) -> None:
    """BERT's tokenizer classes set their normalizer by this file, whatever `tokenizer.json` has."""
    config = read_json(path)
    if config.get("tokenizer_class") in _AS_SAVED:
        return
    try:
        given.lowercase = config.get("do_lower_case", True)
        given.strip_accents = config.get("strip_accents")
        given.handle_chinese_chars = config.get("tokenize_chinese_chars", True)
    except TypeError as error:
        raise CheckpointProblem(
            f"{path}: do_lower_case, strip_accents and tokenize_chinese_chars are true or false; "
            "fetch the model anew"
        ) from error


def _lower_case(tokenizer: Tokenizer) -> None:
    """Lower-case texts first, as sentence-transformers does it, where that is not done already."""
    given = tokenizer.normalizer
    if given is None or given.normalize_str("A") != "a":
        steps = [normalizers.Lowercase(), *([] if given is None else [given])]
        tokenizer.normalizer = normalizers.Sequence(steps)
