"""A classifier of natural-language inference as a ranker, and its data as training groups."""

import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification, BartConfig

import tiny
from secondlook.data.nli import read_nli
from secondlook.errors import CheckpointProblem, MalformedInput
from secondlook.score.ranker import Ranker
from secondlook.train.groups import Groups
from secondlook.types import Document, Query
from secondlook.workflows.fuse import set_fusion, windows_of_words
from secondlook.workflows.nli import mine_nli, ranker_from_nli

NAMES = {0: "CONTRADICTION", 1: "neutral", 2: "entailment"}
PAIRS = [
    ("The sea is deep.", "The sea is not shallow.", "entailment"),
    ("The sea is deep.", "Fish live in it.", "neutral"),
    ("The sea is deep.", "The sea is shallow.", "contradiction"),
    ("A cape.", "A river.", "-"),
    ("A cape.", "Land.", "entailment"),
]


@pytest.fixture
def source(tmp_path):
    model = tiny.classifier(logits=3)
    model.config.id2label = NAMES
    return tiny.save(model, tmp_path / "mnli")


def logits(source, query, document):
    encoding = tiny.tokenizer().encode(query, document)
    ids, segments = torch.tensor([encoding.ids]), torch.tensor([encoding.type_ids])
    model = AutoModelForSequenceClassification.from_pretrained(source).eval()
    with torch.no_grad():
        return model(ids, token_type_ids=segments).logits[0].tolist()


def test_the_score_is_entailment_less_the_mean_of_the_others(source, tmp_path):
    ranker = Ranker.load(ranker_from_nli(source, tmp_path / "ranker"), device="cpu")
    contradiction, neutral, entailment = logits(source, "what is bogue", "the sea is deep")
    [score] = ranker.score([(Query("q", "what is bogue"), Document("d", "the sea is deep"))])
    assert score == pytest.approx(entailment - (neutral + contradiction) / 2, abs=1e-5)
    assert "+1 entailment -0.5 neutral -0.5 contradiction" in str(ranker.settings.lineage)


def test_the_head_of_bart_is_found(tmp_path):
    config = BartConfig(
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        vocab_size=100,
        max_position_embeddings=80,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=3,
        init_std=0.3,
        id2label=NAMES,
    )
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    source = tiny.save(model, tmp_path / "bart")
    ids = torch.tensor([tiny.tokenizer().encode("what is bogue", "the sea is deep").ids])
    with torch.no_grad():
        contradiction, neutral, entailment = model(ids).logits[0].tolist()
    pair = Query("q", "what is bogue"), Document("d", "the sea is deep")
    [difference] = Ranker.load(source, device="cpu").score([pair])
    assert difference == pytest.approx(entailment - contradiction, abs=1e-5)
    [score] = Ranker.load(ranker_from_nli(source, tmp_path / "r"), device="cpu").score([pair])
    assert score == pytest.approx(entailment - (neutral + contradiction) / 2, abs=1e-5)


def test_other_weights_are_followed(source, tmp_path):
    weights = {"entailment": 1.0, "neutral": 0.0, "contradiction": -1.0}
    folder = ranker_from_nli(source, tmp_path / "ranker", weights=weights)
    contradiction, _, entailment = logits(source, "a river", "a fish")
    [score] = Ranker.load(folder, device="cpu").score(
        [(Query("q", "a river"), Document("d", "a fish"))]
    )
    assert score == pytest.approx(entailment - contradiction, abs=1e-5)


def test_classes_without_names_are_asked_for(source, tmp_path):
    config = json.loads((source / "config.json").read_text())
    config["id2label"] = {str(n): f"LABEL_{n}" for n in range(3)}
    (source / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointProblem, match="name these as `classes`"):
        ranker_from_nli(source, tmp_path / "ranker")
    order = ("contradiction", "neutral", "entailment")
    assert ranker_from_nli(source, tmp_path / "ranker", classes=order).is_dir()


def test_an_encoder_without_a_classifier_is_refused(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(CheckpointProblem, match="no trained classifier"):
        ranker_from_nli(base, tmp_path / "r", classes=("entailment", "neutral", "contradiction"))


def test_ccnus_document_score_is_bm25_and_the_three_best_windows_as_they_are(source, tmp_path):
    folder = ranker_from_nli(source, tmp_path / "ranker")
    set_fusion(folder, 0.9, "raw", windows=windows_of_words(2, 2, (0.5, 0.3, 0.2)))
    ranker = Ranker.load(folder, device="cpu")
    query, words = Query("q", "what is bogue"), "cape fear river tide deep sea fish bog".split()
    windows = [" ".join(words[at : at + 2]) for at in range(0, 8, 2)]
    own = sorted((logits_score(source, query.text, window) for window in windows), reverse=True)
    settings = ranker.settings
    assert (settings.fusion.weight, settings.fusion.scale) == (0.9, "raw")
    [score] = ranker.score([(query, Document("d", " ".join(words)))])
    assert score == pytest.approx(0.5 * own[0] + 0.3 * own[1] + 0.2 * own[2], abs=1e-4)


def logits_score(source, query, document):
    contradiction, neutral, entailment = logits(source, query, document)
    return entailment - (neutral + contradiction) / 2


@pytest.mark.parametrize("form", ["jsonl", "tsv"])
def test_nli_data_become_groups_of_a_premise(form, tmp_path):
    path = tmp_path / f"mnli.{form}"
    names = ("sentence1", "sentence2", "gold_label")
    if form == "jsonl":
        lines = [json.dumps(dict(zip(names, pair, strict=True))) for pair in PAIRS]
    else:
        lines = ["\t".join(("index", *names)), *("\t".join(("7", *pair)) for pair in PAIRS)]
    path.write_text("\n".join(lines) + "\n")
    assert [pair.label for pair in read_nli(path)] == [
        "entailment", "neutral", "contradiction", "entailment",
    ]  # fmt: skip
    assert mine_nli(path, tmp_path / "groups.parquet") == 2
    sea, cape = Groups([tmp_path / "groups.parquet"])
    assert (sea.query.text, sea.labels) == ("The sea is deep.", (1, 0, 0))
    assert [document.text for document in cape.documents] == ["Land."]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"sentence1": "a", "sentence2": "b", "gold_label": "maybe"}\n', "must be one of"),
        ('{"sentence1": "a"}\n', "must have texts"),
        ("{oops\n", "is no JSON"),
        ("one\ttwo\n", "names no column 'sentence1'"),
        ("sentence1\tsentence2\tgold_label\na\tb\n", "2 columns, not 3"),
    ],
)
def test_what_is_no_nli_data_is_refused_with_its_line(text, problem, tmp_path):
    (tmp_path / "x").write_text(text)
    with pytest.raises(MalformedInput, match=problem):
        list(read_nli(tmp_path / "x"))
