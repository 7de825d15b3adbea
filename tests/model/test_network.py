import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny
from secondlook.errors import CheckpointProblem, UnknownName
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.joint import Joint
from secondlook.model.network import (
    Model,
    load_model,
    new_frozen,
    new_joint,
    new_warm,
    save_model,
)
from secondlook.model.settings import FrozenSettings, FusionSettings, Phase, PlattCalibration
from secondlook.model.warm import Warm


def scores(network, batch):
    with torch.no_grad():
        return network(**{name: batch[name] for name in network.inputs})


@pytest.fixture
def bare(tmp_path):
    """A plain encoder's folder, without a head."""
    return tiny.save(tiny.encoder(), tmp_path / "bare")


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("form", ["joint", "warm"])
def test_a_saved_ranker_loads_with_the_same_scores_and_settings(tmp_path, family, form):
    base = tiny.save(tiny.encoder(family), tmp_path / "base")
    if form == "joint":
        made = new_joint(base, {"strm": True})
    else:
        made = new_warm(base, separate_layers=1, encode={"strm": True})
        made.network.head.weight.data.normal_()
        made.network.gate.data.uniform_(0.1, 2.0)
        made.network.alpha.data.fill_(31.0)
    save_model(made, tmp_path / "ranker")
    loaded = load_model(tmp_path / "ranker", untrained_head=True)
    assert loaded.settings == made.settings
    assert loaded.network.inputs == made.network.inputs
    batch = tiny.batch(30, 21)
    torch.testing.assert_close(scores(loaded.network, batch), scores(made.network, batch))


def test_a_joint_ranker_is_a_plain_one_logit_model_with_a_card(bare, tmp_path):
    save_model(new_joint(bare, {"max_length": 48}), tmp_path / "ranker")
    names = {path.name for path in (tmp_path / "ranker").iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "model.safetensors",
        "secondlook.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    config = json.loads((tmp_path / "ranker" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "LABEL_0"}
    tokenizer_config = json.loads((tmp_path / "ranker" / "tokenizer_config.json").read_text())
    assert tokenizer_config["model_max_length"] == 48
    card = (tmp_path / "ranker" / "README.md").read_text()
    assert card.startswith("---\npipeline_tag: text-ranking\n")
    assert "never trained" in card


def test_a_warm_ranker_is_its_encoder_and_a_file_of_its_own(bare, tmp_path):
    save_model(new_warm(bare), tmp_path / "ranker")
    config = json.loads((tmp_path / "ranker" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    assert set(load_file(tmp_path / "ranker" / "secondlook.safetensors")) == {
        "alpha",
        "gate",
        "head.weight",
        "head.bias",
    }
    assert "Do not load it as a cross-encoder" in (tmp_path / "ranker" / "README.md").read_text()


def test_a_gate_that_an_earlier_version_stored_as_its_logarithm_is_read(bare, tmp_path):
    made = new_warm(bare)
    made.network.gate.data = torch.tensor([0.5, 3.0])
    save_model(made, tmp_path / "ranker")
    extra = tmp_path / "ranker" / "secondlook.safetensors"
    weights = load_file(extra)
    weights["beta"] = weights.pop("gate").log()
    save_file(weights, extra)
    batch = tiny.batch(30, 21)
    loaded = load_model(tmp_path / "ranker")
    torch.testing.assert_close(scores(loaded.network, batch), scores(made.network, batch))


def test_the_card_tells_gates_and_whether_a_gain_is_within_the_noise(bare, tmp_path):
    made = new_warm(bare)
    phase = Phase(
        name="listwise",
        metrics={
            "steps": 72.0,
            "gate 1": 0.00012,
            "gate 2": 0.31,
            "nDCG@10": 0.71,
            "gain": 0.01,
            "standard error of the gain": 0.02,
        },
    )
    settings = made.settings.model_copy(update={"lineage": made.settings.lineage.then(phase)})
    save_model(replace(made, settings=settings), tmp_path / "ranker")
    card = (tmp_path / "ranker" / "README.md").read_text()
    assert "steps 72, nDCG@10 0.7100, gain 0.0100" in card
    assert "gates by layer 0.0001 0.3100" in card
    assert "a gain within the noise" in card


def test_a_warm_ranker_without_that_file_or_with_half_of_it_is_refused(bare, tmp_path):
    save_model(new_warm(bare), tmp_path / "ranker")
    extra = tmp_path / "ranker" / "secondlook.safetensors"
    weights = load_file(extra)
    save_file({"alpha": weights["alpha"]}, extra)
    with pytest.raises(CheckpointProblem, match=r"secondlook\.safetensors is missing, or of"):
        load_model(tmp_path / "ranker")
    extra.write_bytes(extra.read_bytes()[:20])
    with pytest.raises(CheckpointProblem, match=r"secondlook\.safetensors is damaged"):
        load_model(tmp_path / "ranker")
    extra.unlink()
    with pytest.raises(CheckpointProblem, match=r"secondlook\.safetensors is missing, or of"):
        load_model(tmp_path / "ranker")


def test_a_warm_ranker_needs_no_training_and_a_joint_one_does(bare, tmp_path):
    save_model(new_warm(bare), tmp_path / "warm")
    assert load_model(tmp_path / "warm").settings.trained
    save_model(new_joint(bare), tmp_path / "joint")
    with pytest.raises(CheckpointProblem, match="no trained head"):
        load_model(tmp_path / "joint")
    assert not load_model(tmp_path / "joint", untrained_head=True).settings.trained


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_bare_encoder_is_refused_unless_asked_for(tmp_path, family):
    bare = tiny.save(tiny.encoder(family), tmp_path)
    with pytest.raises(CheckpointProblem, match=r"no trained head.*secondlook warm"):
        load_model(bare)
    assert not load_model(bare, untrained_head=True).settings.trained


def test_a_head_whose_pooler_is_missing_is_not_trained_either(tmp_path):
    classifier = tiny.classifier()
    del classifier.bert.pooler
    with pytest.raises(CheckpointProblem, match="no trained head"):
        load_model(tiny.save(classifier, tmp_path))


def test_an_encoder_that_lacks_a_layer_is_refused_even_if_asked_for(tmp_path):
    encoder = tiny.encoder()
    del encoder.encoder.layer[1]
    folder = tiny.save(encoder, tmp_path)
    for load in (lambda: load_model(folder, untrained_head=True), lambda: new_warm(folder)):
        with pytest.raises(CheckpointProblem, match=r"incomplete: it lacks .*layer\.1"):
            load()


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_two_logits_become_their_difference(tmp_path, family):
    two = tiny.classifier(family, logits=2)
    one = load_model(tiny.save(two, tmp_path)).network
    batch = {name: rows for name, rows in tiny.batch(30, 21).items() if name in one.inputs}
    with torch.no_grad():
        both = two(**batch).logits
    torch.testing.assert_close(scores(one, batch), both[:, 1] - both[:, 0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scores(one, batch).sigmoid(), both.softmax(1)[:, 1])


def test_a_folded_ranker_is_saved_with_one_logit(tmp_path):
    folded = load_model(tiny.save(tiny.classifier(logits=2), tmp_path / "two"))
    save_model(folded, tmp_path / "one")
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    assert config["id2label"] == {"0": "LABEL_0"}
    batch = tiny.batch(30, 21)
    again = load_model(tmp_path / "one")
    torch.testing.assert_close(scores(again.network, batch), scores(folded.network, batch))


def test_three_logits_without_labels_are_refused(tmp_path):
    with pytest.raises(CheckpointProblem, match=r"3 logits.*entailment"):
        load_model(tiny.save(tiny.classifier(logits=3), tmp_path))


def test_pickled_weights_are_refused(bare):
    weights = load_file(bare / "model.safetensors")
    torch.save(weights, bare / "pytorch_model.bin")
    (bare / "model.safetensors").unlink()
    for load in (load_model, new_joint, new_warm):
        with pytest.raises(CheckpointProblem, match="a pickle"):
            load(bare)


def name_code(folder, **changes):
    config = json.loads((folder / "config.json").read_text()) | changes
    config["auto_map"] = {"AutoModel": "modeling_evil.Evil"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "modeling_evil.py").write_text("raise SystemExit('run!')")


def test_remote_code_is_refused(bare):
    name_code(bare, model_type="evil")
    for load in (load_model, new_joint, new_warm):
        with pytest.raises(CheckpointProblem, match="auto_map"):
            load(bare)


def test_a_plain_architecture_that_names_code_loads_without_running_it(tmp_path):
    folder = tiny.save(tiny.classifier(), tmp_path / "plain")
    batch = tiny.batch(30, 21)
    before = scores(load_model(folder).network, batch)
    name_code(folder)
    torch.testing.assert_close(scores(load_model(folder).network, batch), before)
    assert isinstance(new_joint(folder).network, Joint)
    bare = tiny.save(tiny.encoder(), tmp_path / "bare")
    name_code(bare)
    assert isinstance(new_warm(bare).network, Warm)


def test_weights_that_a_plain_architecture_does_not_know_need_the_code_and_are_refused(tmp_path):
    folder = tiny.save(tiny.classifier(), tmp_path / "plain")
    name_code(folder)
    weights = load_file(folder / "model.safetensors")
    weights["bert.encoder.layer.0.gate.weight"] = torch.zeros(2, 2)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointProblem, match=r"gate\.weight.*never run"):
        load_model(folder)


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    folder = tiny.save(tiny.classifier(), tmp_path)
    grown = tiny.tokenizer()
    grown.add_tokens([f"word{i}" for i in range(100)])
    grown.save(str(folder / "tokenizer.json"))
    with pytest.raises(CheckpointProblem, match="not of one model"):
        load_model(folder)


@pytest.mark.parametrize("new", [new_joint, new_warm])
def test_markers_get_embeddings_of_their_own(bare, tmp_path, new):
    made = new(bare, encode={"markers": {"max_terms": 20}})
    known = made.tokenizer.get_vocab_size()
    assert made.tokenizer.token_to_id("[/e20]") == known - 1
    save_model(made, tmp_path / "ranker")
    assert open_checkpoint(tmp_path / "ranker").config["vocab_size"] == known
    assert load_model(tmp_path / "ranker", untrained_head=True).settings.encode.markers is not None


def test_an_unknown_encode_setting_is_refused(bare):
    with pytest.raises(UnknownName, match="did you mean 'strm'"):
        new_joint(bare, {"stmr": True})


def test_a_save_that_fails_leaves_the_older_ranker_as_it_was(bare, tmp_path):
    save_model(new_warm(bare), tmp_path / "ranker")
    before = {p.name: p.read_bytes() for p in (tmp_path / "ranker").iterdir()}
    made = new_warm(bare)
    broken = Model(made.network, made.tokenizer, made.settings, {"a/b/c": b"no such folder"})
    with pytest.raises(FileNotFoundError):
        save_model(broken, tmp_path / "ranker")
    assert {p.name: p.read_bytes() for p in (tmp_path / "ranker").iterdir()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bare", "ranker"]


def test_a_base_without_a_pooler_makes_a_warm_ranker(tmp_path):
    encoder = tiny.encoder()
    encoder.pooler = None
    made = new_warm(tiny.save(encoder, tmp_path / "base"))
    save_model(made, tmp_path / "ranker")
    stored = load_file(tmp_path / "ranker" / "model.safetensors")
    assert not [name for name in stored if "pooler" in name]


def test_the_two_forms_are_told_apart(bare, tmp_path):
    save_model(new_warm(bare), tmp_path / "warm")
    assert isinstance(load_model(tmp_path / "warm").network, Warm)
    assert isinstance(new_joint(bare).network, Joint)
    with pytest.raises(CheckpointProblem, match="of the warm form"):
        new_joint(tmp_path / "warm")


@pytest.mark.parametrize("encode", [{"strm": True}, {"max_length": 12}, {"markers": {}}])
def test_a_fit_to_other_scores_is_not_kept_where_pairs_are_read_otherwise(tmp_path, encode):
    fits = {
        "calibration": PlattCalibration(slope=2.0, intercept=-1.0),
        "fusion": FusionSettings(weight=0.4),
    }
    made = load_model(tiny.save(tiny.classifier(), tmp_path / "plain"))
    settings = made.settings.model_copy(update=fits)
    save_model(replace(made, settings=settings), tmp_path / "base")
    changed = new_joint(tmp_path / "base", encode).settings
    assert (changed.calibration, changed.fusion) == (None, None)
    as_it_was = {"max_length": settings.encode.max_length}
    for same in (None, as_it_was):
        assert new_joint(tmp_path / "base", same).settings == settings


def frozen(base):
    made = new_frozen(new_joint(base), FrozenSettings(hidden=4))
    return replace(made, settings=made.settings.model_copy(update={"trained": True}))


@pytest.mark.parametrize(("make", "form"), [(new_warm, "warm"), (frozen, "frozen")])
def test_no_warm_ranker_is_made_of_a_ranker_which_would_lose_its_training(
    bare, tmp_path, make, form
):
    save_model(make(bare), tmp_path / "ranker")
    with pytest.raises(CheckpointProblem, match=f"of the {form} form already.*its base, bare"):
        new_warm(tmp_path / "ranker")
    assert load_model(tmp_path / "ranker").settings.form == form


def test_without_torch_it_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import secondlook.model.network"
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True)
    assert "pip install 'secondlook[torch]'" in ran.stderr


def test_loading_says_nothing(bare, capfd):
    new_joint(bare)
    new_warm(bare)
    assert capfd.readouterr() == ("", "")


def test_half_precision_weights_are_loaded_in_full(tmp_path):
    folder = tiny.save(tiny.classifier().half(), tmp_path)
    network = load_model(folder).network
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}
    assert np.isfinite(scores(network, tiny.batch(9)).numpy()).all()
