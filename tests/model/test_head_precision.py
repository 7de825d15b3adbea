"""Under bf16 autocast heads still compute in float32: scores that differ stay different."""

import numpy as np
import pytest
import torch
import transformers

import tiny
from secondlook.model.frozen import Frozen
from secondlook.model.joint import Joint
from secondlook.model.settings import FrozenSettings
from secondlook.model.warm import Warm

PAIRS = 300
FAMILIES = (*tiny.FAMILIES, "deberta-v2")


def network(form, family):
    if form == "joint":
        made = deberta() if family == "deberta-v2" else tiny.classifier(family)
        return Joint(made, strm=False).eval()
    if form == "warm":
        return Warm(tiny.encoder(family), strm=False, pooling="mean", separate_layers=0).eval()
    return Frozen(tiny.encoder(family), FrozenSettings(hidden=8), strm=False).eval()


def deberta():
    torch.manual_seed(0)
    shape = tiny.config("bert").to_dict()
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = transformers.DebertaV2Config(
        **{name: shape[name] for name in names},
        vocab_size=tiny.SIZE,
        max_position_embeddings=80,
        pooler_hidden_size=shape["hidden_size"],
        num_labels=1,
        initializer_range=0.3,
    )
    return transformers.DebertaV2ForSequenceClassification(config)


def autocast_scores(made):
    batch = tiny.batch(*[12] * PAIRS)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        return made(**{name: batch[name] for name in made.inputs})


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # DeBERTa's own
@pytest.mark.parametrize(
    ("form", "family"),
    [("joint", family) for family in FAMILIES] + [("warm", "bert"), ("frozen", "bert")],
)
def test_scores_under_autocast_are_float32_and_distinct(form, family):
    scores = autocast_scores(network(form, family))
    assert scores.dtype == torch.float32
    assert len(np.unique(scores.numpy())) >= 0.99 * PAIRS
