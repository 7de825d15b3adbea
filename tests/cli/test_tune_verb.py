from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import secondlook as sl
import tiny
from secondlook.cli import app
from secondlook.cli.tune import NOT_SHIPPED
from secondlook.data import read_qrels, read_queries, read_run
from secondlook.data.splits import read_splits
from secondlook.errors import MissingExtra, SecondlookError
from secondlook.evaluate.measures import evaluate
from secondlook.model.checkpoint import files_fingerprint, open_checkpoint
from secondlook.model.network import new_warm, save_model
from secondlook.train.budget import Clock
from secondlook.train.groups import Groups
from secondlook.workflows.fuse import set_fusion
from secondlook.workflows.rerank import rerank
from secondlook.workflows.tune_stages import Tuning

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def data(tmp_path):
    """Documents of letters; a query asks for letters of its own document."""
    rng = random.Random(3)
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    texts = {f"d{n}": rng.choices(LETTERS, k=8) for n in range(30)}
    with (folder / "corpus.jsonl").open("w") as corpus:
        for doc_id, letters in texts.items():
            corpus.write(json.dumps({"_id": doc_id, "text": " ".join(letters)}) + "\n")
    with (folder / "queries.jsonl").open("w") as queries:
        for doc_id, letters in texts.items():
            asked = " ".join(rng.sample(letters, 3))
            queries.write(json.dumps({"_id": f"q-{doc_id}", "text": asked}) + "\n")
    rows = "".join(f"q-{doc_id}\t{doc_id}\t1\n" for doc_id in texts)
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    return folder


def tune(data, *more):
    base = tiny.save(tiny.encoder(), data.parent / "base")
    given = data, "-o", data.parent / "out", "--base", base, "--depth", 10, "--device", "cpu"
    return CliRunner().invoke(app, ["tune", *map(str, given), *more], catch_exceptions=False)


@pytest.fixture(autouse=True)
def _no_export(monkeypatch):
    """Exports have tests of their own, and take most of the time here."""
    monkeypatch.setattr(
        "secondlook.workflows.export.export", lambda *_, **__: SimpleNamespace(summary=str)
    )
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)


def test_it_goes_from_a_folder_to_a_verdict_and_goes_on_where_it_stopped(data, monkeypatch):
    report = "secondlook.workflows.report.report"
    with monkeypatch.context() as patch:
        patch.setattr(report, interrupted)
        with pytest.raises(RuntimeError, match="power cut"):
            tune(data, "--minutes", "30")
    out = data.parent / "out"
    trained = out / "stages" / "trained" / "model.safetensors"
    made = trained.stat().st_mtime_ns
    assert not (out / "ranker").exists()

    done = tune(data, "--minutes", "30")

    assert trained.stat().st_mtime_ns == made
    told = json.loads((out / "verdict.json").read_text())
    assert told["runs"][-1]["run"] == "tuned"
    assert "<html" in (out / "report.html").read_text()
    helps = told["runs"][-1]["verdict"] == "helps"
    assert done.exit_code == (0 if helps else NOT_SHIPPED)
    assert (out / "ranker").exists() == helps

    page = (out / "report.html").read_text()
    assert "--minutes 30 --depth 10 --overlap drop --device cpu --seed 7" in page
    assert "listwise" in page  # trained or not kept, the lineage has it

    assert tune(data, "--ship").exit_code == 0
    assert "scores are not calibrated" in done.stdout  # nothing is judged not relevant

    set_fusion(out / "ranker", 0.123)  # what somebody sets in the shipped ranker stays
    (out / "report.html").write_text("kept")
    assert tune(data, "--ship").exit_code == 0
    assert open_checkpoint(out / "ranker").settings.fusion.weight == 0.123
    assert (out / "report.html").read_text() == "kept"

    rmtree(out / "stages")
    again = tune(data, "--minutes", "0.1", "--seed", "8")
    helps_now = again.exit_code == 0
    assert helps_now or "of an earlier tuning" in again.output
    assert "not trained: too little time" in (out / "report.html").read_text()
    if not helps_now:
        tune(data, "--minutes", "0.1", "--seed", "8", "--ship")
    shipped, tuned = (open_checkpoint(folder) for folder in (out / "ranker", out / "stages/tuned"))
    assert shipped.settings == tuned.settings
    assert files_fingerprint(shipped.folder) == files_fingerprint(tuned.folder)


def test_too_short_a_time_is_said_and_each_pair_is_scored_once(data, monkeypatch):
    scored = []

    def counted(run, index, queries, ranker, output, **given):
        scored.append(output.name)
        return rerank(run, index, queries, ranker, output, **given)

    monkeypatch.setattr("secondlook.workflows.rerank.rerank", counted)
    done = tune(data, "--minutes", "0.1", "--ship")
    assert done.exit_code == 0
    assert "too little time to train here: " in done.stdout
    assert "in all about" in done.stdout
    assert scored == ["dev.untuned.trec.gz", "tested.untuned.trec.gz"]
    out = data.parent / "out"
    assert not (out / "stages" / "trained").exists()
    told = json.loads((out / "verdict.json").read_text())
    fused = json.loads((out / "ranker" / "secondlook.json").read_text())["fusion"]
    assert len(told["runs"]) == (2 if fused else 1)
    assert bool(told["against_untuned"]) == bool(fused)
    assert told["gain"] in done.stdout
    page = (out / "report.html").read_text()
    assert "not trained: too little time" in page
    raw = (out / "stages" / "experiment.toml").read_text()
    assert "raw = [" in raw


@pytest.mark.parametrize(("weight", "said"), [(1.0, True), (0.3, False)])
def test_a_gain_that_is_the_first_stages_alone_is_said_to_be(data, weight, said):
    tune(data, "--minutes", "0.1", "--ship")
    out = data.parent / "out"
    set_fusion(out / "stages" / "tuned", weight=weight)
    (out / "report.html").unlink()
    done = tune(data, "--minutes", "0.1", "--ship")
    told = json.loads((out / "verdict.json").read_text())
    assert told["first_stage_alone"] == said
    for text in (told["gain"], done.stdout, (out / "report.html").read_text()):
        assert ("Search without the re-ranker" in text) == said


def test_it_learns_from_relevant_documents_that_the_first_stage_finds(data):
    """Beside the best hits as negatives, others teach that a match is not relevant."""
    corpus = {row["_id"]: set(row["text"].split()) for row in lines(data / "corpus.jsonl")}
    asked = {row["_id"]: set(row["text"].split()) for row in lines(data / "queries.jsonl")}
    unfound = {
        query: next(doc_id for doc_id, letters in corpus.items() if not letters & wanted)
        for query, wanted in asked.items()
    }
    train = data / "qrels" / "train.tsv"
    both = train.read_text() + "".join(f"{query}\t{d}\t1\n" for query, d in unfound.items())
    train.write_text(both)
    tune(data, "--minutes", "30")
    groups = list(Groups([data.parent / "out" / "stages" / "groups" / "train.parquet"]))
    assert groups
    for group in groups:
        assert unfound[group.query.id] not in {document.id for document in group.documents}
        assert sum(label > 0 for label in group.labels) == 1


def test_where_the_first_stage_finds_nothing_relevant_it_says_so(data):
    corpus = {row["_id"]: set(row["text"].split()) for row in lines(data / "corpus.jsonl")}
    rows = "query-id\tcorpus-id\tscore\n"
    for row in lines(data / "queries.jsonl"):
        wanted = set(row["text"].split())
        unfound = next(doc_id for doc_id, letters in corpus.items() if not letters & wanted)
        rows += f"{row['_id']}\t{unfound}\t1\n"
    (data / "qrels" / "train.tsv").write_text(rows)
    with pytest.raises(SecondlookError, match="nothing to learn from: no query has a positive"):
        tune(data, "--minutes", "30")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_of_several_bases_the_best_on_validation_queries_is_the_start(data):
    """Two bi-encoders and a cross-encoder, all with random weights."""
    bases = [tiny.save(tiny.encoder(seed=seed), data.parent / f"base-{seed}") for seed in (1, 2)]
    bases.insert(1, tiny.save(tiny.classifier(seed=3), data.parent / "cross"))
    result = sl.tune(data, data.parent / "out", base=bases, depth=10, minutes=0.1, device="cpu")
    stages = data.parent / "out" / "stages"
    assert set(result.bases) == set(map(str, bases))
    assert result.bases[result.base] == max(result.bases.values())
    tried = read_qrels(stages / "used" / "tried.tsv")
    assert tried == read_qrels(stages / "qrels" / "dev.tsv")
    for number, base in enumerate(bases, start=1):
        run = list(read_run(stages / f"tried.base-{number}.trec.gz"))
        assert evaluate(tried, run, ["nDCG@10"]).means["nDCG@10"] == result.bases[str(base)]
        assert documents(run) == documents(read_run(stages / "tried.bm25.trec.gz"))
    lineage = json.loads((stages / "untuned" / "secondlook.json").read_text())["lineage"]
    assert lineage["base"] == Path(result.base).name
    assert not (stages / "base-1").exists()
    told = json.loads((data.parent / "out" / "verdict.json").read_text())
    assert (told["base"], told["bases"]) == (result.base, dict(result.bases))
    assert f"started from {result.base}, the best untrained" in result.conclusion()
    again = sl.tune(data, data.parent / "out", base=bases, depth=10, minutes=0.1, device="cpu")
    assert again.bases == result.bases


def documents(run):
    return {ranking.query_id: {hit.doc_id for hit in ranking.hits} for ranking in run}


def test_a_cross_encoder_is_tuned_as_it_is(data):
    base = tiny.save(tiny.classifier(seed=3), data.parent / "cross")
    given = data, "-o", data.parent / "out", "--base", base, "--depth", 10, "--device", "cpu"
    done = CliRunner().invoke(
        app, ["tune", *map(str, given), "--minutes", "30", "--ship"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert f"started from {base}" in done.stdout
    settings = json.loads((data.parent / "out" / "ranker" / "secondlook.json").read_text())
    assert settings["warm"] is None
    recipe = (data.parent / "out" / "stages" / "recipe.toml").read_text()
    assert 'phase = "listwise"' in recipe
    assert 'phase = "warm"' not in recipe


def test_a_base_that_cannot_be_read_is_noticed_before_anything_is_made(data):
    with pytest.raises(SecondlookError, match="neither a folder nor a hub id"):
        sl.tune(data, data.parent / "out", base=[data.parent / "no such base"])
    assert not (data.parent / "out" / "stages" / "index").exists()


def test_a_report_that_cannot_be_drawn_is_noticed_before_anything_is_made(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'secondlook\[report\]'"):
        sl.tune(data, data.parent / "out")
    assert not (data.parent / "out").exists()


def test_missing_judgments_are_noticed_before_anything_is_made(data):
    (data / "qrels" / "train.tsv").unlink()
    with pytest.raises(SecondlookError, match=r"no train\.tsv"):
        tune(data)
    assert not (data.parent / "out" / "stages" / "index").exists()


def test_a_folder_is_for_the_arguments_it_was_begun_with(data):
    def tuning(**changes):
        given = {"bases": ("e5",), "depth": 10, "device": None, "clicks": None, "clock": Clock(60)}
        return Tuning(data=data, output=data.parent / "out", expander=None, **given | changes)

    (data / "log.jsonl").touch()
    others = (
        {"bases": ("e6",)},
        {"bases": ("e5", "e6")},
        {"seed": 8},
        {"depth": 20},
        {"clicks": data / "log.jsonl"},
        {"overlap": "keep"},
    )
    for changes in others:
        tuning(**changes).claim()  # nothing is made yet: a wrong word can be mended
    tuning().claim()
    stages = tuning().results
    (stages / "qrels").mkdir()
    for made in ("index", "untuned", "plan.json", "qrels/train.tsv", "recipe.toml"):
        (stages / made).touch()
    tuning(clock=Clock(300), device="cpu").claim()
    for changes in others:
        with pytest.raises(
            SecondlookError, match=r"was started with (base|seed|depth|clicks|overlap)"
        ):
            tuning(**changes).claim()


@pytest.mark.parametrize(
    ("file", "name"),
    [("corpus.jsonl", "the corpus"), ("qrels/train.tsv", "queries and judgments")],
)
def test_a_folder_is_for_the_data_it_was_begun_with(data, file, name):
    tuning = Tuning(data, data.parent / "out", ("",), 10, None, None, None, Clock(60))
    tuning.claim()
    (tuning.results / "qrels").mkdir()
    for made in ("index", "qrels/train.tsv"):
        (tuning.results / made).touch()
    text = (data / file).read_text()
    (data / file).write_text(text.replace("d7", "d8"))
    with pytest.raises(SecondlookError, match=f"other contents of {name}.*another folder"):
        tuning.claim()
    (data / file).write_text(text)
    tuning.claim()


@pytest.mark.parametrize("better", ["trained", "untuned", "separate"])
def test_what_is_better_on_the_validation_queries_goes_on(data, monkeypatch, better):
    """Of equals the base; without cross-attention where that is no worse."""
    means = {
        "trained": {"trained": 0.2, "untuned": 0.1, "separate": 0.19},
        "untuned": {"trained": 0.15, "untuned": 0.15},
        "separate": {"trained": 0.2, "untuned": 0.1, "separate": 0.2},
    }[better]
    monkeypatch.setattr(Tuning, "_candidates", lambda _: ["untuned", "trained"])
    with monkeypatch.context() as patch:
        patch.setattr(Tuning, "validated", lambda _, name: means[name])
        patch.setattr("secondlook.workflows.fuse.tune_fusion", interrupted)
        with pytest.raises(RuntimeError, match="power cut"):
            tune(data, "--minutes", "30")
    stages = data.parent / "out" / "stages"
    weights = [(stages / name / "model.safetensors").read_bytes() for name in ("tuned", better)]
    assert weights[0] == weights[1]
    phases = json.loads((stages / "tuned" / "secondlook.json").read_text())["lineage"]["phases"]
    names = [phase["name"] for phase in phases]
    assert (
        names
        == {
            "trained": ["warm", "listwise"],
            "untuned": ["listwise, not kept"],
            "separate": ["warm", "listwise", "cross-attention left out"],
        }[better]
    )


def test_a_training_that_kept_the_base_is_no_candidate(data):
    tuning = Tuning(data, data.parent / "out", ("",), 10, None, None, None, Clock(60))

    def make(name, seed):
        base = tiny.save(tiny.encoder(seed=seed), data.parent / f"base.{seed}")
        save_model(new_warm(base), tuning.results / name)

    make("untuned", 1)
    make("trained", 1)
    settings = tuning.results / "trained" / "secondlook.json"
    cut = json.loads(settings.read_text())
    cut["encode"]["max_length"] //= 2  # as training reads
    settings.write_text(json.dumps(cut))
    assert tuning._candidates() == ["untuned"]
    make("trained", 2)
    assert tuning._candidates() == ["untuned", "trained"]


def test_it_learns_from_clicks_and_says_so(data, monkeypatch):
    """Documents trade places; the one that is meant is clicked, the less the lower it stands."""
    monkeypatch.setattr(Tuning, "_candidates", lambda _: ["trained"])
    rng = random.Random(5)
    queries = [json.loads(line) for line in (data / "queries.jsonl").read_text().splitlines()]
    with (data.parent / "log.jsonl").open("w") as log:
        for query in queries:
            wanted = query["_id"].removeprefix("q-")
            others = [f"d{n}" for n in range(30) if f"d{n}" != wanted]
            for _ in range(12):
                shown = [*rng.sample(others, 3), wanted]
                rng.shuffle(shown)
                place = shown.index(wanted) + 1
                clicked = [wanted] if rng.random() < 1 / place else []
                page = {"query": query["text"], "shown": shown, "clicked": clicked}
                log.write(json.dumps(page) + "\n")
    (data / "queries.jsonl").unlink()
    (data / "qrels" / "train.tsv").unlink()
    done = tune(data, "--minutes", "30", "--clicks", str(data.parent / "log.jsonl"), "--ship")
    assert done.exit_code == 0
    assert "verdict is based on clicks: 360 impressions" in done.stdout
    made = data.parent / "out" / "stages" / "made"
    meant = {query["text"]: query["_id"].removeprefix("q-") for query in queries}
    found = read_qrels(made / "qrels" / "train.tsv")
    asked = {query.id: query.text for query in read_queries(made)}
    right = [found[one].get(meant[asked[one]]) == 1 for one in asked]
    assert sum(right) >= 0.9 * len(queries)
    ranker = data.parent / "out" / "ranker"
    phases = json.loads((ranker / "secondlook.json").read_text())["lineage"]["phases"]
    assert phases[-1]["labels"].startswith("clicks: 360 impressions")
    assert "no person gave (clicks: 360" in (ranker / "README.md").read_text()


def interrupted(*_, **__):
    raise RuntimeError("power cut")


def test_no_query_is_learnt_from_and_judged_by(data):
    splits = read_splits(data)
    parts = [set(splits.train), set(splits.dev), set(splits.test)]
    assert [len(part) for part in parts] == [19, 5, 6]
    assert len(set.union(*parts)) == 30


def test_the_splits_that_are_there_are_taken(data):
    whole = read_qrels(data / "qrels" / "train.tsv")
    for name, query in {"dev": "q-d1", "test": "q-d2"}.items():
        lines = f"query-id\tcorpus-id\tscore\n{query}\td1\t1\n"
        (data / "qrels" / f"{name}.tsv").write_text(lines)
    splits = read_splits(data)
    assert (set(splits.dev), set(splits.test)) == ({"q-d1"}, {"q-d2"})
    assert set(splits.train) == set(whole) - {"q-d1", "q-d2"}


def test_dev_gives_the_verdict_where_there_is_no_test(data):
    (data / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq-d1\td1\t1\n")
    splits = read_splits(data)
    assert set(splits.test) == {"q-d1"}
    assert splits.dev


def test_without_judgments_it_says_what_is_missing(data):
    (data / "qrels" / "train.tsv").unlink()
    with pytest.raises(SecondlookError, match=r"train\.tsv"):
        read_splits(data)
