"""`calibrate` and `report`: what they take, what they refuse, what they record."""

from __future__ import annotations

import json
import sys

import pytest

import tiny
from command_line import in_process as secondlook
from secondlook import Ranker
from secondlook.cli import main
from secondlook.data import read_run, run_tag, write_qrels, write_run
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import FusionSettings
from secondlook.score.calibration import raw_scores_of
from secondlook.types import Hit, Ranking

WORDS = "cape fear river tide fish bogue sea deep".split()
TEXTS = {
    f"d{n}": f"the {WORDS[n % 8]} is {n}. " + " ".join(WORDS[n % 8 :] + WORDS[: n % 8])
    for n in range(24)
}
QUERIES = {f"q{n}": f"what is the {WORDS[n % 8]} of {n}" for n in range(12)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A warm ranker that reads windows and fuses, an index, and its raw run of all pairs."""
    folder = tmp_path_factory.mktemp("calibrate")
    for name, rows in (("corpus", TEXTS), ("queries", QUERIES)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    hits = [Hit(doc_id, float(-n)) for n, doc_id in enumerate(TEXTS)]
    write_run(folder / "first.trec", [Ranking.of(query, hits) for query in QUERIES])
    tiny.save(tiny.encoder(), folder / "base")
    secondlook("warm", folder / "base", "-o", folder / "ranker", "--window", "4")
    settings = open_checkpoint(folder / "ranker").settings
    fusion = FusionSettings(weight=0.5)
    write_settings(folder / "ranker", settings.model_copy(update={"fusion": fusion}))
    secondlook("index", folder / "corpus.jsonl", folder / "index")
    for name, more in (("raw", ["--raw"]), ("fused", [])):
        given = ["--index", folder / "index", "--queries", folder / "queries.jsonl"]
        given += ["--ranker", folder / "ranker", "-o", folder / f"{name}.trec"]
        secondlook("rerank", folder / "first.trec", *given, *more)
    return folder


@pytest.fixture
def data(made):
    """The same, with the ranker as it was."""
    before = (made / "ranker" / "secondlook.json").read_text()
    yield made
    (made / "ranker" / "secondlook.json").write_text(before)


def positives(data, *, best):
    """Judgments that name only what is relevant: the three best, or worst, by pooled raw score."""
    settings = open_checkpoint(data / "ranker").settings
    chosen = {}
    for ranking in raw_scores_of(settings, read_run(data / "raw.trec"), "secondlook-raw"):
        hits = ranking.hits[:3] if best else ranking.hits[-3:]
        chosen[ranking.query_id] = {hit.doc_id: 1 for hit in hits}
    write_qrels(data / "qrels.tsv", chosen)
    return data / "qrels.tsv"


def stored(data):
    return open_checkpoint(data / "ranker").settings.calibration


def calibrate(data, *more, fails=False):
    return secondlook("calibrate", data / "ranker", *more, fails=fails)


def test_a_windowed_ranker_that_fuses_is_calibrated_on_its_raw_run(data):
    """Positives only; the run has a line for each window."""
    assert run_tag(data / "raw.trec") == "secondlook-raw"
    said = calibrate(data, "--run", data / "raw.trec", "--qrels", positives(data, best=True))
    assert "288 pairs (36 relevant)" in said
    assert "assumed: hits without a judgment are not relevant" in said
    on = stored(data).fitted_on
    assert (on.source, on.pairs, on.relevant) == ("positives only", 288, 36)
    assert len(on.queries.split()) == 12


def test_options_that_do_not_go_together_end_it_as_a_wrong_option_does(data, monkeypatch, capsys):
    command = ["secondlook", "calibrate", str(data / "ranker"), "--run", str(data / "raw.trec")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "secondlook: a --run needs --qrels, and excludes a --corpus\n"


def test_a_fused_run_is_refused(data):
    assert run_tag(data / "fused.trec") == "secondlook-fused"
    before, qrels = stored(data), positives(data, best=True)
    said = calibrate(data, "--run", data / "fused.trec", "--qrels", qrels, fails=True)
    assert "secondlook rerank … --raw" in said
    assert stored(data) == before


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_falling_calibration_is_never_stored(data, kind):
    before, qrels = stored(data), positives(data, best=False)
    given = ["--run", data / "raw.trec", "--qrels", qrels, "--kind", kind]
    assert "do not score higher than others" in calibrate(data, *given, fails=True)
    assert stored(data) == before


def test_without_judgments_the_scale_is_of_the_corpus_or_of_the_reference_pairs(data):
    said = calibrate(data, "--corpus", data / "index")
    assert "by corpus: 24 related" in said
    assert stored(data).fitted_on.source == "corpus"
    with_queries = ["--corpus", data / "corpus.jsonl", "--queries", data / "queries.jsonl"]
    assert json.loads(calibrate(data, *with_queries, "--json"))["source"] == "corpus"
    assert "by reference pairs: 64 related and 128 unrelated" in calibrate(data)
    assert stored(data).slope > 0
    assert Ranker.load(data / "ranker", device="cpu").rank("a", ["b"])[0]["score"] < 1


def test_search_gives_the_score_that_the_server_gives(data):
    found = secondlook(
        "search", data / "index", "tide", "--ranker", data / "ranker", "--json", "-k", "5"
    )
    ranker = Ranker.load(data / "ranker", device="cpu")
    for hit in json.loads(found):
        (score,) = ranker.predict([("tide", hit["text"])])
        assert hit["score"] == pytest.approx(score, abs=1e-5)
        (raw,) = ranker.predict([("tide", hit["text"])], raw_scores=True)
        assert hit["raw_score"] == pytest.approx(raw, abs=1e-4)
        assert 0 <= hit["final_score"] <= 1  # fused, on the min-max scale


def report(data, **more):
    lines = {
        "qrels": ["qrels.tsv"],
        "queries": ["queries.jsonl"],
        "base": ["first.trec"],
        "new": ["fused.trec"],
        "ranker": "ranker",
        "measures": ["nDCG@10"],
    }
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in (lines | more).items())
    (data / "experiment.toml").write_text(text)
    secondlook("report", data / "experiment.toml", "-o", data / "report.html")
    return (data / "report.html").read_text()


def test_a_report_measures_calibration_on_raw_scores_of_unseen_queries_or_says_why_not(data):
    qrels = positives(data, best=True)
    page = report(data)
    assert "probabilities are" not in page
    assert "No calibration: the ranker fuses" in page
    assert "cross-validated" in report(data, raw=["raw.trec"])
    half = [ranking for ranking in read_run(data / "raw.trec") if int(ranking.query_id[1:]) < 6]
    write_run(data / "half.trec", half, tag="secondlook-raw")
    calibrate(data, "--run", data / "half.trec", "--qrels", qrels)
    page = report(data, raw=["raw.trec"])
    assert "as the ranker has it (without 6 queries that it was fitted on)" in page
    calibrate(data, "--run", data / "raw.trec", "--qrels", qrels)
    page = report(data, raw=["raw.trec"])
    assert "No calibration: the ranker was calibrated on these very queries" in page
