"""Every paper's script, from files to tables, on a sample with two-layer networks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tiny
from invented import DEEP_SEA
from secondlook import Ranker
from secondlook.data import write_corpus
from secondlook.train.recipe import read_recipe, resolved

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "papers"))

import ccnu  # noqa: E402
import drbert  # noqa: E402
import markedbert  # noqa: E402
import monobert  # noqa: E402
import monobert_car  # noqa: E402
from stages import Run  # noqa: E402

TYPES = ["what is\tdescription\tDESC", "who is\tperson\tHUM", "where is\tlocation\tLOC"]
SHORT = {"max_steps": 1, "batch": 2, "head_steps": 1, "validate_queries": 2, "epochs": 1.0}


@pytest.fixture
def run(tmp_path):
    """A folder named and filled as MS MARCO's, small recipes, and a base."""
    data, recipes = tmp_path / "data", tmp_path / "recipes"
    data.mkdir()
    recipes.mkdir()
    (tmp_path / "work").mkdir()
    _ms_marco(data)
    for path in (ROOT / "recipes").glob("*.toml"):
        recipe = read_recipe(path)
        (recipes / path.name).write_text(resolved(_small(recipe)))
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    return Run(data, tmp_path / "work", str(base), recipes, depth=5, max_steps=1, device="cpu")


def _small(recipe):
    """The recipe as it is shipped, in fewer steps and shorter texts."""
    phases = []
    for phase in recipe.phases:
        fields = {name: value for name, value in SHORT.items() if name in type(phase).model_fields}
        if phase.phase == "frozen":
            fields["form"] = phase.form.model_copy(update={"hidden": 4})
        if phase.phase == "adapt":
            fields |= {"held_out": 1, "corpus": "corpus.jsonl"}
        phases.append(phase.model_copy(update=fields))
    encode = recipe.encode | {"max_length": 40}
    changed = {"phases": tuple(phases), "encode": encode}
    if recipe.data.triples is not None:
        triples = recipe.data.triples.model_copy(update={"share": 1.0})
        changed["data"] = recipe.data.model_copy(update={"triples": triples})
    return recipe.model_copy(update=changed)


def _ms_marco(data):
    texts = {str(n): document.text for n, document in enumerate(DEEP_SEA)}
    _tsv(data / "collection.tsv", texts.items())
    write_corpus(data / "corpus.jsonl", DEEP_SEA)
    questions = {
        f"q{n}": f"what is {text.split()[1]}" for n, text in list(enumerate(texts.values()))
    }
    for split, part in (
        ("train", range(12)),
        ("dev.small", range(12, 20)),
        ("dl19", range(20, 24)),
    ):
        names = [f"q{n}" for n in part]
        _tsv(data / f"queries.{split}.tsv", ((name, questions[name]) for name in names))
        lines = "".join(f"{name}\t0\t{name[1:]}\t2\n" for name in names)
        (data / f"qrels.{split}.{'txt' if split == 'dl19' else 'tsv'}").write_text(lines)
    triples = ((questions[f"q{n}"], texts[str(n)], texts[str(n + 9)]) for n in range(12))
    _tsv(data / "triples.train.small.tsv", triples)
    rows = [row.split("\t") for row in TYPES for _ in range(3)]
    _tsv(data / "query-types.tsv", [("query", "type"), *((row[0], row[1]) for row in rows)])
    _tsv(data / "trec-qc.train.tsv", [("query", "type"), *((row[0], row[2]) for row in rows)])


def _tsv(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


def test_monobert_on_ms_marco(run):
    table = monobert.reproduce(run)
    assert "bm25.trec" in table
    assert "reranked.trec" in table
    assert monobert.reproduce(run) == table  # all is there: nothing is made again


def test_markedbert_and_its_three_tables(run, tmp_path):
    table = markedbert.reproduce(run, expander_base=tmp_path / "base")
    assert table.index("bm25.trec") < table.index("doc2query.trec"), "table 1's first row"
    assert "markedbert.reranked.trec" in table
    assert "| query length in words | queries |" in table
    assert "| DESC |" in table


def test_ccnus_two_runs(run, tmp_path):
    passages = ccnu.passages(run)
    assert "passages.reranked.trec" in passages
    assert "P(rel=2)@10" in passages, "grade 1 of the passage task is not relevant"
    classifier = tiny.classifier(logits=3)
    classifier.config.id2label = {0: "entailment", 1: "neutral", 2: "contradiction"}
    mnli = tiny.save(classifier, tmp_path / "mnli")
    for split in ("queries.dl19.tsv", "qrels.dl19.txt"):
        text = (run.data / split).read_text()
        (run.data / split.replace("dl19", "doc")).write_text(text)
    rows = (line.split("\t") for line in (run.data / "collection.tsv").read_text().splitlines())
    _tsv(run.data / "docs.tsv", [(one, f"https://sea/{one}", "", text) for one, text in rows])
    documents = ccnu.documents(run, str(mnli))
    assert "documents.reranked.trec" in documents
    assert "P@10" in documents, "grade 1 of the document task is relevant"


def test_drbert_over_deepct_with_the_vocabulary_gap(run, tmp_path):
    write_corpus(run.data / "bert-corpus.jsonl", DEEP_SEA[:5])
    table = drbert.reproduce(run, weigher_base=tmp_path / "base")
    assert table.index("bm25.trec") < table.index("deepct.trec") < table.index("reranked.trec")
    untyped = Ranker.load(run.work / "drbert", device="cpu").rank("what is sea", ["the deep sea"])
    assert len(untyped) == 1, "it brings the classifier of query types"
    assert "of the most frequent words are not bert-corpus.jsonl's" in table
    card = json.loads((run.work / "deepct.index" / "index.json").read_text())
    assert card["settings"]["k1"] == 30, "weights are frequencies of up to 100"


def test_monobert_on_trec_car_with_its_folds(run):
    folds = (*(f"fold{n}" for n in range(5)), "test")
    for number, fold in enumerate(folds):
        documents = DEEP_SEA[4 * number : 4 * number + 4]
        paths = [f"enwiki:Sea/{d.text.split()[1]}/{d.text.split()[3]}" for d in documents]
        (run.data / f"{fold}.outlines").write_text("".join(f"{path}\n" for path in paths))
        judged = zip(paths, documents, strict=True)
        lines = "".join(f"{path} 0 {document.id} 1\n" for path, document in judged)
        (run.data / f"{fold}.qrels").write_text(lines)
    table = monobert_car.reproduce(run, corpus="corpus.jsonl")
    assert "reranked.trec" in table
    assert "AP@1000" in table
