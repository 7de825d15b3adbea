"""What transformers and sentence-transformers wrote beside a model's weights."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from secondlook.errors import CheckpointProblem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CHAT_TEMPLATE = "chat_template.jinja"
_FOLDER_NAME = re.compile(r"\w[\w.-]*|")


@dataclass(frozen=True, slots=True)
class SavedModule:
    """A module of sentence-transformers: an entry of `modules.json`, and its own settings."""

    type: str
    """Where its code is, such as "sentence_transformers.base.modules.dense.Dense"."""
    path: str
    """Its folder in the model's, such as "2_Dense"; the transformer is in the model's own."""
    config: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The name of its class, or all of where its code is, if that is not their own."""
        own = self.type.startswith("sentence_transformers.")
        return self.type.rpartition(".")[2] if own else self.type


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """The JSON files of a folder; empty where one is not there."""

    config: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    """`tokenizer_config.json`."""
    transformer: Mapping[str, Any]
    """`sentence_bert_config.json`."""
    model: Mapping[str, Any]
    """`config_sentence_transformers.json`."""
    modules: Sequence[SavedModule]
    """`modules.json`."""
    chat_template: str = ""

    @property
    def saved_there(self) -> bool:
        """Whether sentence-transformers saved it as a cross-encoder, and so goes by `model`."""
        return bool(self.modules) and self.model.get("model_type") == "CrossEncoder"

    @property
    def head(self) -> Sequence[SavedModule]:
        """The modules behind the transformer, where the score is made by these."""
        return self.modules[1:] if self.saved_there else ()

    @property
    def causal(self) -> bool:
        """Whether the weights are those of a language model, which is asked for its next token."""
        if self.saved_there:
            return self.transformer.get("transformer_task") == "text-generation"
        architectures = self.config.get("architectures") or [""]
        return str(architectures[0]).endswith("ForCausalLM")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of the folder."""
    if not path.is_file():
        raise CheckpointProblem(f"{path.parent} is no model: it holds no {path.name}")
    read = _parsed(path)
    if not isinstance(read, dict):
        raise CheckpointProblem(f"{path} holds no JSON object; fetch the model anew")
    return read


def saved_files(folder: Path, config: Mapping[str, Any]) -> SavedFiles:
    """The files of a folder whose `config.json` was read already."""

    def read(name: str) -> dict[str, Any]:
        return read_json(folder / name) if (folder / name).is_file() else {}

    tokenizer = read("tokenizer_config.json")
    return SavedFiles(
        config,
        tokenizer,
        read("sentence_bert_config.json"),
        read("config_sentence_transformers.json"),
        saved_modules(folder),
        _chat_template(folder, tokenizer),
    )


def head_files(folder: Path) -> list[Path]:
    """Settings and weights of the modules that have folders of their own."""
    return [
        path
        for module in saved_modules(folder)
        if module.path
        for path in sorted((folder / module.path).glob("*"))
        if path.suffix in (".json", ".safetensors")
    ]


def saved_modules(folder: Path) -> list[SavedModule]:
    """What `modules.json` lists; raises CheckpointProblem for a folder outside of the model's."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    listed = _parsed(path)
    try:
        named = [(module["type"], module["path"]) for module in listed]
    except (TypeError, KeyError) as error:
        raise CheckpointProblem(f"{path} is no list of modules; fetch the model anew") from error
    for _, place in named:
        if not isinstance(place, str) or not _FOLDER_NAME.fullmatch(place):
            raise CheckpointProblem(f"{path} names {place!r}, which is no folder of the model")
    return [
        SavedModule(str(kind), place, _config(folder / place) if place else {})
        for kind, place in named
    ]


def _config(folder: Path) -> dict[str, Any]:
    """A module's settings; some have none."""
    path = folder / "config.json"
    return read_json(path) if path.is_file() else {}


def _chat_template(folder: Path, tokenizer: Mapping[str, Any]) -> str:
    """The template, from its own file or from the tokenizer's; of several, the default one."""
    if (folder / CHAT_TEMPLATE).is_file():
        return (folder / CHAT_TEMPLATE).read_text("utf-8")
    template = tokenizer.get("chat_template") or ""
    if isinstance(template, list):
        template = {one.get("name"): one.get("template") for one in template}.get("default")
    return str(template or "")


def _parsed(path: Path) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointProblem(f"{path} is no JSON ({error}); fetch the model anew") from error
