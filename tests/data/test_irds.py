"""ir_datasets, asked for a small set that these tests register with it."""

import sys
from typing import NamedTuple

import pytest

from secondlook import data
from secondlook.data import IdTriple
from secondlook.errors import MalformedInput, MissingExtra, UnknownFormat, UnknownName
from secondlook.types import Document, Hit, Query, Ranking

ir_datasets = pytest.importorskip("ir_datasets")
formats = ir_datasets.formats


class TitledDoc(NamedTuple):
    doc_id: str
    title: str
    text: str

    def default_text(self):
        return f"{self.title} {self.text}"


class AbstractDoc(NamedTuple):
    doc_id: str
    title: str
    abstract: str

    def default_text(self):
        return f"{self.title} {self.abstract}"


class TypedQuery(NamedTuple):
    query_id: str
    text: str
    type: str

    def default_text(self):
        return self.text


class Docs(formats.BaseDocs):
    def docs_iter(self):
        yield TitledDoc("d1", "Tides", "They follow the moon.")
        yield AbstractDoc("d2", "Neap", "The smallest tides.")


class Queries(formats.BaseQueries):
    def queries_iter(self):
        yield TypedQuery("q1", "when is the tide lowest", "NUMERIC")
        yield TypedQuery("q2", "tides", "faceted")


class Judgments(formats.BaseQrels):
    def qrels_iter(self):
        yield formats.GenericQrel("q1", "d1", 1)
        yield formats.GenericQrel("q1", "d2", 0)


class FirstStage(formats.BaseScoredDocs):
    def scoreddocs_iter(self):
        yield formats.GenericScoredDoc("q1", "d1", 1.5)
        yield formats.GenericScoredDoc("q2", "d1", 0.5)
        yield formats.GenericScoredDoc("q1", "d2", 2.5)


class Triples(formats.BaseDocPairs):
    def docpairs_iter(self):
        yield formats.GenericDocPair("q1", "d1", "d2")


class Unreachable(formats.BaseDocs):
    def docs_iter(self):
        raise ConnectionError("no route to host")


@pytest.fixture(scope="module", autouse=True)
def _registered():
    parts = (Docs(), Queries(), Judgments(), FirstStage(), Triples())
    ir_datasets.registry.register("tides/test", ir_datasets.Dataset(*parts))
    ir_datasets.registry.register("tides/far", ir_datasets.Dataset(Unreachable()))


def test_every_kind_is_read_by_its_id():
    assert list(data.read_corpus("irds:tides/test")) == [
        Document("d1", "They follow the moon.", "Tides"),
        Document("d2", "Neap The smallest tides."),
    ]
    assert data.read_qrels("irds:tides/test") == {"q1": {"d1": 1, "d2": 0}}
    assert list(data.read_run("irds:tides/test")) == [
        Ranking("q1", (Hit("d2", 2.5), Hit("d1", 1.5))),
        Ranking("q2", (Hit("d1", 0.5),)),
    ]
    assert list(data.read_triples("irds:tides/test")) == [IdTriple("q1", "d1", "d2")]


def test_only_answer_types_are_query_types():
    assert list(data.read_queries("irds:tides/test")) == [
        Query("q1", "when is the tide lowest", "numeric"),
        Query("q2", "tides"),
    ]


def test_the_id_alone_will_do_where_the_format_is_named():
    assert len(list(data.read_queries("tides/test", "irds"))) == 2


def test_an_unknown_id_gets_the_nearest_known_one():
    with pytest.raises(UnknownName, match="did you mean 'tides/test'"):
        list(data.read_corpus("irds:tides/tets"))


def test_a_set_without_the_kind_says_what_it_has():
    with pytest.raises(UnknownFormat, match="has no qrels; ir_datasets lists: docs"):
        data.read_qrels("irds:tides/far")


def test_a_failed_download_is_one_clear_error():
    with pytest.raises(MalformedInput, match="no route to host"):
        list(data.read_corpus("irds:tides/far"))


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'secondlook\[datasets\]'"):
        list(data.read_corpus("irds:tides/test"))
