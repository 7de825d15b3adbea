"""Cross-encoders of sentence-transformers whose head is a chain of modules."""

import numpy as np
import pytest
import torch

import tiny
from layouts import LAYOUTS, modular
from parity import assert_scores_alike, change, raw, trained_one_step
from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.network import new_joint, new_warm
from secondlook.score.export_folder import fingerprint
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend


@pytest.mark.parametrize(
    "pooling",
    [
        *(
            pytest.param(mode, marks=pytest.mark.slow)
            for mode in ("mean_sqrt_len_tokens", "max", "lasttoken")
        ),
        *("weightedmean", ("cls", "mean")),
    ],
)
def test_all_ways_to_pool(peer, tmp_path, pooling):
    path = modular(tmp_path / "plain", "bert", pooling)
    assert_scores_alike(path, peer(path), tmp_path)


def test_pooling_as_older_versions_stored_it(peer, tmp_path):
    path = modular(tmp_path / "plain", "bert", "cls")
    older = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True}
    tiny.write_json(path / "1_Pooling" / "config.json", older | {"pooling_mode_max_tokens": False})
    assert_scores_alike(path, peer(path), tmp_path)


def test_the_head_is_trained_on_and_not_dropped(tmp_path):
    path = modular(tmp_path / "plain")
    kept = dict(new_joint(path).network.classifier.head.named_parameters())
    stored = tiny_weights(path / "6_Dense")
    np.testing.assert_array_equal(kept["5.linear.weight"].detach(), stored["linear.weight"])
    tuned = trained_one_step(path, tmp_path / "tuned")
    assert abs(tiny_weights(tuned / "6_Dense")["linear.weight"] - stored["linear.weight"]).max() > 0


def tiny_weights(path):
    from safetensors.numpy import load_file

    return load_file(path / "model.safetensors")


@pytest.mark.parametrize("layout", ["bert", "modular", "qwen3, causal", "qwen3, classifier"])
def test_a_warm_ranker_is_not_made_of_a_cross_encoder(tmp_path, layout):
    path = LAYOUTS[layout](tmp_path / "plain")
    with pytest.raises(CheckpointProblem, match="trained head a warm ranker would lose"):
        new_warm(path)


def test_strm_with_modules(tmp_path):
    path = modular(tmp_path / "plain")
    plain, strm = new_joint(path), new_joint(path, {"strm": True})
    scores = [
        raw(Ranker(m.settings, m.tokenizer, TorchBackend(m.network)), [("bogue", "bogus bogue")])
        for m in (plain, strm)
    ]
    assert abs(scores[0] - scores[1]) > 1e-3


def test_modules_that_are_not_known_are_refused(tmp_path):
    path = modular(tmp_path / "plain")
    modules = tiny.read_json(path / "modules.json")
    for name, kind in (("WordWeights", "sentence_transformers.x.WordWeights"), ("own.Head",) * 2):
        changed = [*modules[:-1], modules[-1] | {"type": kind}]
        tiny.write_json(path / "modules.json", changed)
        for load in (Ranker.load, new_joint):
            with pytest.raises(CheckpointProblem, match=rf"made by {name}.*not dropped"):
                load(path)


@pytest.mark.parametrize(
    ("module", "values", "refused"),
    [
        (
            "6_Dense",
            {"activation_function": "my.own.Activation"},
            "activation is my.own.Activation",
        ),
        ("6_Dense", {"activation_function": "torch.nn.Softmin"}, "activation is torch.nn.Softmin"),
        ("6_Dense", {"out_features": 7}, "not of the sizes"),
        ("6_Dense", {"module_output_name": "other"}, "no Dense module that writes 'scores'"),
        ("4_Dense", {"module_input_name": "nothing"}, "reads 'nothing', which no module"),
        ("1_Pooling", {"pooling_mode": "median"}, "pools by 'median'"),
    ],
)
def test_modules_that_cannot_be_followed_are_refused(tmp_path, module, values, refused):
    path = modular(tmp_path / "plain")
    change(path / module / "config.json", **values)
    with pytest.raises(CheckpointProblem, match=refused):
        Ranker.load(path)


def test_weights_of_a_module_are_never_a_pickle(tmp_path):
    path = modular(tmp_path / "plain")
    weights = path / "6_Dense" / "model.safetensors"
    torch.save({"linear.weight": torch.zeros(1, 24)}, path / "6_Dense" / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(CheckpointProblem, match="only safetensors are loaded"):
        Ranker.load(path)


@pytest.mark.parametrize("place", ["../elsewhere", "/etc", 3])
def test_modules_lie_in_the_models_folder(tmp_path, place):
    path = modular(tmp_path / "plain")
    modules = tiny.read_json(path / "modules.json")
    tiny.write_json(path / "modules.json", [*modules[:-1], modules[-1] | {"path": place}])
    with pytest.raises(CheckpointProblem, match="no folder of the model"):
        Ranker.load(path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_an_export_belongs_to_one_head(tmp_path, name):
    path = modular(tmp_path / "plain")
    other = modular(tmp_path / "other", activation=torch.nn.Tanh, seed=4)
    before = fingerprint(open_checkpoint(path))
    (path / "6_Dense" / name).write_bytes((other / "6_Dense" / name).read_bytes())
    assert fingerprint(open_checkpoint(path)) != before
