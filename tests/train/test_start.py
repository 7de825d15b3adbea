"""What a training may start from."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from invented import invent
from secondlook import Document, Query, Ranker
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.settings import FusionSettings
from secondlook.train.choice import whole_recipe
from secondlook.train.groups import write_groups
from secondlook.train.recipe import DataSettings
from secondlook.train.run import job, train
from secondlook.train.start import first_settings, kind_of, make_start

PAIRS = [(Query("q", "what is a tide"), Document("d", text)) for text in ("the tide", "a river")]


@pytest.fixture
def cross_encoder(tmp_path):
    return tiny.save(tiny.classifier(seed=3), tmp_path / "cross-encoder")


def test_the_kind_is_told_by_the_files(tmp_path, base, cross_encoder):
    assert kind_of(base) == "bi-encoder"
    assert kind_of(cross_encoder) == "cross-encoder"
    make_start(cross_encoder, tmp_path / "ranker")
    assert kind_of(tmp_path / "ranker") == "ranker"
    modular = tiny.save(tiny.encoder(), tmp_path / "modular")
    tiny.write_json(modular / "modules.json", [{"type": "a.Transformer"}, {"type": "b.Dense"}])
    tiny.write_json(modular / "config_sentence_transformers.json", {"model_type": "CrossEncoder"})
    assert kind_of(modular) == "cross-encoder"


def test_a_start_scores_as_the_cross_encoder_or_ranker_it_is_made_of(tmp_path, cross_encoder):
    make_start(cross_encoder, tmp_path / "first")
    settings = open_checkpoint(tmp_path / "first").settings
    assert (settings.form, settings.lineage.base) == ("joint", "cross-encoder")
    fused = settings.model_copy(update={"fusion": FusionSettings(weight=0.5)})
    (tmp_path / "first" / "secondlook.json").write_text(fused.model_dump_json())
    make_start(tmp_path / "first", tmp_path / "second")
    assert open_checkpoint(tmp_path / "second").settings.fusion is None
    scores = [
        Ranker.load(folder).score(PAIRS)
        for folder in (cross_encoder, tmp_path / "first", tmp_path / "second")
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-5)


def test_only_a_bi_encoder_begins_in_the_warm_form(base, cross_encoder, tmp_path):
    assert first_settings(base)["phases"] == ({"phase": "warm"},)
    assert first_settings(cross_encoder)["phases"] == ()
    assert first_settings(cross_encoder)["encode"] == {"max_length": 64}
    make_start(base, tmp_path / "ranker")
    assert "encode" not in first_settings(tmp_path / "ranker")


def test_a_cross_encoder_is_trained_on_as_it_is(tmp_path, cross_encoder):
    """Its trained head is the start to go back to, not a new one."""
    for name in ("train.parquet", "dev.parquet"):
        write_groups(tmp_path / name, invent(8), about={})
    data = DataSettings(train=("train.parquet",), validation="dev.parquet")
    recipe = whole_recipe(cross_encoder, data)
    assert [phase.phase for phase in recipe.phases] == ["listwise"]
    settings = train(job(recipe, tmp_path, tmp_path / "ranker", device="cpu"))
    assert settings.form == "joint"
    assert [phase.name for phase in settings.lineage.phases] == ["listwise"]
    at_start = settings.lineage.phases[0].metrics["nDCG@10 at the start"]
    assert settings.lineage.phases[0].metrics["nDCG@10"] >= at_start
