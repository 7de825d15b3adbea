"""A cross-encoder that was not made here: settings under which it scores as its authors meant.

The authors' library is sentence-transformers, and its rules are followed: what its `CrossEncoder`
would do with the same folder. Nothing here reads files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from secondlook.encode.settings import EncodeSettings
from secondlook.model.settings import Lineage, RankerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Activation = Literal["identity", "sigmoid", "tanh"]
_ACTIVATIONS: dict[str, Activation] = {
    "Identity": "identity",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}
_ENDLESS = 10**9
"""Tokenizers without a limit say 10^30."""


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
    modules: Sequence[Mapping[str, Any]]
    """`modules.json`."""

    @property
    def saved_there(self) -> bool:
        """Whether sentence-transformers saved it as a cross-encoder, and so goes by `model`."""
        return bool(self.modules) and self.model.get("model_type") == "CrossEncoder"

    @property
    def head_modules(self) -> list[str]:
        """The kinds of the modules behind the transformer, where the score is made by these."""
        kinds = [module["type"].rpartition(".")[2] for module in self.modules]
        return kinds[1:] if self.saved_there else []


def settings_of(files: SavedFiles, positions: int | None, base: str) -> RankerSettings:
    """Its settings; raises ValueError for what cannot be done here, to be read after the folder."""
    if files.head_modules:
        raise ValueError(
            "is a CrossEncoder of sentence-transformers whose score is made by modules behind the "
            f"encoder ({', '.join(files.head_modules)}), which are not known here, and neither are "
            "they dropped for a new head; to train one, start from the encoder it was made of"
        )
    names = files.tokenizer.get("model_input_names")
    return RankerSettings(
        encode=EncodeSettings.model_validate(
            {
                "max_length": longest_input(files, positions),
                "max_query_length": None,
                "query_prompt": _default_prompt(files),
                "segments": names is None or "token_type_ids" in names,
            }
        ),
        activation=_activation(files),
        lineage=Lineage(base=base),
    )


def longest_input(files: SavedFiles, positions: int | None) -> int:
    """In tokens: as sentence-transformers' file says, else the tokenizer's; within `positions`."""
    own = files.transformer
    arguments = own.get("processor_kwargs") or own.get("tokenizer_args") or {}
    limit = arguments.get("model_max_length") or own.get("max_seq_length")
    limits = (limit or files.tokenizer.get("model_max_length"), positions)
    return int(min((limit for limit in limits if limit and limit < _ENDLESS), default=512))


def _default_prompt(files: SavedFiles) -> str:
    """What is put before every query; other prompts are for callers who name one."""
    if not files.saved_there:
        return ""
    prompts = files.model.get("prompts") or {}
    return prompts.get(files.model.get("default_prompt_name")) or ""


def _activation(files: SavedFiles) -> Activation:
    """What is applied to the logit where a score is shown.

    Two logits become one here, their difference, and are left as they are there: identity.
    """
    if len(files.config.get("id2label", ("", ""))) == 2:  # transformers leaves its default out
        return "identity"
    named = files.model.get("activation_fn") if files.saved_there else None
    named = named or files.config.get("sentence_transformers", {}).get("activation_fn")
    named = named or files.config.get("sbert_ce_default_activation_function")
    if not named or not named.startswith("torch."):  # code of others is run neither here nor there
        return "sigmoid"
    kind = named.rpartition(".")[2]
    if kind not in _ACTIVATIONS:
        raise ValueError(
            f"shows its scores through {named}, and {', '.join(_ACTIVATIONS)} are known here; "
            "raw scores do not depend on it: change activation_fn in its config.json (or "
            "config_sentence_transformers.json) to torch.nn.modules.linear.Identity"
        )
    return _ACTIVATIONS[kind]


def files_for_a_prompt(settings: RankerSettings) -> dict[str, Any]:
    """What sentence-transformers needs beside the model to put the query's prompt there too."""
    if not settings.encode.query_prompt:
        return {}
    outputs = {"text": {"method": "forward", "method_output_name": "logits"}}
    transformer = "sentence_transformers.base.modules.transformer.Transformer"
    return {
        "modules.json": [{"idx": 0, "name": "0", "path": "", "type": transformer}],
        "sentence_bert_config.json": {
            "transformer_task": "sequence-classification",
            "modality_config": outputs,
            "module_output_name": "scores",
        },
        "config_sentence_transformers.json": {
            "model_type": "CrossEncoder",
            "prompts": {"query": settings.encode.query_prompt},
            "default_prompt_name": "query",
        },
    }
