"""The real collections: every file found out by itself, with the counts published beside it."""

import gzip
import json

import pytest

from secondlook import data
from secondlook.errors import MalformedInput

SETS = [
    "arguana", "cacm", "cisi", "covidqa-doc", "covidqa-passage", "cranfield", "insuranceqa", "med",
    "msmarco-dev-gold", "msmarco-dl", "msmarco-qa-sample", "msmarco-v2-dl21", "nfcorpus", "scifact",
    "squad-passage", "time", "vaswani",
]  # fmt: skip

TOPICS = {
    "topics.car17v2.0.benchmarkY1test.txt.gz": 2254,
    "topics.dl19-doc.txt.gz": 43,
    "topics.dl19-passage.txt.gz": 43,
    "topics.dl20.txt.gz": 200,
    "topics.dl21.txt.gz": 477,
    "topics.msmarco-doc.dev.txt.gz": 5193,
    "topics.msmarco-passage.dev-subset.txt.gz": 6980,
}


@pytest.mark.parametrize("name", SETS)
def test_a_collection_is_read_whole(shared_data, name):
    folder = shared_data / name
    stats = json.loads((folder / "stats.json").read_text())
    assert sum(1 for _ in data.read_corpus(folder)) == stats["passages"]
    queries = {query.id for query in data.read_queries(folder)}
    assert len(queries) == stats["queries"]
    for split, expected in stats["splits"].items():
        if split == "run:bing":
            continue  # refused, see below
        if split.startswith("run:"):
            path = folder / "runs" / f"{split.removeprefix('run:')}.trec.gz"
            rankings = list(data.read_run(path))
            assert len(rankings) == expected["queries"]
            assert sum(len(ranking.hits) for ranking in rankings) == expected["lines"]
        else:
            qrels = data.read_qrels(folder / "qrels" / f"{split}.tsv")
            assert qrels.keys() <= queries
            assert len(qrels) == expected["queries"]
            grades = [grade for graded in qrels.values() for grade in graded.values()]
            assert len(grades) == expected["judgments"]
            assert sum(grade > 0 for grade in grades) == expected["positives"]


@pytest.mark.parametrize("name", TOPICS)
def test_official_topics_are_found_out_and_counted(shared_data, name):
    queries = list(data.read_queries(shared_data / "topics-qrels" / name))
    assert len(queries) == TOPICS[name]
    assert all(query.text.strip() for query in queries)
    assert not any("\r" in query.text or "%20" in query.text for query in queries)


@pytest.mark.parametrize(
    "name",
    ["car17v2.0.benchmarkY1test", "dl19-doc", "dl19-passage", "dl20-doc", "dl20-passage",
     "dl21-passage", "msmarco-doc.dev", "msmarco-passage.dev-subset"],
)  # fmt: skip
def test_official_judgments_are_found_out_and_counted(shared_data, name):
    path = shared_data / "topics-qrels" / f"qrels.{name}.txt.gz"
    judged = sum(map(len, data.read_qrels(path).values()))
    with gzip.open(path) as file:
        assert judged == sum(1 for _ in file)


def test_every_judged_section_of_trec_car_has_its_query(shared_data):
    folder = shared_data / "topics-qrels"
    queries = {q.id: q for q in data.read_queries(folder / next(iter(TOPICS)))}
    qrels = data.read_qrels(folder / "qrels.car17v2.0.benchmarkY1test.txt.gz")
    assert qrels.keys() <= queries.keys()
    section = "enwiki:Aftertaste/Foods%20with%20distinct%20aftertastes/Wine"
    assert queries[section].text == "Aftertaste Foods with distinct aftertastes Wine"


def test_a_published_run_that_ranks_a_document_twice_is_refused(shared_data):
    path = shared_data / "msmarco-qa-sample" / "runs" / "bing.trec.gz"
    with pytest.raises(MalformedInput, match=r":615: document '126172-5' stands twice"):
        list(data.read_run(path))


def test_published_types_come_along(shared_data):
    types = {query.type for query in data.read_queries(shared_data / "msmarco-qa-sample")}
    assert types == {"description", "numeric", "entity", "location", "person"}
