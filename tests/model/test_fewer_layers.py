"""A model with some of its layers left out."""

from __future__ import annotations

import pytest
import torch
import transformers

import tiny
from secondlook.errors import CheckpointProblem, WrongArgument
from secondlook.model.checkpoint import open_checkpoint, read_config, write_settings
from secondlook.model.families import family
from secondlook.model.fewer_layers import spread, write_fewer_layers
from secondlook.model.network import load_model, new_joint, new_warm, save_model
from secondlook.model.settings import FittedOn, FusionSettings, PlattCalibration

FITTED = PlattCalibration(
    slope=2.0, intercept=0.0, fitted_on=FittedOn(source="corpus", pairs=20, relevant=10)
)
KINDS = ["full_attention", "sliding_attention"] * 2 + ["full_attention"]


def five_layers(name, folder):
    torch.manual_seed(3)
    changes = {"num_hidden_layers": 5} | ({"layer_types": KINDS} if name == "modernbert" else {})
    made = tiny.config(name, num_labels=1, **changes)
    model = transformers.AutoModelForSequenceClassification.from_config(made).eval()
    return tiny.save(model, folder)


def test_the_first_the_last_and_others_between_are_kept():
    assert spread(12, 6) == [0, 2, 4, 7, 9, 11]
    assert spread(12, 12) == list(range(12))
    assert spread(6, 2) == [0, 5]
    assert spread(6, 1) == [0]


@pytest.mark.parametrize("name", tiny.FAMILIES)
def test_it_computes_what_the_layers_that_are_kept_compute(name, tmp_path):
    source = five_layers(name, tmp_path / "five")
    write_fewer_layers(source, 3, tmp_path / "three")
    whole, cut = load_model(source).network, load_model(tmp_path / "three").network
    layers = family(whole.encoder, "this test").layers
    for left_out in (3, 1):
        del layers[left_out]
    whole.encoder.config.num_hidden_layers = 3
    if name == "modernbert":
        whole.encoder.config.layer_types = [KINDS[layer] for layer in (0, 2, 4)]
    inputs = {name: tensor for name, tensor in tiny.batch(9, 12).items() if name in cut.inputs}
    with torch.no_grad():
        assert torch.equal(whole(**inputs), cut(**inputs))
    assert len(family(cut.encoder, "this test").layers) == 3


def test_a_modern_bert_that_names_no_kinds_keeps_those_of_its_layers(tmp_path):
    source = five_layers("modernbert", tmp_path / "five")
    config = read_config(source)
    assert config.pop("layer_types") == KINDS
    tiny.write_json(source / "config.json", config | {"global_attn_every_n_layers": 2})
    write_fewer_layers(source, 2, tmp_path / "two")
    assert read_config(tmp_path / "two")["layer_types"] == [KINDS[0], KINDS[4]]


def test_a_bi_encoder_stays_one(tmp_path):
    source = tiny.save(tiny.encoder(), tmp_path / "two")
    (source / "1_Pooling").mkdir()
    tiny.write_json(source / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    write_fewer_layers(source, 1, tmp_path / "one")
    assert (tmp_path / "one" / "1_Pooling" / "config.json").is_file()
    assert new_warm(tmp_path / "one").network.layers == 1


def test_a_ranker_made_here_says_so_in_its_lineage(tmp_path):
    source = tiny.save(tiny.classifier(), tmp_path / "base")
    save_model(new_joint(source, {"strm": True}), tmp_path / "ranker")
    fitted = open_checkpoint(tmp_path / "ranker").settings.model_copy(
        update={"fusion": FusionSettings(weight=0.3), "calibration": FITTED}
    )
    write_settings(tmp_path / "ranker", fitted)
    write_fewer_layers(tmp_path / "ranker", 1, tmp_path / "small")
    settings = open_checkpoint(tmp_path / "small").settings
    assert settings.encode.strm
    assert settings.fusion is settings.calibration is None  # its scores are others
    assert settings.lineage.phases[-1].name == "1 of 2 layers kept"


def test_what_has_not_these_layers_is_refused(tmp_path):
    source = tiny.save(tiny.classifier(), tmp_path / "two")
    for count in (0, 3):
        with pytest.raises(WrongArgument, match=f"2 layers, and {count} of them"):
            write_fewer_layers(source, count, tmp_path / "small")
    save_model(new_warm(tiny.save(tiny.encoder(), tmp_path / "base")), tmp_path / "warm")
    with pytest.raises(CheckpointProblem, match=r"warm form.* base model, base"):
        write_fewer_layers(tmp_path / "warm", 1, tmp_path / "small")
    tiny.write_json(source / "config.json", read_config(source) | {"model_type": "albert"})
    with pytest.raises(CheckpointProblem, match="layers of 'albert'"):
        write_fewer_layers(source, 1, tmp_path / "small")
    assert not (tmp_path / "small").exists()
