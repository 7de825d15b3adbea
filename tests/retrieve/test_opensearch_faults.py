"""The cluster engine when a node, or the loader itself, is killed in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from secondlook.errors import EngineProblem, IndexProblem
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.types import Document, Query, Ranking

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
    acknowledged: list[str] = field(default_factory=list)
    at_the_kill: int = 0


@pytest.fixture(scope="module")
def outage(three_nodes, tmp_path_factory):
    """The elected manager dies by SIGKILL during a load of 50,000 documents."""

    def settings(name, replicas):
        return OpenSearchSettings(urls=three_nodes.urls, name=name, shards=3, replicas=replicas)

    folder = tmp_path_factory.mktemp("outage")
    steady = OpenSearchIndex.build(folder / "steady", notes(2000), settings("steady", 1))
    frail = OpenSearchIndex.build(folder / "frail", notes(30), settings("frail", 0))
    before = steady.retrieve(QUERIES, 100)
    acknowledged: list[str] = []
    killed_at: list[int] = []

    def watch(doc_ids):
        acknowledged.extend(doc_ids)
        if len(acknowledged) >= 12_000 and not killed_at:
            killed_at.append(len(acknowledged))
            three_nodes.kill(manager)

    manager = three_nodes.manager()
    loaded = OpenSearchIndex.build(
        folder / "loaded", notes(50_000), settings("loaded", 1), on_acknowledged=watch
    )
    yield Outage(steady, frail, before, loaded, acknowledged, killed_at[0])
    three_nodes.restart(manager)


def test_no_acknowledged_document_is_lost_with_a_node(outage):
    assert outage.at_the_kill < 20_000  # the node died while most were still to come
    assert len(outage.acknowledged) == len(set(outage.acknowledged)) == 50_000
    assert held(outage.loaded, notes(50_000))


def test_searches_answer_the_same_while_a_node_is_away(outage):
    assert outage.steady.retrieve(QUERIES, 100) == outage.before
    assert held(outage.steady, notes(2000))


def test_an_index_that_lost_a_shard_says_red_rather_than_answer_in_part(outage):
    with pytest.raises(EngineProblem, match=r"is red.*bring the missing nodes back"):
        outage.frail.retrieve(QUERIES, 100)
    with pytest.raises(EngineProblem, match="red"):
        OpenSearchIndex.open(outage.frail._folder)
    with pytest.raises(EngineProblem):
        outage.frail.fetch([document.id for document in notes(30)])


LOADER = """
import json, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_opensearch_faults import notes
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings

OpenSearchIndex.build(
    Path({folder!r}),
    notes({number}, {words!r}),
    OpenSearchSettings(**json.loads({settings!r})),
    on_acknowledged=lambda ids: print(len(ids), flush=True),
    note_every={note_every},
)
"""


def killed_load(folder, settings, number, words="", after=0, note_every=0.0):
    """Load in a process of its own, and kill that once so many documents are acknowledged."""
    script = LOADER.format(
        tests=str(__file__).rsplit("/", 1)[0],
        folder=str(folder),
        number=number,
        words=words,
        settings=settings.model_dump_json(),
        note_every=note_every,
    )
    command = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    acknowledged = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as loader:
        for line in loader.stdout:
            acknowledged += int(line)
            if acknowledged > after:
                loader.send_signal(signal.SIGKILL)
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
    sent = killed_load(folder, settings, 20_000, after=9_000)
    assert served.retrieve(QUERIES, 50) == before
    assert OpenSearchIndex.open(folder).card.documents == 500
    again: list[str] = []
    index = OpenSearchIndex.build(folder, notes(20_000), settings, on_acknowledged=again.extend)
    assert len(again) <= 20_000 - sent + 2_000  # it did not begin anew
    assert again == [document.id for document in notes(20_000)[-len(again) :]]
    assert held(index, notes(20_000))
    assert served.retrieve(QUERIES, 50) != before


def test_what_a_killed_load_did_not_note_is_loaded_again(tmp_path, settings):
    killed_load(tmp_path / "index", settings, 20_000, after=9_000, note_every=3600)
    again: list[str] = []
    index = OpenSearchIndex.build(
        tmp_path / "index", iter(notes(20_000)), settings, on_acknowledged=again.extend
    )
    assert len(again) == 20_000
    assert held(index, notes(20_000))


def test_a_corpus_that_goes_on_differently_leaves_nothing_of_the_killed_load(tmp_path, settings):
    killed_load(tmp_path / "index", settings, 20_000, after=9_000)
    other = notes(2_500) + [Document(f"m{i}", f"memo {i}") for i in range(500)]
    index = OpenSearchIndex.build(tmp_path / "index", other, settings)
    assert held(index, other)


def test_a_corpus_that_begins_differently_cannot_be_mixed_into_a_killed_load(tmp_path, settings):
    killed_load(tmp_path / "index", settings, 20_000, after=9_000)
    other = notes(3_000, "other")
    with pytest.raises(EngineProblem, match=r"of another corpus.*run this again"):
        OpenSearchIndex.build(tmp_path / "index", iter(other), settings)  # cannot be read twice
    with pytest.raises(IndexProblem):
        OpenSearchIndex.open(tmp_path / "index")
    assert held(OpenSearchIndex.build(tmp_path / "index", iter(other), settings), other)


def test_other_settings_begin_anew(tmp_path, settings):
    killed_load(tmp_path / "index", settings, 20_000, after=5_000)
    again: list[str] = []
    index = OpenSearchIndex.build(
        tmp_path / "index",
        notes(6_000),
        settings.model_copy(update={"k1": 1.2}),
        on_acknowledged=again.extend,
    )
    assert len(again) == 6_000
    assert held(index, notes(6_000))
