"""Evaluation as a program calls it: paths or objects in, results out, nothing printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from secondlook.errors import SecondlookError, WrongArgument
from secondlook.workflows.compare import compare
from secondlook.workflows.convert import convert
from secondlook.workflows.depth import depth
from secondlook.workflows.evaluate import evaluate, evaluate_runs
from secondlook.workflows.query_types import evaluate_types, predict_types, train_types
from secondlook.workflows.report import report
from secondlook.workflows.wire import wire

QUERIES = [f"q{number}" for number in range(30)]
QRELS = {query: {f"a-{query}": 1, f"b-{query}": 0} for query in QUERIES}
BASE = {query: {f"b-{query}": 2.0, f"a-{query}": 1.0} for query in QUERIES}
NEW = {query: {f"a-{query}": 2.0, f"b-{query}": 1.0} for query in QUERIES}


@pytest.fixture
def folder(tmp_path):
    judged = [f"{q} 0 {doc} {grade}\n" for q, docs in QRELS.items() for doc, grade in docs.items()]
    (tmp_path / "qrels.txt").write_text("".join(judged))
    for name, run in (("base", BASE), ("new", NEW)):
        lines = [
            f"{q} Q0 {doc} {rank} {score} t\n"
            for q, hits in run.items()
            for rank, (doc, score) in enumerate(hits.items(), start=1)
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    queries = [json.dumps({"_id": q, "text": f"where is {q}"}) for q in QUERIES]
    (tmp_path / "queries.jsonl").write_text("\n".join(queries))
    return tmp_path


def test_files_and_objects_compare_alike(folder, capsys):
    of_files = compare(
        folder / "qrels.txt", str(folder / "base.trec"), folder / "new.trec", measures=["RR@10"]
    )
    of_objects = compare(QRELS, BASE, NEW, measures=["RR@10"], names=["base.trec", "new.trec"])
    assert of_files.to_dict() == of_objects.to_dict()
    assert of_files.verdict == "helps"
    assert "helps: RR@10 0.500 → 1.000" in of_files.summary()
    assert "q7" not in repr(of_files) + repr(of_files.runs) + str(of_files)
    assert capsys.readouterr() == ("", "")


def test_runs_in_memory_are_named_by_their_place(folder):
    comparisons = compare(QRELS, BASE, NEW, str(folder / "new.trec"), measures=["RR@10"])
    names = [comparisons.base, *(run.run for run in comparisons.runs)]
    assert names == ["baseline", "run 1", "new.trec"]


def test_a_comparison_of_nothing_says_what_to_give():
    with pytest.raises(SecondlookError, match="at least one run"):
        compare(QRELS, BASE)
    with pytest.raises(SecondlookError, match="name the baseline and each run"):
        compare(QRELS, BASE, NEW, names=["only one"])


def test_one_run_and_several_are_evaluated(folder):
    alone = evaluate(QRELS, BASE, measures=["RR@10"])
    assert alone.means == {"RR@10": 0.5}
    assert "0.5000" in alone.summary()
    assert "q7" not in repr(alone)
    both = evaluate_runs(
        folder / "qrels.txt", [folder / "base.trec", str(folder / "new.trec")], measures=["RR@10"]
    )
    assert [run["means"] for run in both.to_dict()["runs"]] == [{"RR@10": 0.5}, {"RR@10": 1.0}]
    assert "new.trec" in both.summary()
    with pytest.raises(SecondlookError, match="none of the 30 judged ones"):
        evaluate(QRELS, {"other": {"a": 1.0}})
    with pytest.raises(SecondlookError, match="the run is empty"):
        evaluate(QRELS, {})


def test_depth_gives_the_cost_in_pairs_or_milliseconds():
    curve = depth(QRELS, BASE, NEW, measure="RR@10")
    assert [(point.depth, point.reached) for point in curve.points] == [(0, 0.5), (1, 0.5), (2, 1)]
    assert curve.costs == [0, 1, 2]
    assert depth(QRELS, BASE, NEW, rate=100).costs == [0, 10, 20]
    assert "pairs/query" in curve.summary()


def test_depth_refuses_a_run_that_is_no_reranking_and_a_rate_of_nothing():
    for other in ({"q1": {"unrelated": 1.0}}, {}):
        with pytest.raises(SecondlookError, match="no re-ranking"):
            depth(QRELS, BASE, other)
    with pytest.raises(WrongArgument, match="above 0"):
        depth(QRELS, BASE, NEW, rate=-5)


def test_a_report_says_where_it_is_and_what_it_found(folder, capsys):
    (folder / "experiment.toml").write_text(
        'qrels = ["qrels.txt"]\nqueries = ["queries.jsonl"]\nbase = ["base.trec"]\n'
        'new = ["new.trec"]\nmeasures = ["RR@10"]\n'
    )
    result = report(str(folder / "experiment.toml"), str(folder / "report.html"))
    assert result.verdict == "helps"
    assert result.path.read_text("utf-8").startswith("<!doctype html>")
    assert result.summary().endswith("MB; helps")
    assert result.to_dict()["comparison"]["queries"] == 30
    assert capsys.readouterr() == ("", "")


def test_conversion_reports_its_progress(folder):
    seen = []
    convert(
        "run",
        str(folder / "base.trec"),
        folder / "base.tsv",
        progress=lambda doing, done, total: seen.append((doing, done)),
    )
    assert seen[-1] == ("converting", 30)
    assert len((folder / "base.tsv").read_text().splitlines()) == 60


def test_query_types_are_trained_measured_and_predicted(tmp_path):
    rows = [("NUMERIC", "how many"), ("PERSON", "who"), ("LOCATION", "where")]
    lines = [f"{label}\t{word} is {n}\n" for n in range(6) for label, word in rows]
    (tmp_path / "labelled.tsv").write_text("type\tquery\n" + "".join(lines))
    assert train_types([tmp_path / "labelled.tsv"], tmp_path / "types.safetensors") == 18
    [figures] = evaluate_types(tmp_path / "types.safetensors", [str(tmp_path / "labelled.tsv")])
    assert figures.accuracy == 1.0
    assert figures.queries == 18
    assert set(figures.recall.values()) == {1.0}
    predicted = predict_types(str(tmp_path / "types.safetensors"), ["who is 3"])
    assert predicted[0] in figures.recall


def test_a_classifier_of_trecs_six_classes_is_measured_by_them(tmp_path):
    rows = [("NUM", "how many"), ("HUM", "who"), ("ABBR", "what does it stand for")]
    lines = [f"{label}\t{word} is {n}\n" for n in range(6) for label, word in rows]
    (tmp_path / "labelled.tsv").write_text("type\tquery\n" + "".join(lines))
    train_types([tmp_path / "labelled.tsv"], tmp_path / "six.safetensors", six=True)
    [figures] = evaluate_types(tmp_path / "six.safetensors", [tmp_path / "labelled.tsv"])
    assert figures.accuracy == 1.0
    assert dict(figures.counts) == {"ABBR": 6, "HUM": 6, "NUM": 6}


def test_wiring_needs_a_url_and_names_no_option(tmp_path):
    with pytest.raises(SecondlookError, match=r"URL of the server") as problem:
        wire("opensearch", "my.ranker", tmp_path)
    assert "--" not in str(problem.value)
    written = wire("opensearch", "my.ranker", str(tmp_path), url="http://ranker:8080")
    assert all((tmp_path / name).is_file() for name in written)


def test_importing_a_workflow_loads_nothing_heavy():
    names = sorted(
        path.stem
        for path in (Path(__file__).parents[2] / "src/secondlook/workflows").glob("*.py")
        if path.stem != "__init__"
    )
    program = (
        f"import sys\n{''.join(f'import secondlook.workflows.{name}{chr(10)}' for name in names)}"
        "print(sorted({'torch', 'transformers', 'numpy', 'rich'} & sys.modules.keys()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"
