"""Attempts to get "helps" out of `compare`, or figures out of `eval`, that mean nothing."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from secondlook.cli import app
from secondlook.data import write_qrels, write_run
from secondlook.types import Hit, Ranking

FORTY = [f"q{number:02}" for number in range(40)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judge(folder, queries, grades=None):
    """Each query has its own good and bad documents; ids of good ones sort last."""
    grades = grades or {"z-good": 1, "a-bad": 0, "b-bad": 0}
    write_qrels(
        folder / "qrels.txt",
        {query: {f"{name}-{query[:3]}": grade for name, grade in grades.items()}
         for query in queries},
    )  # fmt: skip


def write(folder, name, queries, place, score=lambda at: 9.0 - at):
    """A run with the good document at this place, counted from 0."""
    rankings = []
    for query in queries:
        order = ["a-bad", "b-bad"]
        order.insert(place(query) if callable(place) else place, "z-good")
        hits = [Hit(f"{doc}-{query[:3]}", score(at)) for at, doc in enumerate(order)]
        rankings.append(Ranking.of(query, hits))
    write_run(folder / name, rankings)


def called(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    return result, " ".join(result.stdout.split())


def required(*more):
    return called("compare", "qrels.txt", "base.trec", "new.trec", "--require", "helps", *more)


def test_an_honest_gain_passes(here):
    judge(here, FORTY)
    write(here, "base.trec", FORTY, 1)
    write(here, "new.trec", FORTY, 0)
    result, said = required()
    assert result.exit_code == 0
    assert "helps: nDCG@10" in said
    assert "Objection" not in said


def test_three_queries_copied_ten_times_are_three(here):
    copies = [f"{query}-{copy}" for copy in range(10) for query in FORTY[:3]]
    judge(here, copies)
    write(here, "base.trec", copies, 1)
    write(here, "new.trec", copies, 0)
    result, said = required()
    assert result.exit_code == 3
    assert "cannot tell" in said
    assert "30 judged queries are only 3 different ones (q00-1 is a copy of q00-0)" in said
    assert required("--allow", "duplicates")[0].exit_code == 3
    assert required("--allow", "duplicates", "--allow", "few-queries")[0].exit_code == 3


def test_copies_whose_scores_differ_are_known_by_their_texts(here):
    copies = [f"{query}-{copy}" for copy in range(10) for query in FORTY[:3]]
    judge(here, copies)
    write(here, "base.trec", copies, 1)
    rankings = [
        Ranking.of(
            query, [Hit(f"z-good-{query[:3]}", 2.0 + at), Hit(f"a-bad-{query[:3]}", 1.0 + at)]
        )
        for at, query in enumerate(copies)
    ]
    write_run(here / "new.trec", rankings)
    lines = [json.dumps({"_id": q, "text": f"What is  {q[:3]}"}) for q in copies]
    (here / "queries.jsonl").write_text("\n".join(lines) + "\n")
    result, said = required("--queries", "queries.jsonl")
    assert result.exit_code == 3
    assert "30 judged queries are only 3 different ones" in said


def test_a_few_copies_among_many_queries_are_counted_once_and_told(here):
    queries = [*FORTY, "q00-copy"]
    judge(here, queries)
    write(here, "base.trec", queries, 1)
    write(here, "new.trec", queries, 0)
    result, said = required()
    assert result.exit_code == 0
    assert "40 different of 41 judged queries" in said


def test_equal_scores_do_not_help_by_their_document_ids(here):
    judge(here, FORTY)
    write(here, "base.trec", FORTY, 1)
    write(here, "new.trec", FORTY, 2, score=lambda _: 0.0)
    result, said = required()
    assert result.exit_code == 3
    assert "cannot tell: nDCG@10 0.631 → 1.000" in said
    assert "the verdict depends on the order of documents with equal scores" in said
    assert required("--allow", "ties")[0].exit_code == 0


def test_a_run_without_any_order_is_objected_to_whatever_the_base(here):
    judge(here, FORTY, {"a-good": 1, "z-good": 1, "a-bad": 0, "b-bad": 0})
    write(here, "base.trec", FORTY, 2)
    hits = [Ranking.of(q, [Hit(f"{doc}-{q}", 0.0) for doc in ("z-good", "a-good")]) for q in FORTY]
    write_run(here / "new.trec", hits)
    result, said = required()
    assert result.exit_code == 3
    assert "new.trec gives the whole top 10 the same score in 40 of 40 queries" in said


def test_a_base_that_lacks_most_queries_is_no_base(here):
    judge(here, FORTY)
    write(here, "base.trec", FORTY[:5], 0)
    write(here, "new.trec", FORTY, 0)
    result, said = required()
    assert result.exit_code == 3
    assert "base.trec has no results for 35 of 40 judged queries" in said
    assert "cannot tell: nDCG@10 0.125 → 1.000" in said
    allowed, said = required("--allow", "missing")
    assert allowed.exit_code == 0
    assert "helps: nDCG@10 0.125 → 1.000" in said


def test_six_queries_are_too_few(here):
    judge(here, FORTY[:6])
    write(here, "base.trec", FORTY[:6], 1)
    write(here, "new.trec", FORTY[:6], 0)
    result, said = required("-m", "nDCG@10")
    assert result.exit_code == 3
    assert "6 judged queries are few" in said
    assert required("-m", "nDCG@10", "--allow", "few-queries")[0].exit_code == 0


def test_a_risk_of_one_half_is_not_accepted(here):
    judge(here, FORTY[:3])
    write(here, "base.trec", FORTY[:3], 1)
    write(here, "new.trec", FORTY[:3], 0)
    result, said = required("-m", "nDCG@10", "--alpha", ".5", "--allow", "few-queries")
    assert result.exit_code == 3
    assert "with alpha 0.5 up to 50% of changes without any effect" in said
    allowed = required(
        "-m", "nDCG@10", "--alpha", ".5", "--allow", "few-queries", "--allow", "alpha"
    )
    assert allowed[0].exit_code == 0


def test_a_large_gain_on_three_queries_says_how_many_would_tell(here):
    judge(here, FORTY[:3])
    write(here, "base.trec", FORTY[:3], 1)
    write(here, "new.trec", FORTY[:3], 0)
    said = called("compare", "qrels.txt", "base.trec", "new.trec", "-m", "nDCG@10")[1]
    assert "(+0.369) may be chance" in said
    assert "about 22 more judged queries would tell" in said
    assert "any number" not in said


@pytest.mark.parametrize(
    ("lines", "reason"),
    [("", "is empty"), ("other Q0 d 1 1.0 t\n", "none of the 40 judged ones")],
)
@pytest.mark.parametrize("verb", ["eval", "compare"])
def test_a_run_that_answers_no_judged_query_is_an_error(here, verb, lines, reason):
    judge(here, FORTY)
    write(here, "base.trec", FORTY, 1)
    (here / "new.trec").write_text(lines)
    result, said = called(verb, "qrels.txt", "base.trec", "new.trec")
    assert result.exit_code == 1
    assert reason in str(result.exception)
    assert "0.0000" not in said


def test_identical_runs_are_said_to_be_identical(here):
    judge(here, FORTY)
    write(here, "base.trec", FORTY, 1)
    write(here, "new.trec", FORTY, 1)
    result, said = required()
    assert result.exit_code == 3
    assert "the runs are identical (same documents, same scores) on all 40" in said


def test_a_machine_reads_the_objections(here):
    judge(here, FORTY[:6])
    write(here, "base.trec", FORTY[:6], 1)
    write(here, "new.trec", FORTY[:6], 0)
    arguments = ("compare", "qrels.txt", "base.trec", "new.trec", "-m", "nDCG@10", "--json")
    [run] = json.loads(called(*arguments)[0].stdout)["runs"]
    assert [one["code"] for one in run["objections"]] == ["few-queries"]
    assert (run["verdict"], run["acceptable"]) == ("helps", False)
    [run] = json.loads(called(*arguments, "--allow", "few-queries")[0].stdout)["runs"]
    assert run["acceptable"]
