"""Which re-ranker is best, as a program asks for it; one of them by URL, from a real server."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import tiny
from invented import DEEP_SEA, write_deep_sea
from secondlook import Ranker
from secondlook.cli import app
from secondlook.data import read_run, write_queries
from secondlook.errors import RemoteProblem, SecondlookError, WrongArgument
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.score.remote_ranker import RemoteRanker
from secondlook.types import Query
from secondlook.workflows.bakeoff import bakeoff
from served import listening, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bakeoff")
    write_deep_sea(folder)
    words = [document.text.split() for document in DEEP_SEA]
    asked = [Query(f"q{n}", f"what is {own[1]} of {own[3]}") for n, own in enumerate(words)]
    write_queries(folder / "queries.jsonl", asked)
    Bm25Index.build(folder / "index", DEEP_SEA, Bm25Settings())
    tiny.save(tiny.classifier(), folder / "one")
    tiny.save(tiny.classifier(seed=1), folder / "two")
    return folder


@pytest.fixture(scope="module")
def url(folder):
    with listening(serving(Ranker.load(folder / "one", device="cpu"))) as url:
        yield url


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SECONDLOOK_CACHE", str(tmp_path / "cache"))


def given(folder):
    return folder / "qrels.tsv", folder / "index", folder / "queries.jsonl"


def test_local_and_remote_rankers_are_compared_and_reported(folder, url, tmp_path, capsys):
    calls = []
    address = f"{url}/rerank#batch=3,price_per_1000_searches=2"
    result = bakeoff(
        *map(str, given(folder)),
        [folder / "one", str(folder / "two"), address],
        str(tmp_path / "report.html"),
        depth=5,
        measures=["nDCG@10", "RR@10"],
        machine_price=0.36,
        progress=lambda *call: calls.append(call),
    )
    host = url.removeprefix("http://")
    assert [row.name for row in result.found.rows] == ["first stage", "one", "two", host]
    first, one, two, remote = result.found.rows
    assert one.measures == pytest.approx(remote.measures)
    assert one.measures != two.measures
    assert remote.remote
    assert (one.timed, remote.timed, first.timed) == (25, 25, 25)
    sizes = [len(ranking.hits) for ranking in read_run(result.runs / "first-stage.trec")]
    requests = sum(-(-size // 3) for size in sizes) / len(sizes)
    assert remote.cost_per_1000 == pytest.approx(2 * requests)
    assert result.spent == {host: pytest.approx(2 * requests * len(sizes) / 1000)}
    assert one.cost_per_1000 > 0
    assert first.cost_per_1000 is None
    assert result.found.tests == 6 * 2
    page = (tmp_path / "report.html").read_text()
    assert host in page
    assert f"--ranker &#x27;{address}&#x27;" in page or f"--ranker {address}" in page
    assert result.to_dict()["best"] == result.best
    assert "Report: " in result.summary()
    assert calls[0] == ("retrieving", 0, 25)
    assert ("re-ranking with two", 25, 25) in calls
    assert capsys.readouterr() == ("", "")


def test_the_same_weights_by_url_have_the_same_run(folder, url, tmp_path):
    result = bakeoff(
        *given(folder), [folder / "one", f"{url}/rerank"], tmp_path / "r.html", depth=5
    )
    runs = [
        {(r.query_id, hit.doc_id): hit.score for r in read_run(path) for hit in r.hits}
        for path in (result.runs / "one.trec", *result.runs.glob("127.0.0.1*.trec"))
    ]
    assert runs[0].keys() == runs[1].keys()
    assert runs[0] == pytest.approx(runs[1], abs=1e-4)


def test_an_interrupted_one_goes_on_and_a_finished_run_is_not_made_again(
    folder, url, tmp_path, monkeypatch
):
    asked = []
    score = RemoteRanker.score

    def fragile(self, pairs, **more):
        asked.append(len(pairs))
        if len(asked) == 11:
            raise KeyboardInterrupt
        return score(self, pairs, **more)

    monkeypatch.setattr(RemoteRanker, "score", fragile)
    rankers = [folder / "one", f"{url}/rerank#cache=off"]
    with pytest.raises(KeyboardInterrupt):
        bakeoff(*given(folder), rankers, tmp_path / "r.html", depth=5)
    assert not (tmp_path / "r.html").exists()
    before = (tmp_path / "r.runs" / "one.trec").stat().st_mtime_ns
    result = bakeoff(*given(folder), rankers, tmp_path / "r.html", depth=5)
    assert len(asked) == 25 + 1
    assert result.found.rows[2].timed == 25
    assert (tmp_path / "r.runs" / "one.trec").stat().st_mtime_ns == before
    bakeoff(*given(folder), rankers, tmp_path / "r.html", depth=5)
    assert len(asked) == 26
    bakeoff(*given(folder), rankers, tmp_path / "r.html", depth=4)  # other candidates
    assert len(asked) == 26 + 25


def test_cached_scores_are_not_timed(folder, url, tmp_path):
    for name in ("a", "b"):
        result = bakeoff(*given(folder), [f"{url}/rerank"], tmp_path / f"{name}.html", depth=5)
    assert result.found.rows[1].timed < 25
    assert result.found.rows[1].measures["nDCG@10"] > 0


def test_a_run_may_hold_the_candidates(folder, tmp_path):
    first = bakeoff(*given(folder), [folder / "one"], tmp_path / "a.html", depth=5)
    run = first.runs / "first-stage.trec"
    options = {"run": run, "depth": 5, "alpha": 0.01, "seed": 7}
    again = bakeoff(*given(folder), [folder / "one"], tmp_path / "b.html", **options)
    assert again.found.rows[1].measures == first.found.rows[1].measures
    assert again.found.rows[0].median_ms is None
    commands = [(tmp_path / name).read_text().split("<pre>")[1] for name in ("a.html", "b.html")]
    assert "--alpha" not in commands[0]
    assert "--seed" not in commands[0]
    assert "--alpha 0.01 --seed 7 -o" in commands[1]


def test_rankers_of_one_name_are_told_apart(folder, tmp_path):
    result = bakeoff(*given(folder), [folder / "one"] * 2, tmp_path / "r.html", depth=2)
    assert [row.name for row in result.found.rows] == ["first stage", "one", "one (2)"]


def test_every_ranker_has_a_run_of_its_own(folder, tmp_path):
    names = ("first-stage", "a b", "a+b", "A-b")
    rankers = [tmp_path / name for name in names]
    for at, ranker in enumerate(rankers):
        shutil.copytree(folder / ("one", "two")[at % 2], ranker)
    result = bakeoff(*given(folder), rankers, tmp_path / "r.html", depth=3)
    slugs = ["first-stage", "first-stage-2", "a-b", "a-b-2", "A-b-3"]
    assert sorted(path.stem for path in result.runs.glob("*.trec")) == sorted(slugs)
    first, *own = [list(read_run(result.runs / f"{slug}.trec")) for slug in slugs]
    assert first not in own
    assert own[0] == own[2] != own[1] == own[3]


def test_what_cannot_be_compared_is_said(folder, tmp_path):
    with pytest.raises(WrongArgument, match="at least one re-ranker"):
        bakeoff(*given(folder), [], tmp_path / "r.html")
    with pytest.raises(WrongArgument, match="alpha is the significance level"):
        bakeoff(*given(folder), [folder / "one"], tmp_path / "r.html", alpha=5)
    assert not (tmp_path / "r.runs").exists()
    (tmp_path / "other.tsv").write_text("q-none 0 d1 1\n")
    _, index, queries = given(folder)
    with pytest.raises(SecondlookError, match="has a judgment"):
        bakeoff(tmp_path / "other.tsv", index, queries, [folder / "one"], tmp_path / "r.html")


def test_a_service_that_is_down_says_so_and_what_was_done_is_kept(folder, tmp_path):
    dead = "http://127.0.0.1:9/rerank#attempts=1"
    with pytest.raises(RemoteProblem, match="did not answer"):
        bakeoff(*given(folder), [folder / "one", dead], tmp_path / "r.html", depth=5)
    assert (tmp_path / "r.runs" / "one.trec").is_file()


def test_the_command_prints_a_table_or_json(folder, url, tmp_path):
    qrels, index, queries = map(str, given(folder))
    words = ["bakeoff", qrels, "--index", index, "--queries", queries, "--depth", "5"]
    words += ["--ranker", str(folder / "one"), "--ranker", f"{url}/v2/rerank"]
    words += ["-o", str(tmp_path / "r.html")]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "first stage" in shown.output
    assert "127.0.0.1" in shown.output
    said = CliRunner().invoke(app, [*words, "--json"])
    figures = json.loads(said.stdout)
    assert [row["name"] for row in figures["rankers"]][:2] == ["first stage", "one"]
    assert len(figures["pairs"]) == 3
