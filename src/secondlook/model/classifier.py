"""The classifier of a joint ranker, whatever its folder stores: brought to one logit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import read_tokenizer, weight_files
from secondlook.model.families import description
from secondlook.model.loading import load, load_encoder
from secondlook.model.modular import ModularClassifier, difference, keep_logits, load_head

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from transformers import PreTrainedModel

    from secondlook.model.saved_files import SavedFiles

_ANSWERS = ("yes", "no")
"""The tokens that a language model is asked for, where its folder names none."""
_RELEVANT = ("entailment", "relevant", "true", "yes")
"""Labels that say which of two logits is the relevant one's."""


def load_classifier(
    folder: Path, files: SavedFiles
) -> tuple[PreTrainedModel | ModularClassifier, bool]:
    """The classifier with one logit, and whether all of it was stored."""
    if files.causal:
        return _of_language_model(folder, files), True
    if files.head:
        head = load_head(folder, files.head)
        logits = int(head[-1].saved.config["out_features"])
        if logits > 1:
            keep_logits(head, *reading(logits, {}, folder))
        return ModularClassifier(load_encoder(folder), head), True
    logits = stored_logits(folder, files.config) or 1
    model, missing = load(AutoModelForSequenceClassification, folder, num_labels=logits)
    inside = f"{model.base_model_prefix}."
    lost = [name for name in missing if name.startswith(inside) and "pooler" not in name]
    if lost:
        raise CheckpointProblem(f"{folder} is incomplete: it lacks {lost[0]}; fetch it anew")
    if logits > 1:
        _keep_difference(model, *reading(logits, files.config.get("id2label") or {}, folder))
    return _configured(model, files, folder), not missing


def reading(logits: int, labels: Mapping[str, str], folder: Path) -> tuple[int, int]:
    """Which logit speaks for relevance, and which one against: the score is their difference.

    Of two, the second and the first, unless labels say the reverse. Of three, as models of textual
    inference have them, entailment and contradiction; the third is left out.
    """
    names = [str(labels.get(str(index), "")).lower() for index in range(logits)]
    if logits == 2:
        return (0, 1) if names[0] in _RELEVANT and names[1] not in _RELEVANT else (1, 0)
    if logits == 3 and {"entailment", "contradiction"} <= set(names):
        return names.index("entailment"), names.index("contradiction")
    raise CheckpointProblem(
        f"{folder} gives {logits} logits, and which of them stands for a relevant document is not "
        "known; a ranker has one logit, two (irrelevant, relevant), or three with the labels "
        '"entailment" and "contradiction" in config.json (id2label)'
    )


def stored_logits(folder: Path, config: Mapping[str, Any]) -> int | None:
    """How many logits the stored head gives; None where no head is stored."""
    names = [f"{name}.weight" for name in description(config).head]
    for path in weight_files(folder):
        with safe_open(path, framework="pt") as weights:
            for name in names:
                if name in weights.keys():  # noqa: SIM118 - it is no dict
                    return int(weights.get_slice(name).get_shape()[0])
    return None


def _of_language_model(folder: Path, files: SavedFiles) -> PreTrainedModel:
    """A classifier whose logit is that of one next token, minus another's.

    The score of a language model is linear in its last state, so nothing is lost.
    """
    positive, negative = _answers(folder, files)
    causal: Any
    classifiers: Any = AutoModelForSequenceClassification
    causal, missing = load(AutoModelForCausalLM, folder)
    if missing:
        raise CheckpointProblem(f"{folder} is incomplete: it lacks {missing[0]}; fetch it anew")
    words: nn.Linear = causal.get_output_embeddings()
    known = words.weight.shape[0]
    if not (0 <= positive < known and (negative is None or 0 <= negative < known)):
        raise CheckpointProblem(f"{folder} is asked for tokens that it does not have")
    causal.config.num_labels = 1
    with torch.device("meta"):  # its weights are set below
        model: Any = classifiers.from_config(causal.config)
    setattr(model, model.base_model_prefix, causal.base_model)
    with torch.no_grad():
        weight = words.weight[positive] - (0 if negative is None else words.weight[negative])
        model.score = nn.Linear(weight.shape[0], 1, bias=False)
        model.score.weight.copy_(weight)
    return _configured(model, files, folder)


def _answers(folder: Path, files: SavedFiles) -> tuple[int, int | None]:
    """The ids of the tokens that say yes and no."""
    if files.head:
        config = files.head[-1].config
        negative = config.get("false_token_id")
        return int(config["true_token_id"]), None if negative is None else int(negative)
    tokenizer = read_tokenizer(folder)
    positive, negative = (tokenizer.token_to_id(answer) for answer in _ANSWERS)
    if positive is None or negative is None:
        raise CheckpointProblem(
            f"{folder} is a language model whose tokenizer has no tokens "
            f"{' and '.join(map(repr, _ANSWERS))}, so it cannot be asked whether a document is "
            "relevant; take a model that was trained to re-rank"
        )
    return positive, negative


def _configured(model: PreTrainedModel, files: SavedFiles, folder: Path) -> PreTrainedModel:
    """The same; a decoder keeps nothing for further tokens, and knows its padding token.

    Padding is left out by the mask here, but other libraries look for its id.
    """
    config: Any = model.config
    if description(config.to_dict()).decoder:
        config.use_cache = False
        if config.pad_token_id is None:
            named = files.tokenizer.get("pad_token") or files.tokenizer.get("eos_token")
            token = named.get("content") if isinstance(named, dict) else named
            config.pad_token_id = read_tokenizer(folder).token_to_id(token) if token else 0
    return model


def _keep_difference(model: Any, positive: int, negative: int) -> None:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    for name in reversed(description(model.config.to_dict()).head):
        owner, _, own_name = name.rpartition(".")
        parent = model
        for part in owner.split(".") if owner else ():
            parent = getattr(parent, part, None)
        layer = getattr(parent, own_name, None)
        if isinstance(layer, nn.Linear):
            setattr(parent, own_name, difference(layer, positive, negative))
            model.config.num_labels = 1
            return
    raise CheckpointProblem("the last layer of this model is not known here")
