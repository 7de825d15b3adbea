"""A sentence-transformers bi-encoder's folder: how it pools, and what it puts before its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from secondlook.errors import CheckpointProblem
from secondlook.model.saved_files import read_json, saved_modules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = (
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""The order in which sentence-transformers looks for a document's prompt."""
_E5 = re.compile(r"(.*/)?(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?")
_E5_PROMPTS = ("query: ", "passage: ")
"""What E5 was trained with, by its model card; a copy's files need not say so."""


@dataclass(frozen=True, slots=True)
class BiEncoder:
    """What the warm form takes over."""

    pooling: Literal["mean", "cls"]
    query_prompt: str
    document_prompt: str
    files: Mapping[str, bytes]
    """sentence-transformers' own files by name, so that the ranker's folder stays a bi-encoder."""


def read_biencoder(folder: Path, known_as: str = "") -> BiEncoder:
    """Read pooling and prompts; a bare encoder pools by the mean and has no prompts.

    `known_as` is its hub id or folder's name: by that E5 gets its prompts if the files name none.
    Raises CheckpointProblem for a bi-encoder that does more than pool and normalise.
    """
    pooling: Literal["mean", "cls"] = "mean"
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}
    for module in saved_modules(folder):
        kind = module.type.rpartition(".")[2]
        if kind == "Pooling":
            name = f"{module.path}/config.json" if module.path else "config.json"
            pooling = _pooling(read_json(folder / name), folder)
            files[name] = (folder / name).read_bytes()
        elif kind not in ("Transformer", "Normalize"):
            raise CheckpointProblem(
                f"{folder} has a {kind} module, and the warm form can take over pooling and "
                "normalisation only; take another bi-encoder"
            )
    prompts: dict[str, Any] = {}
    if "config_sentence_transformers.json" in files:
        prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    document = next((prompts[name] for name in _DOCUMENT_PROMPTS if name in prompts), "")
    query = prompts.get("query", "")
    if not (query or document) and _E5.fullmatch(known_as):
        query, document = _E5_PROMPTS
    return BiEncoder(pooling, query, document, files)


def _pooling(config: Mapping[str, Any], folder: Path) -> Literal["mean", "cls"]:
    """The one mode of `pooling_mode`, or of the `pooling_mode_*` flags older versions wrote."""
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if not config.get("include_prompt", True):
        raise CheckpointProblem(
            f"{folder} leaves its prompt out of the pooling, which the warm form cannot do; take "
            "another bi-encoder"
        )
    if modes in (["mean"], ["pooling_mode_mean_tokens"]):
        return "mean"
    if modes in (["cls"], ["pooling_mode_cls_token"]):
        return "cls"
    raise CheckpointProblem(
        f"{folder} pools by {', '.join(map(str, modes))}, and the warm form knows mean and cls; "
        "take another bi-encoder"
    )
