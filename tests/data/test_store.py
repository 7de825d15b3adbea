import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.data.fingerprint import Fingerprint
from secondlook.data.store import CorpusStore
from secondlook.errors import IndexProblem, MalformedInput, MissingDocument
from secondlook.types import Corpus, Document

SOURCE = Path(__file__).resolve().parents[2] / "src"
CORPUS = [
    Document("d3", "Tea is an infusion of leaves.", "Tea"),
    Document("d1", "Coffee is brewed from roasted seeds."),
    Document("d2", "", "Water"),
]
characters = st.characters(exclude_categories=["Cs"])  # every character, halves of pairs are none
texts = st.text(characters)
corpora = st.lists(
    st.builds(Document, texts, texts, texts), unique_by=lambda document: document.id, max_size=20
)


@pytest.fixture
def store(tmp_path):
    with CorpusStore.build(tmp_path / "corpus.sqlite", CORPUS) as store:
        yield store


def test_documents_come_in_the_order_asked_for_and_as_often(store):
    wanted = ["d1", "d3", "d1", "d2"]
    assert [document.id for document in store.fetch(wanted)] == wanted
    assert store.fetch(["d3"]) == [CORPUS[0]]
    assert store.fetch([]) == []


def test_a_store_is_a_corpus_and_knows_its_size_and_order(store):
    assert isinstance(store, Corpus)
    assert len(store) == 3
    assert list(store) == CORPUS


def test_every_unknown_id_is_named(store):
    with pytest.raises(MissingDocument, match="'x', 'y'") as caught:
        store.fetch(["d1", "x", "d2", "y"])
    assert caught.value.doc_ids == ("x", "y")
    with pytest.raises(MissingDocument):
        store.fetch(["\ud800"])


@given(documents=corpora)
@settings(deadline=None)  # each example syncs a file to the disk
def test_what_was_stored_comes_back(tmp_path_factory, documents):
    path = tmp_path_factory.mktemp("store") / "corpus.sqlite"
    fingerprint = Fingerprint()
    for document in documents:
        fingerprint.add(document)
    with CorpusStore.build(path, iter(documents)) as store:
        assert list(store) == documents
        assert store.fetch([document.id for document in reversed(documents)]) == documents[::-1]
        assert len(store) == len(documents)
        assert store.fingerprint == fingerprint.digest()


def test_a_text_of_many_pages_and_one_with_a_nul_come_back_whole(tmp_path):
    documents = [Document("long", "ä" * 5_000_000), Document("nul\0", "before\0after", "\0")]
    with CorpusStore.build(tmp_path / "corpus.sqlite", documents) as store:
        assert store.fetch(["nul\0", "long"]) == documents[::-1]
        with pytest.raises(MissingDocument):
            store.fetch(["nul"])


def test_it_opens_again_as_it_was(store):
    with CorpusStore.open(store.path) as again:
        assert list(again) == CORPUS
        assert again.fingerprint == store.fingerprint


def test_an_odd_path_is_no_obstacle(tmp_path):
    path = tmp_path / "new folder?" / "100% [of] #1 é.sqlite"
    with CorpusStore.build(path, CORPUS) as store:
        assert len(store) == 3
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(ValueError, match="closed"):
        store.fetch(["d1"])


def test_an_id_that_comes_twice_is_refused_by_name(tmp_path):
    documents = [*CORPUS, Document("d9", ""), Document("d9", ""), Document("d1", "again")]
    with pytest.raises(MalformedInput, match="the id 'd1' of document"):
        CorpusStore.build(tmp_path / "corpus.sqlite", documents)
    assert list(tmp_path.iterdir()) == []


def test_half_a_surrogate_pair_is_refused(tmp_path):
    with pytest.raises(MalformedInput, match="surrogate"):
        CorpusStore.build(tmp_path / "corpus.sqlite", [Document("d1", "\udc00")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("interruption", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_build_leaves_nothing_and_spares_the_older_store(
    tmp_path, store, interruption
):
    def documents():
        yield from (Document(f"new {i}", "text " * 1000) for i in range(2000))
        raise interruption

    for path in (store.path, tmp_path / "other.sqlite"):
        with pytest.raises(interruption):
            CorpusStore.build(path, documents())
    assert list(tmp_path.iterdir()) == [store.path]
    with CorpusStore.open(store.path) as again:
        assert list(again) == CORPUS


def test_a_new_build_takes_the_place_of_the_old_which_is_never_mixed_with_it(store):
    store.fetch(["d1"])
    with CorpusStore.build(store.path, [Document("n", "new")]) as new:
        assert list(new) == [Document("n", "new")]
    assert list(store) == CORPUS  # this thread has the old file open
    with ThreadPoolExecutor(1) as other, pytest.raises(IndexProblem, match="another corpus"):
        other.submit(store.fetch, ["n"]).result()


ENDLESS_BUILD = """
    import sys
    from itertools import count
    from pathlib import Path
    from secondlook.data.store import CorpusStore
    from secondlook.types import Document
    CorpusStore.build(Path(sys.argv[1]), (Document(str(i), "word " * 1000) for i in count()))
"""


def started(script, *arguments):
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def builder_at_work(tmp_path):
    """A process in the middle of building `corpus.sqlite`, and its unfinished file."""
    process = started(ENDLESS_BUILD, str(tmp_path / "corpus.sqlite"))
    try:
        for _ in count():
            halves = list(tmp_path.iterdir())
            if halves and halves[0].stat().st_size > 100_000_000:  # its cache has overflowed
                break
            assert process.poll() is None
            time.sleep(0.01)
        yield process, halves[0]
    finally:
        process.kill()
        process.communicate()


def test_a_killed_build_leaves_no_store_and_the_next_one_clears_up(tmp_path, builder_at_work):
    process, half = builder_at_work
    process.send_signal(signal.SIGKILL)
    process.wait()
    path = tmp_path / "corpus.sqlite"
    assert half.exists()
    with pytest.raises(IndexProblem, match="no corpus store"):
        CorpusStore.open(path)
    with CorpusStore.build(path, CORPUS) as store:
        assert list(store) == CORPUS
    assert list(tmp_path.iterdir()) == [path]


def test_a_build_does_not_clear_away_another_at_work(tmp_path, builder_at_work):
    _, half = builder_at_work
    with CorpusStore.build(tmp_path / "corpus.sqlite", CORPUS) as store:
        assert list(store) == CORPUS
    assert half.exists()


def test_threads_read_at_the_same_time(store):
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: store.fetch(["d1", "d2", "d3"]), range(200)))
    assert results == [[CORPUS[1], CORPUS[2], CORPUS[0]]] * 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_store_opened_before_a_fork_serves_parent_and_child(store):
    script = """
        import os, sys
        from pathlib import Path
        from secondlook.data.store import CorpusStore
        store = CorpusStore.open(Path(sys.argv[1]))
        store.fetch(["d1"])
        if child := os.fork():
            os.waitpid(child, 0)
        print(store.fetch(["d3"])[0].title, flush=True)
        store.close()
    """
    output, _ = started(script, str(store.path)).communicate()
    assert output == "Tea\nTea\n"


@pytest.mark.parametrize("content", [b"", b"not a store " * 1000], ids=["empty", "text"])
def test_another_file_is_no_store(tmp_path, content):
    path = tmp_path / "corpus.sqlite"
    path.write_bytes(content)
    with pytest.raises(IndexProblem, match="no corpus store"):
        CorpusStore.open(path)


def test_another_programs_database_is_no_store(tmp_path):
    path = tmp_path / "corpus.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE documents (id)")
    connection.close()
    with pytest.raises(IndexProblem, match="is no corpus store"):
        CorpusStore.open(path)


def test_a_store_of_a_later_version_is_refused(store):
    connection = sqlite3.connect(store.path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(IndexProblem, match="version 2"):
        CorpusStore.open(store.path)


def test_a_damaged_store_says_so_when_it_is_opened_or_read(tmp_path):
    path = tmp_path / "corpus.sqlite"
    CorpusStore.build(path, (Document(str(i), "word " * 100) for i in range(1000))).close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IndexProblem, match="damaged"):
        CorpusStore.open(path)
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(IndexProblem, match="damaged"), CorpusStore.open(path) as store:
        list(store)


def edited(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_text_that_another_program_changed_is_noticed_at_once(store, journal):
    edited(
        store.path, f"PRAGMA journal_mode = {journal}", "UPDATE documents SET text = 'x' || text"
    )
    with pytest.raises(IndexProblem, match=r"changed by another program.*--replace"):
        CorpusStore.open(store.path)


def test_a_text_that_was_changed_behind_sqlites_back_is_found_by_reading_all(tmp_path):
    path = tmp_path / "corpus.sqlite"
    plain = [Document(f"d{i}", f"sentence {i}") for i in range(50)]
    for documents in (plain, [*plain, Document("w", "weighed", weights={"weighed": 3})]):
        store = CorpusStore.build(path, documents)
        store.verify()
        store.close()
        path.write_bytes(path.read_bytes().replace(b"sentence 7", b"sentence 8", 1))
        with pytest.raises(IndexProblem, match="not those that were indexed"):
            CorpusStore.open(path).verify()


def test_a_store_of_an_earlier_version_is_verified_by_the_corpus_fingerprint(store):
    edited(store.path, "DROP TABLE texts")
    counted = bytearray(store.path.read_bytes())
    counted[24:28] = (1).to_bytes(4, "big")  # as if it had been made so
    store.path.write_bytes(counted)
    CorpusStore.open(store.path).verify()


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "corpus.sqlite").mkdir()
    with pytest.raises(OSError, match=r"corpus\.sqlite"):
        CorpusStore.build(tmp_path / "corpus.sqlite", CORPUS)


def test_documents_are_had_by_their_place(tmp_path):
    documents = [Document("b", "two"), Document("a", "one", "title")]
    with CorpusStore.build(tmp_path / "corpus.sqlite", documents) as store:
        assert store.at([1, 0, 1]) == [documents[1], documents[0], documents[1]]
        with pytest.raises(IndexError):
            store.at([2])
