"""A set that only cross-attention can solve: the warm form learns it, and not with gates shut.

A query is two words of a thousand, and a relevant document holds both, the others only one. Vectors
of 16 dimensions cannot tell: twenty random words drown the one that is missing. A token that looks
into the other text can. As in pretrained encoders, attention finds equal words from the start.
"""

from __future__ import annotations

from random import Random

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import tiny
from secondlook.model.network import new_warm
from secondlook.train import ranking
from secondlook.train.groups import Group, write_groups
from secondlook.train.losses.listwise import Listwise
from secondlook.train.phase import Place, TrainData
from secondlook.types import Document, Query

WORDS = [f"w{number}" for number in range(1000)]
LENGTH = 20
CANDIDATES = 4
MATCHING = 1.4  # of query and key: equal words get most of the attention
LAYERS = 2


@pytest.fixture(scope="module")
def matching_encoder(tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=1,
        intermediate_size=32,
        vocab_size=len(tiny.SPECIAL) + len(WORDS),
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    encoder = transformers.BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        encoder.embeddings.word_embeddings.weight.normal_()
        encoder.embeddings.position_embeddings.weight.normal_(std=0.5)
        attention = encoder.encoder.layer[0].attention.self
        for projection in (attention.query, attention.key):
            projection.weight.copy_(MATCHING * torch.eye(16) + 0.05 * torch.randn(16, 16))
    folder = tiny.save(encoder, tmp_path_factory.mktemp("matching") / "base")
    words = {word: number for number, word in enumerate([*tiny.SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(tiny.SPECIAL)
    tokenizer.post_processor = tiny.tokenizer().post_processor
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def groups(count, seed):
    draw = Random(seed)
    for number in range(count):
        asked = draw.sample(WORDS, 2)
        documents = []
        for place in range(CANDIDATES):
            held = asked if place == 0 else draw.sample(asked, 1)
            others = [word for word in draw.sample(WORDS, LENGTH + 2) if word not in asked]
            text = held + others[: LENGTH - len(held)]
            draw.shuffle(text)
            documents.append(Document(f"d{(number + place) % CANDIDATES}", " ".join(text)))
        labels = (1, *[0] * (CANDIDATES - 1))
        query = Query(f"{seed}-{number}", " ".join(asked))
        yield Group(query, tuple(documents), labels, (0,) * CANDIDATES)


def learnt(base, folder, *, cross_attention, steps):
    folder.mkdir()
    train, dev = folder / "train.parquet", folder / "dev.parquet"
    write_groups(train, groups(16 * steps, "train"), about={})
    write_groups(dev, groups(150, "dev"), about={})
    model = new_warm(base, separate_layers=0 if cross_attention else LAYERS)
    settings = Listwise(
        batch=16,
        negatives=CANDIDATES - 1,
        max_steps=steps,
        learning_rate=5e-3,
        head_learning_rate=3e-2,
        dropout=0.0,
        freeze_embeddings=True,
        precision="fp32",
        measure="RR@10",
        validate_every=steps,
    )
    place = Place(folder / "work", 1, "cpu")
    return ranking.run(settings, model, TrainData(folder, (train,), dev), place).metrics


def test_a_gate_opens_where_looking_across_helps(matching_encoder, tmp_path):
    opened = learnt(matching_encoder, tmp_path / "open", cross_attention=True, steps=60)
    assert opened["gate 1"] > 0.1


@pytest.mark.slow
def test_what_only_cross_attention_can_tell_is_learnt_with_open_gates_alone(
    matching_encoder, tmp_path
):
    """As seen: from .573 to .849 with a gate of 2.2 in the first layer, to .596 without gates."""
    opened = learnt(matching_encoder, tmp_path / "open", cross_attention=True, steps=400)
    shut = learnt(matching_encoder, tmp_path / "shut", cross_attention=False, steps=400)
    assert opened["gate 1"] > 0.5
    assert opened["RR@10"] > 0.8
    assert shut["RR@10"] < 0.7
