"""`tune` chooses the first stage and the form of the re-ranker on validation queries."""

from __future__ import annotations

import json
from dataclasses import replace
from shutil import copytree, rmtree
from types import SimpleNamespace

import numpy as np
import pytest

import tiny
from secondlook.data import (
    read_qrels,
    read_queries,
    read_run,
    write_qrels,
    write_queries,
    write_run,
)
from secondlook.encode.settings import WindowSettings
from secondlook.errors import SecondlookError
from secondlook.model.checkpoint import (
    changing_settings,
    layer_count,
    open_checkpoint,
    write_settings,
)
from secondlook.retrieve.hybrid import FirstStageChoice, read_choice
from secondlook.retrieve.vector_files import has_vectors
from secondlook.score.ranker import Ranker
from secondlook.score.raw import RAW_TAG
from secondlook.train.budget import Clock
from secondlook.types import Document, Hit, Query, Ranking
from secondlook.workflows.choose_first_stage import FirstStageResult
from secondlook.workflows.experiment import read_experiment
from secondlook.workflows.index import build_index
from secondlook.workflows.tune_budget import plan
from secondlook.workflows.tune_files import file_of
from secondlook.workflows.tune_first_stage import choose
from secondlook.workflows.tune_form import cheapest, has_cross_attention, make_separate
from secondlook.workflows.tune_results import whole_documents, write_report, write_tested
from secondlook.workflows.tune_stages import Tuning
from secondlook.workflows.warm import warm

CHOOSE = "secondlook.workflows.choose_first_stage.choose_first_stage"


@pytest.fixture(autouse=True)
def _no_export(monkeypatch):
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """As it stands when the time is planned: an index, judgments, an untrained ranker."""
    root = tmp_path_factory.mktemp("begun")
    data, stages = root / "data", root / "out" / "stages"
    for folder in (data, stages / "used"):
        folder.mkdir(parents=True)
    texts = {f"d{n}": " ".join("abcdefghij"[n : n + 3]) for n in range(8)}
    lines = (json.dumps({"_id": key, "text": text}) for key, text in texts.items())
    (data / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    asked = (json.dumps({"_id": f"q{n}", "text": texts[f"d{n}"]}) for n in range(6))
    (data / "queries.jsonl").write_text("\n".join(asked) + "\n")
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(6))
    for part in ("train", "dev", "test"):
        (stages / "used" / f"{part}.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    (stages / "plan.json").write_text(json.dumps({"depth": 5, "pairs_per_second": 100.0}))
    build_index(data / "corpus.jsonl", stages / "index")
    warm(tiny.save(tiny.encoder(), root / "base"), stages / "untuned")
    return root


@pytest.fixture
def tuning(begun, tmp_path):
    """The same, to be changed."""
    data = begun / "data"
    copytree(begun / "out", tmp_path / "out")
    return Tuning(data, tmp_path / "out", ("base",), 5, "cpu", None, None, Clock(1800.0))


def test_an_index_or_a_backup_beside_the_corpus_is_not_the_corpus(tuning, tmp_path):
    data = copytree(tuning.data, tmp_path / "data")
    for name in ("corpus.index", "queries.index"):
        (data / name).mkdir()
    for name in ("corpus.bak.jsonl", "corpus.jsonl.bak"):
        (data / name).write_text("{}")
    moved = replace(tuning, data=data)
    assert (file_of(data, "corpus"), moved.queries) == (
        data / "corpus.jsonl",
        data / "queries.jsonl",
    )
    moved.claim()
    (data / "qrels").mkdir(exist_ok=True)
    (data / "qrels" / "train.tsv~").write_text("")
    moved.claim()
    (data / "corpus.jsonl").rename(data / "corpus.tsv.gz")
    assert file_of(data, "corpus") == data / "corpus.tsv.gz"
    (data / "queries.jsonl").rename(data / "queries.trec")
    assert file_of(data, "queries") == data / "queries.trec", "its content tells the format"


def test_a_run_of_windows_is_measured_by_documents(tuning):
    own = tuning.ranker("untuned")
    write_run(
        tuning.run("untuned", "dev"),
        [Ranking.of("q0", [Hit("d1#1", 3.0), Hit("d0#0", 2.0), Hit("d1#0", 1.0)])],
        tag="secondlook-raw",
    )
    assert whole_documents(tuning, "untuned", "dev") == tuning.run("untuned", "dev")
    with changing_settings(own) as settings:
        encode = settings.encode.model_copy(update={"windows": WindowSettings(length=5, stride=5)})
        write_settings(own, settings.model_copy(update={"encode": encode}))
    (ranking,) = read_run(whole_documents(tuning, "untuned", "dev"))
    assert ranking.hits == (Hit("d1", 3.0), Hit("d0", 2.0))


def test_what_is_calibrated_is_the_pooling_that_the_fusion_chooses(tuning):
    tuned = copytree(tuning.ranker("untuned"), tuning.ranker("tuned"))
    with changing_settings(tuned) as settings:
        encode = settings.encode.model_copy(update={"windows": WindowSettings(length=5, stride=5)})
        write_settings(tuned, settings.model_copy(update={"encode": encode}))
    queries = [f"q{n}" for n in range(12)]
    windows = [Hit("d0#0", 3.0), Hit("d0#1", 0.0), Hit("d9#0", 2.5)]
    for n in range(1, 6):  # which the best window ranks above the relevant ones, the first below
        windows += [Hit(f"d{n}#0", 1.0 - n), Hit(f"d{n}#1", 4.0 + n)]
    first = [Hit(f"d{n}", float(-n)) for n in (5, 4, 3, 2, 1, 9, 0)]
    write_run(tuning.run("untuned", "dev"), [Ranking.of(q, windows) for q in queries], tag=RAW_TAG)
    write_run(tuning.run("bm25", "dev"), [Ranking.of(query, first) for query in queries])
    grades = {"d0": 1, "d9": 1} | {f"d{n}": 0 for n in range(1, 6)}
    write_qrels(tuning.used("dev"), dict.fromkeys(queries, grades))
    (tuning.results / "chosen.json").write_text('{"weights": "untuned"}')
    tuning.first_stage_file.write_text('{"by": "bm25"}')
    for name, stage in tuning.stages:
        if name in ("calibrate", "tune the fusion with the first stage"):
            stage()
    settings = open_checkpoint(tuned).settings
    assert settings.encode.windows.pooling == "first"
    assert settings.calibrated


def test_a_report_may_lie_in_a_folder_of_any_name(tuning, tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.workflows.tune_results._is_untuned", lambda _: True)
    monkeypatch.setattr(
        "secondlook.workflows.report.report", lambda *_: SimpleNamespace(summary=str)
    )
    moved = replace(tuning, data=copytree(tuning.data, tmp_path / "文书 𠮷野 🙂"))
    (moved.results / "chosen.json").write_text('{"weights": "untuned"}')
    write_report(moved)
    experiment = read_experiment(moved.results / "experiment.toml")
    assert experiment.queries == (str(moved.queries.resolve()),)
    assert "𠮷野 🙂" in experiment.queries[0]
    assert "𠮷野 🙂" in experiment.commands[0]


def test_an_index_that_finds_nothing_ends_with_what_to_look_at(tuning, tmp_path):
    data = copytree(tuning.data, tmp_path / "foreign")
    foreign = [Query(query.id, "прилив") for query in read_queries(data / "queries.jsonl")]
    write_queries(data / "queries.jsonl", foreign)
    (tuning.results / "plan.json").unlink()
    copytree(tuning.results / "used", tuning.results / "qrels")
    with pytest.raises(SecondlookError, match="finds nothing for validation queries such as"):
        plan(replace(tuning, data=data))


def answer(by):
    def chosen(index, queries, qrels, *, k, progress):
        from secondlook.retrieve.hybrid import write_choice

        assert (k, len(read_qrels(qrels))) == (5, 6)
        choice = FirstStageChoice(by=by, measure="nDCG@10")
        write_choice(index, choice)
        return FirstStageResult(index, choice, 6, 0.01, stored=True)

    return chosen


def test_candidates_come_from_what_is_better_on_validation_queries(tuning, monkeypatch):
    monkeypatch.setattr(CHOOSE, answer("vectors"))
    choose(tuning)
    assert tuning.by == "vectors"
    assert read_choice(tuning.index).by == "vectors"
    tuning._first_look()
    by_vectors = list(read_run(tuning.run("vectors", "dev")))
    assert {len(ranking.hits) for ranking in by_vectors} == {5}  # BM25 finds only shared letters
    write_tested(tuning, 6)
    assert list(read_run(tuning.run("vectors", "tested"))) == by_vectors
    by_bm25 = [len(ranking.hits) for ranking in read_run(tuning.run("bm25", "tested"))]
    assert len(by_bm25) == 6  # what the verdict compares with
    assert min(by_bm25) < 5
    choose(tuning)  # a resumed call keeps it
    assert tuning.by == "vectors"


def test_bm25_alone_stays_unless_another_is_shown_to_be_better(tuning):
    choose(tuning)  # six queries prove nothing, and BM25 is right in all of them
    assert has_vectors(tuning.index)
    assert tuning.by == read_choice(tuning.index).by == "bm25"


@pytest.mark.parametrize(
    ("minutes", "documents_per_second", "made"),
    [(30, 100.0, True), (1, 100.0, False), (30, 0.01, False)],
)
def test_vectors_are_made_only_where_they_take_little_of_the_time(
    tuning, minutes, documents_per_second, made
):
    plan = {"depth": 5, "pairs_per_second": documents_per_second}
    (tuning.results / "plan.json").write_text(json.dumps(plan))
    object.__setattr__(tuning, "clock", Clock(60.0 * minutes))
    choose(tuning)
    assert has_vectors(tuning.index) is made


def test_a_given_index_and_a_cross_encoder_are_left_alone(tuning, tmp_path):
    given = Tuning(
        tuning.data,
        tuning.output,
        ("base",),
        5,
        "cpu",
        None,
        None,
        Clock(1800.0),
        given_index=tuning.index,
    )
    choose(given)
    assert given.by == "index"
    tiny.save(tiny.classifier(), tmp_path / "cross")
    rmtree(tuning.ranker("untuned"))
    from secondlook.train.start import make_start

    make_start(tmp_path / "cross", tuning.ranker("untuned"))
    choose(tuning)
    assert tuning.by == "bm25"
    assert not has_vectors(tuning.index)


def test_the_separate_form_is_kept_where_it_is_no_worse():
    assert cheapest({"untuned": 0.5, "trained": 0.6, "separate": 0.5995}) == "separate"
    assert cheapest({"untuned": 0.5, "trained": 0.6, "separate": 0.59}) == "trained"
    assert cheapest({"untuned": 0.5, "trained": 0.4}) == "untuned"


def test_the_separate_form_has_the_same_weights_and_a_lineage_that_says_so(tuning):
    ranker, target = tuning.ranker("untuned"), tuning.ranker("separate")
    assert has_cross_attention(ranker)
    make_separate(ranker, target, 0.61)
    assert not has_cross_attention(target)
    checkpoint = open_checkpoint(target)
    assert checkpoint.settings.warm.separate_layers == layer_count(checkpoint.config)
    (step,) = checkpoint.settings.lineage.phases
    assert (step.name, step.metrics) == (
        "cross-attention left out",
        {"validation nDCG@10 with it": 0.61},
    )
    same = (ranker / "model.safetensors").read_bytes() == (
        target / "model.safetensors"
    ).read_bytes()
    assert same
    pairs = [(Query("q", "a b"), Document("d", "b c")), (Query("q", "a b"), Document("e", "h i"))]
    both = [Ranker.load(one).score(pairs) for one in (ranker, target)]
    assert np.abs(both[0] - both[1]).max() < 0.1  # its gates are all but shut


def test_only_a_trained_ranker_is_tried_without_cross_attention(tuning, monkeypatch):
    from secondlook.workflows import tune_form

    tried = SimpleNamespace(ranker=tuning.ranker, export=print, validated=lambda name: 0.7)
    assert tune_form.try_separate(tried, "untuned", {"untuned": 0.6}) == {"untuned": 0.6}
    make_separate(tuning.ranker("untuned"), tuning.ranker("trained"), 0.6)
    assert tune_form.try_separate(tried, "trained", {"trained": 0.6}) == {"trained": 0.6}
    tuning.ranker("trained").rename(tuning.ranker("elsewhere"))
    tuning.ranker("untuned").rename(tuning.ranker("trained"))
    assert tune_form.try_separate(tried, "trained", {"trained": 0.6}) == {
        "trained": 0.6,
        "separate": 0.7,
    }
