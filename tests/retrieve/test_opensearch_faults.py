"""The cluster engine when a node, or the loader itself, is killed in the middle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import tiny
from command_line import secondlook
from graphs import sum_of_ids
from secondlook.errors import EngineProblem
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.types import Document, Query, Ranking
from serve_command import free_port, served

pytestmark = pytest.mark.real

PLACES = ("harbour", "quay", "lagoon", "delta", "fjord", "reef", "shoal")
QUERIES = [Query(place, f"{place} {number}") for number, place in enumerate(PLACES)]


def notes(number: int, words: str = "") -> list[Document]:
    """Documents by rule, so that another process can make the same."""
    return [
        Document(f"n{i}", f"note {i} {words} {PLACES[i % 7]} {PLACES[i % 5]} {PLACES[i % 3]}")
        for i in range(number)
    ]


def held(index: OpenSearchIndex, documents: list[Document]) -> bool:
    """Whether the index holds exactly these documents."""
    fetched = index.fetch([document.id for document in documents])
    return index.card.documents == len(documents) and fetched == documents


LOADER = """
import sys
from pathlib import Path
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from test_opensearch_faults import notes

folder, settings, number, note_every = sys.argv[1:]
OpenSearchIndex.build(
    Path(folder),
    notes(int(number)),
    OpenSearchSettings.model_validate_json(settings),
    on_acknowledged=lambda doc_ids: print(len(doc_ids), flush=True),
    note_every=float(note_every),
)
"""


def killed_load(folder, settings, number, after, note_every):
    """Load in a process of its own, and kill that once so many documents are acknowledged."""
    arguments = [str(folder), settings.model_dump_json(), str(number), str(note_every)]
    here = str(Path(__file__).parent)
    acknowledged = 0
    with subprocess.Popen(
        [sys.executable, "-c", LOADER, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join([here, *sys.path])},
    ) as loader:
        for line in loader.stdout:
            acknowledged += int(line)
            if acknowledged >= after:
                loader.kill()
                break
    assert loader.returncode == -signal.SIGKILL
    return acknowledged


@pytest.fixture
def settings(three_nodes, request):
    name = request.node.name.removeprefix("test_")
    return OpenSearchSettings(urls=three_nodes.urls, name=name, shards=2)


def test_a_killed_load_goes_on_and_ends_with_exactly_the_corpus(tmp_path, settings):
    folder = tmp_path / "index"
    served = OpenSearchIndex.build(folder, notes(500, "old"), settings)
    before = served.retrieve(QUERIES, 50)
    sent = killed_load(folder, settings, 20_000, after=10_000, note_every=0.0)
    assert served.retrieve(QUERIES, 50) == before
    assert OpenSearchIndex.open(folder).card.documents == 500
    again: list[str] = []
    index = OpenSearchIndex.build(folder, notes(20_000), settings, on_acknowledged=again.extend)
    assert len(again) <= 20_000 - sent + 2_000  # what was acknowledged is not sent again
    assert again == [document.id for document in notes(20_000)[-len(again) :]]
    assert held(index, notes(20_000))
    assert served.retrieve(QUERIES, 50) != before


def test_what_a_killed_load_did_not_note_is_loaded_again(tmp_path, settings):
    killed_load(tmp_path / "index", settings, 8_000, after=3_000, note_every=3600)
    again: list[str] = []
    index = OpenSearchIndex.build(
        tmp_path / "index", iter(notes(8_000)), settings, on_acknowledged=again.extend
    )
    assert len(again) == 8_000
    assert held(index, notes(8_000))


class Stopped(Exception):
    pass


def stopped_load(folder, settings, documents):
    """A load that ends when it has noted 2,000 documents, and sent more."""
    chunks = count()

    def stop(_):
        if next(chunks) == 1:
            raise Stopped

    with pytest.raises(Stopped):
        OpenSearchIndex.build(folder, documents, settings, on_acknowledged=stop, note_every=0.0)


def test_nothing_remains_of_what_a_stopped_load_sent_after_its_last_note(tmp_path, settings):
    stopped_load(tmp_path / "index", settings, notes(6_000))
    again: list[str] = []
    other = notes(2_000) + [Document(f"m{i}", f"memo {i}") for i in range(500)]
    index = OpenSearchIndex.build(
        tmp_path / "index", iter(other), settings, on_acknowledged=again.extend
    )
    assert again == [document.id for document in other[2_000:]]
    assert held(index, other)


def test_another_corpus_is_not_mixed_into_a_stopped_load(tmp_path, settings):
    folder, other = tmp_path / "index", notes(3_000, "other")
    stopped_load(folder, settings, notes(6_000))
    with pytest.raises(EngineProblem, match=r"of another corpus.*run this again"):
        OpenSearchIndex.build(folder, iter(other), settings)  # cannot be read twice
    assert held(OpenSearchIndex.build(folder, iter(other), settings), other)
    stopped_load(folder, settings, notes(6_000))
    assert held(OpenSearchIndex.build(folder, other, settings), other)


def test_a_shorter_corpus_is_not_taken_for_a_stopped_load(tmp_path, settings):
    stopped_load(tmp_path / "index", settings, notes(6_000))
    assert held(OpenSearchIndex.build(tmp_path / "index", notes(100), settings), notes(100))


def test_other_settings_begin_anew(tmp_path, settings):
    stopped_load(tmp_path / "index", settings, notes(6_000))
    again: list[str] = []
    index = OpenSearchIndex.build(
        tmp_path / "index",
        notes(2_500),
        settings.model_copy(update={"k1": 1.2}),
        on_acknowledged=again.extend,
    )
    assert len(again) == 2_500
    assert held(index, notes(2_500))


@dataclass
class Outage:
    """What was seen before, and while, a node was killed."""

    steady: OpenSearchIndex
    """Has a replica of each shard."""
    frail: OpenSearchIndex
    """Has none."""
    before: list[Ranking]
    loaded: OpenSearchIndex
    """Was being loaded when the node died."""
    single: Path
    """The folder of an index that was made by naming only the node that died."""
    acknowledged: list[str] = field(default_factory=list)
    at_the_kill: int = 0


@pytest.fixture(scope="class")
def outage(three_nodes, tmp_path_factory):
    """The elected manager dies by SIGKILL during a load of 50,000 documents."""

    def settings(name, replicas):
        return OpenSearchSettings(urls=three_nodes.urls, name=name, shards=3, replicas=replicas)

    folder = tmp_path_factory.mktemp("outage")
    steady = OpenSearchIndex.build(folder / "steady", notes(2000), settings("steady", 1))
    frail = OpenSearchIndex.build(folder / "frail", notes(30), settings("frail", 0))
    before = steady.retrieve(QUERIES, 2000)
    manager = three_nodes.manager()
    only = settings("single", 1).model_copy(update={"urls": (three_nodes.urls[manager],)})
    OpenSearchIndex.build(folder / "single", notes(40), only)
    acknowledged: list[str] = []
    killed_at: list[int] = []

    def watch(doc_ids):
        acknowledged.extend(doc_ids)
        if len(acknowledged) >= 12_000 and not killed_at:
            killed_at.append(len(acknowledged))
            three_nodes.kill(manager)

    loaded = OpenSearchIndex.build(
        folder / "loaded", notes(50_000), settings("loaded", 1), on_acknowledged=watch
    )
    single = folder / "single"
    yield Outage(steady, frail, before, loaded, single, acknowledged, killed_at[0])
    three_nodes.restart(manager)


class TestWhileANodeIsAway:
    def test_no_acknowledged_document_is_lost_with_a_node(self, outage):
        assert outage.at_the_kill < 20_000  # the node died while most were still to come
        assert len(outage.acknowledged) == len(set(outage.acknowledged)) == 50_000
        assert held(outage.loaded, notes(50_000))

    def test_searches_answer_the_same_while_a_node_is_away(self, outage):
        assert outage.steady.retrieve(QUERIES, 2000) == outage.before
        assert held(outage.steady, notes(2000))

    def test_an_index_that_lost_a_shard_says_red_rather_than_answer_in_part(self, outage):
        with pytest.raises(EngineProblem, match=r"is red.*bring the missing nodes back"):
            outage.frail.retrieve(QUERIES, 100)
        with pytest.raises(EngineProblem, match="red"):
            OpenSearchIndex.open(outage.frail._folder)
        with pytest.raises(EngineProblem):
            outage.frail.fetch([document.id for document in notes(30)])

    def test_verbs_go_on_without_the_node_that_the_folder_names(self, outage, tmp_path):
        queries = tmp_path / "queries.jsonl"
        queries.write_text('{"_id": "q", "text": "harbour 7"}\n')
        ranker = sum_of_ids(tiny.save(tiny.classifier(), tmp_path / "ranker"))
        found = secondlook("search", outage.single, "note 7 harbour", "--json")
        assert json.loads(found)[0]["id"] == "n7"
        first, second = tmp_path / "first.trec", tmp_path / "second.trec"
        secondlook("retrieve", outage.single, queries, "-o", first, "-k", "10")
        options = ["--index", outage.single, "--queries", queries, "--ranker", ranker]
        secondlook("rerank", first, *options, "-o", second)
        assert len(second.read_text().splitlines()) == 10
        port = str(free_port())
        words = [sys.executable, "-m", "secondlook", "serve", str(ranker)]
        words += ["--index", str(outage.single), "--port", port]
        with served(words, tmp_path):
            body = json.dumps({"query": "note 7 harbour", "k": 5}).encode()
            request = Request(
                f"http://127.0.0.1:{port}/v1/search", body, {"content-type": "application/json"}
            )
            with urlopen(request, timeout=30) as answer:
                assert len(json.load(answer)["hits"]) == 5
