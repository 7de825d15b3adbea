"""What sentence-transformers needs beside a joint ranker's weights to score as it scores here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.model.chat_template import template_of
from secondlook.model.saved_files import CHAT_TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.model.saved_files import SavedModule
    from secondlook.model.settings import RankerSettings

_ACTIVATIONS = {
    "identity": "torch.nn.modules.linear.Identity",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "tanh": "torch.nn.modules.activation.Tanh",
}
_TRANSFORMER = "sentence_transformers.base.modules.transformer.Transformer"


def activation_path(settings: RankerSettings) -> str:
    """The class that sentence-transformers applies to the logit."""
    return _ACTIVATIONS[settings.activation]


def chat_template_file(settings: RankerSettings) -> dict[str, str]:
    """The chat template by its file's name, where pairs are read through one."""
    chat = settings.encode.chat
    return {} if chat is None else {CHAT_TEMPLATE: template_of(chat)}


def json_files(settings: RankerSettings, head: Sequence[SavedModule]) -> dict[str, Any]:
    """Files by name; none where its plain reading of the folder is right already.

    `head` are the modules behind the encoder, where the ranker has such.
    """
    prompt, chat = settings.encode.query_prompt, settings.encode.chat
    if not (prompt or chat or head):
        return {}
    output = "last_hidden_state" if head else "logits"
    reading = {"method": "forward", "method_output_name": output}
    modalities: dict[str, Any] = {"text": reading}
    if chat is not None:
        modalities["message"] = reading | {"format": "flat"}
    model: dict[str, Any] = {
        "model_type": "CrossEncoder",
        "activation_fn": activation_path(settings),
    }
    if prompt and chat is None:
        model |= {"prompts": {"query": prompt}, "default_prompt_name": "query"}
    modules = [("", _TRANSFORMER), *((module.path, module.type) for module in head)]
    return {
        "modules.json": [
            {"idx": index, "name": str(index), "path": path, "type": kind}
            for index, (path, kind) in enumerate(modules)
        ],
        "sentence_bert_config.json": {
            "transformer_task": "feature-extraction" if head else "sequence-classification",
            "modality_config": modalities,
            "module_output_name": "token_embeddings" if head else "scores",
        },
        "config_sentence_transformers.json": model,
    }
