"""What takes a re-ranker's folder takes its URL, too, with the same result."""

import pytest

import tiny
from invented import DEEP_SEA, invent, write_deep_sea
from secondlook import Ranker
from secondlook.data import read_run, write_run
from secondlook.errors import WrongArgument
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.score.open_ranker import name_of, open_ranker
from secondlook.train.groups import Groups, write_groups
from secondlook.types import Hit, Ranking
from secondlook.workflows.bench import bench
from secondlook.workflows.explain import explain
from secondlook.workflows.rerank import rerank
from secondlook.workflows.search import search
from secondlook.workflows.teach import teach
from served import listening, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by-url")
    write_deep_sea(folder)
    Bm25Index.build(folder / "index", DEEP_SEA, Bm25Settings())
    tiny.save(tiny.classifier(), folder / "ranker")
    hits = [Hit(document.id, -float(rank)) for rank, document in enumerate(DEEP_SEA[:6])]
    write_run(folder / "first.trec", [Ranking.of(f"q{n}", hits) for n in range(3)])
    return folder


@pytest.fixture(scope="module")
def url(folder):
    with listening(serving(Ranker.load(folder / "ranker", device="cpu"))) as url:
        yield f"{url}/rerank"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SECONDLOOK_CACHE", str(tmp_path / "cache"))


def scores(run):
    return {(r.query_id, hit.doc_id): hit.score for r in read_run(run) for hit in r.hits}


def test_rerank(folder, url, tmp_path):
    given = folder / "first.trec", folder / "index", folder / "queries.jsonl"
    rerank(*given, folder / "ranker", tmp_path / "local.trec", depth=4)
    result = rerank(*given, url, tmp_path / "remote.trec", depth=4)
    assert result.pairs == 12
    assert scores(tmp_path / "remote.trec") == pytest.approx(
        scores(tmp_path / "local.trec"), abs=1e-4
    )
    raw = rerank(*given, url, tmp_path / "raw.trec", raw=True)
    assert raw.pairs == 18
    with pytest.raises(WrongArgument, match="runs elsewhere"):
        rerank(*given, url, tmp_path / "x.trec", backend="onnx")


def test_teach(folder, url, tmp_path):
    write_groups(tmp_path / "groups.parquet", invent(3), about={})
    for name, teacher in (("local", folder / "ranker"), ("remote", url)):
        teach(tmp_path / "groups.parquet", teacher, tmp_path / f"{name}.parquet")
    local, remote = (
        [group.teacher for group in Groups([tmp_path / f"{name}.parquet"])]
        for name in ("local", "remote")
    )
    assert [list(some) for some in remote] == [pytest.approx(list(s), abs=1e-4) for s in local]
    assert Groups([tmp_path / "remote.parquet"]).about[0]["teacher"] == name_of(url)
    priced = f"{url}#price_per_1000_documents=500,cache=off"
    result = teach(tmp_path / "groups.parquet", priced, tmp_path / "priced.parquet")
    assert result.cost.price == pytest.approx(result.cost.pairs / 2)
    assert result.summary().endswith(f"at a cost of {result.cost.price:.4g}")


def test_search_and_explain(folder, url):
    local, remote = (
        search(folder / "index", "the tide of the river", ranker=source, depth=5)
        for source in (folder / "ranker", url)
    )
    assert [hit.document.id for hit in remote.hits] == [hit.document.id for hit in local.hits]
    assert remote.hits[0].raw_score == pytest.approx(local.hits[0].raw_score, abs=1e-4)
    said = explain(url, remote.query, remote.hits[0].document.id, index=folder / "index", depth=25)
    assert said.standing.hits > 0
    assert any(word.attribution for word in said.document_words)


def test_bench(url, tmp_path):
    calls = []
    measured = bench(
        f"{url}#price_per_1000_documents=1",
        tmp_path / "bench.json",
        progress=lambda *call: calls.append(call),
    )
    assert [timing.documents for timing in measured.requests] == [1, 10, 32]
    assert all(len(timing.seconds) == 5 for timing in measured.requests)
    assert measured.cost == pytest.approx((1 + 5 * (1 + 10 + 32)) / 1000)
    assert "10 documents: " in measured.summary()
    assert (tmp_path / "bench.json").read_text() == measured.to_json()
    assert calls[-1][1:] == (3, 3)
    with pytest.raises(WrongArgument, match="only its requests are timed"):
        bench(url, engine=["torch fp32"])


def test_names():
    address = "https://api.jina.ai/v1/rerank#model=jina-reranker-v2,key=MY_KEY"
    assert name_of(address) == "api.jina.ai jina-reranker-v2"
    with pytest.raises(WrongArgument, match="MY_KEY"):
        open_ranker(address)
