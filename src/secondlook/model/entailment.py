"""A classifier of natural-language inference read as a ranker: three logits become one.

CCNU's document run scores sentences by a BERT that was fine-tuned on MNLI. Its paper does not say
which of the three classes is the score. Here it is a weighted sum of their logits, by default
entailment minus the mean of neutral and contradiction, so that one logit can stand for all three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from secondlook.data.nli import LABELS
from secondlook.encode.settings import EncodeSettings
from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import base_name, locate, max_length, read_config, read_tokenizer
from secondlook.model.joint import Joint
from secondlook.model.loading import load
from secondlook.model.network import Model
from secondlook.model.settings import Lineage, Phase, RankerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from transformers import PreTrainedModel

WEIGHTS = {"entailment": 1.0, "neutral": -0.5, "contradiction": -0.5}
_TRAVELLING = ("tokenizer_config.json", "special_tokens_map.json")


def ranker_of_nli(
    source: str | Path,
    *,
    weights: Mapping[str, float] | None = None,
    classes: Sequence[str] | None = None,
) -> Model:
    """The classifier in `source`, a folder or hub id, as a joint ranker.

    Its score is the sum of the three logits, each times its class's weight. `classes` names the
    classes in the order of the logits, where the folder's config.json does not.
    """
    folder = locate(source)
    config = read_config(folder)
    order = [name.lower() for name in classes or _classes(config)]
    if sorted(order) != sorted(LABELS):
        raise CheckpointProblem(
            f"{folder} tells apart {', '.join(order) or 'nothing'}, and natural-language inference "
            f"{', '.join(LABELS)}; name these as `classes`, in the order of the logits"
        )
    model, missing = load(AutoModelForSequenceClassification, folder, num_labels=len(LABELS))
    if missing:
        raise CheckpointProblem(
            f"{folder} has no trained classifier: it lacks {missing[0]}; fine-tune it on "
            "natural-language inference first"
        )
    given = weights or WEIGHTS
    fold_logits(model, [given[name] for name in order])
    limit = max_length(folder, config)
    reading = " ".join(f"{given[name]:+g} {name}" for name in LABELS)
    settings = RankerSettings(
        encode=EncodeSettings.model_validate({"max_length": limit}),
        lineage=Lineage(base=base_name(source), phases=(Phase(name=f"logits: {reading}"),)),
    )
    files = {n: (folder / n).read_bytes() for n in _TRAVELLING if (folder / n).is_file()}
    network = Joint(model, strm=False).eval()
    return Model(network, read_tokenizer(folder), settings, files)


def fold_logits(classifier: PreTrainedModel, weights: Sequence[float]) -> None:
    """Make one logit of several: their sum, each with its weight."""
    head: Any = getattr(classifier, "classification_head", None) or classifier.classifier
    owner, name = (head, "out_proj") if hasattr(head, "out_proj") else (classifier, "classifier")
    several: nn.Linear = getattr(owner, name)
    one = nn.Linear(several.in_features, 1)
    with torch.no_grad():
        weighing = torch.tensor([weights])  # [1, logits]
        one.weight.copy_(weighing @ several.weight)
        one.bias.copy_(weighing[0] @ several.bias)
    setattr(owner, name, one)
    classifier.config.num_labels = 1


def _classes(config: Mapping[str, Any]) -> list[str]:
    named = config.get("id2label") or {}
    return [str(named[key]) for key in sorted(named, key=int)]
