import os
import subprocess
import sys

import numpy as np
import pytest

import secondlook
import tiny
from secondlook.encode.settings import WindowSettings
from secondlook.encode.windows import split
from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.network import load_model, new_joint, new_warm, save_model
from secondlook.model.settings import IsotonicCalibration, PlattCalibration
from secondlook.score.ranker import Ranker
from secondlook.score.warm import make_warm
from secondlook.types import Document, Query, Scorer

QUERY = "where is cape fear"
TEXTS = [
    "cape fear is in the sea",
    "a bogue is a fish",
    "the tide of the river",
    "bogus",
    "cape fear river, deep in the tide of the sea. what is a fish?",
]


@pytest.fixture
def folder(tmp_path):
    """A warm ranker, which needs no training."""
    make_warm(tiny.save(tiny.encoder(), tmp_path / "base"), tmp_path / "ranker")
    return tmp_path / "ranker"


@pytest.fixture
def ranker(folder):
    return Ranker.load(folder, device="cpu")


def changed(folder, **changes):
    """The same ranker with other settings."""
    settings = open_checkpoint(folder).settings
    write_settings(folder, settings.model_copy(update=changes))
    return Ranker.load(folder, device="cpu")


def test_rank_gives_the_best_first_by_their_place(ranker):
    ranked = ranker.rank(QUERY, TEXTS)
    assert sorted(one["corpus_id"] for one in ranked) == [0, 1, 2, 3, 4]
    scores = [one["score"] for one in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 5
    assert all(set(one) == {"corpus_id", "score"} for one in ranked)
    assert all(type(one["score"]) is float and type(one["corpus_id"]) is int for one in ranked)


def test_rank_gives_the_top_k_with_their_texts(ranker):
    whole = ranker.rank(QUERY, TEXTS)
    best = ranker.rank(QUERY, TEXTS, top_k=2, return_documents=True)
    assert best == [one | {"text": TEXTS[one["corpus_id"]]} for one in whole[:2]]


def test_equal_documents_keep_their_order(ranker):
    assert [one["corpus_id"] for one in ranker.rank(QUERY, [TEXTS[0]] * 3)] == [0, 1, 2]


def test_no_documents_rank_as_none(ranker):
    assert ranker.rank(QUERY, []) == []
    assert ranker.predict([]).shape == (0,)


def test_predict_scores_as_rank_does(ranker):
    scores = ranker.predict([(QUERY, text) for text in TEXTS])
    for one in ranker.rank(QUERY, TEXTS):
        assert scores[one["corpus_id"]] == pytest.approx(one["score"], abs=1e-5)


def test_it_is_a_scorer_and_says_what_was_cut(folder):
    encode = open_checkpoint(folder).settings.encode.model_copy(update={"max_length": 16})
    ranker = changed(folder, encode=encode)
    assert isinstance(ranker, Scorer)
    pairs = [(Query("q", "cape fear"), Document("d", text)) for text in ("a fish", "tide " * 30)]
    scored = ranker.scored(pairs)
    # [CLS] … [SEP] beside the query: 2 tokens, so 14 of 30 are shown
    assert scored.cut.tolist() == [0, 16]
    np.testing.assert_array_equal(scored.scores, ranker.score(pairs))


def test_a_calibrated_ranker_shows_probabilities_and_scores_as_before(folder, ranker):
    raw = ranker.predict([(QUERY, text) for text in TEXTS], raw_scores=True)
    pairs = [(Query("", QUERY), Document("", text)) for text in TEXTS]
    for calibration in (
        PlattCalibration(slope=0.2, intercept=-3.0),
        IsotonicCalibration(scores=(-100.0, 100.0), probabilities=(0.0, 1.0)),
    ):
        calibrated = changed(folder, calibration=calibration)
        shown = calibrated.predict([(QUERY, text) for text in TEXTS])
        assert shown.min() > 0
        assert shown.max() < 1
        assert np.argsort(shown).tolist() == np.argsort(raw).tolist()
        np.testing.assert_allclose(calibrated.score(pairs), raw, atol=1e-4)


def test_a_ranker_without_a_stored_scale_fits_one_when_it_is_asked(folder, ranker):
    """A cross-encoder from elsewhere; a warm ranker of an older version, or made in Python."""
    unscaled = changed(folder, calibration=None)
    assert unscaled.settings.calibration is None
    shown = unscaled.predict([(QUERY, text) for text in TEXTS])
    assert len(set(shown.tolist())) == 5
    assert shown.max() < 0.999
    assert unscaled.scale.fitted_on.source == "reference pairs"
    assert unscaled.scale is unscaled.scale
    assert "not calibrated on judgments" in unscaled.score_meaning == ranker.score_meaning


def test_scores_too_large_for_a_sigmoid_still_rank(folder, ranker):
    """Sigmoid of 20 and of 40 are both 1 in float32; the order is the logits'."""
    saturated = changed(folder, calibration=PlattCalibration(slope=50, intercept=0))
    order = [one["corpus_id"] for one in ranker.rank(QUERY, TEXTS)]
    assert [one["corpus_id"] for one in saturated.rank(QUERY, TEXTS)] == order


@pytest.mark.parametrize("pooling", ["first", "max", "mean"])
def test_a_long_document_is_scored_by_its_windows(folder, ranker, pooling):
    windows = WindowSettings(length=6, stride=3, pooling=pooling)
    encode = open_checkpoint(folder).settings.encode.model_copy(update={"windows": windows})
    long = Document("d", " ".join(TEXTS), title="a title")
    parts = [one.document for one in split([long], windows, tiny.tokenizer())[0]]
    assert len(parts) > 3
    scores = ranker.score([(Query("q", QUERY), part) for part in parts])
    expected = {"first": scores[0], "max": scores.max(), "mean": scores.mean()}[pooling]
    pairs = [(Query("q", QUERY), document) for document in (Document("s", "bogus"), long)]
    pooled = changed(folder, encode=encode).score(pairs)
    assert pooled[1] == pytest.approx(expected, abs=1e-4)
    assert pooled[0] == pytest.approx(ranker.score(pairs[:1])[0], abs=1e-4)


def test_an_untrained_head_is_refused_unless_asked_for(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(CheckpointProblem, match="no trained head"):
        Ranker.load(base)
    assert len(Ranker.load(base, untrained_head=True, device="cpu").rank(QUERY, TEXTS)) == 5


def test_it_is_the_packages_own_ranker_and_imports_torch_only_to_load(folder):
    assert secondlook.Ranker is Ranker
    code = (
        "import sys; import secondlook; secondlook.Ranker; import secondlook.score.batching;"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=path).returncode == 0


def test_import_secondlook_loads_nothing_heavy():
    code = (
        "import sys; import secondlook;"
        "sys.exit(bool({'torch', 'transformers', 'tokenizers', 'numpy'} & set(sys.modules)))"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=path).returncode == 0


class TestBesideSentenceTransformers:
    """Cross-encoders from there score here as there, and ours score there as here."""

    PAIRS = tuple((QUERY, text) for text in (*TEXTS, "tide of the sea " * 40, ""))

    @pytest.fixture
    def peer(self):
        return pytest.importorskip("sentence_transformers").CrossEncoder

    @pytest.fixture(params=["sigmoid", "identity"])
    def activation(self, request):
        import torch

        return {"sigmoid": torch.nn.Sigmoid(), "identity": torch.nn.Identity()}[request.param]

    def test_one_logit_from_there(self, peer, activation, tmp_path):
        import torch

        there = peer(
            str(tiny.save(tiny.classifier(), tmp_path / "plain")),
            device="cpu",
            activation_fn=activation,
        )
        there.save_pretrained(str(tmp_path / "saved"))
        here = Ranker.load(tmp_path / "saved", device="cpu")
        scores = here.predict(self.PAIRS, raw_scores=True)
        shown = activation(torch.from_numpy(scores))
        np.testing.assert_allclose(shown, there.predict(self.PAIRS), atol=1e-4)
        assert here.predict(self.PAIRS).min() > 0
        assert here.predict(self.PAIRS).max() < 1

    def test_two_logits_from_there(self, peer, tmp_path):
        there = peer(str(tiny.save(tiny.classifier(logits=2), tmp_path / "plain")), device="cpu")
        there.save_pretrained(str(tmp_path / "saved"))
        two = there.predict(self.PAIRS)
        here = Ranker.load(tmp_path / "saved", device="cpu")
        raw = here.predict(self.PAIRS, raw_scores=True)
        np.testing.assert_allclose(raw, two[:, 1] - two[:, 0], atol=1e-4)

    def test_ours_over_there(self, peer, tmp_path):
        import torch

        model = load_model(tiny.save(tiny.classifier(), tmp_path / "plain"))
        save_model(model, tmp_path / "ranker")
        here = Ranker.load(tmp_path / "ranker", device="cpu")
        there = peer(str(tmp_path / "ranker"), device="cpu")
        logits = there.predict(self.PAIRS, activation_fn=torch.nn.Identity())
        np.testing.assert_allclose(logits, here.predict(self.PAIRS, raw_scores=True), atol=1e-4)
        sigmoid = here.settings.activation == "sigmoid"  # so that scores there stay as they were
        expected = logits if not sigmoid else 1 / (1 + np.exp(-logits))
        np.testing.assert_allclose(there.predict(self.PAIRS), expected, atol=1e-4)

    def test_a_new_joint_ranker_of_ours_over_there_is_cut_at_the_same_place(self, peer, tmp_path):
        base = tiny.save(tiny.encoder(), tmp_path / "base")
        save_model(new_joint(base, {"max_length": 24}), tmp_path / "ranker")
        here = Ranker.load(tmp_path / "ranker", device="cpu", untrained_head=True)
        there = peer(str(tmp_path / "ranker"), device="cpu")
        scores = here.predict(self.PAIRS, raw_scores=True)
        np.testing.assert_allclose(there.predict(self.PAIRS), scores, atol=1e-4)
        assert scores.min() < 0 or scores.max() > 1  # raw: no sigmoid on either side

    @pytest.mark.real
    def test_real_weights_and_a_real_vocabulary(self, peer, minilm_folder, tmp_path):
        there = peer(str(minilm_folder), num_labels=1, device="cpu")
        there.save_pretrained(str(tmp_path / "saved"))
        here = Ranker.load(tmp_path / "saved", device="cpu")
        pairs = [
            ("What is a bogue?", "The bogue (Boops boops) is a species of seabream."),
            ("où est Zürich", "Zürich liegt am Zürichsee — 400\u00a0000 habitants. 東京 не там."),
            ("long", "word " * 700),
        ]
        raw = here.predict(pairs, raw_scores=True)
        np.testing.assert_allclose(1 / (1 + np.exp(-raw)), there.predict(pairs), atol=1e-4)

    def test_a_warm_ranker_is_a_bi_encoder_over_there(self, minilm_folder, tmp_path):
        transformer = pytest.importorskip("sentence_transformers").SentenceTransformer
        save_model(new_warm(minilm_folder), tmp_path / "ranker")
        there = transformer(str(tmp_path / "ranker"), device="cpu")
        vectors = there.encode([QUERY, TEXTS[0]])
        original = transformer(str(minilm_folder), device="cpu").encode([QUERY, TEXTS[0]])
        np.testing.assert_allclose(vectors, original, atol=1e-6)
