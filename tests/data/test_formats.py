"""The door: formats by name, found out, and refused."""

import os
import subprocess
import sys

import pytest

from secondlook import data
from secondlook.errors import UnknownFormat, UnknownName, Unwritable
from secondlook.types import Document, Hit, Query, Ranking


@pytest.mark.parametrize(
    ("kind", "content", "seen"),
    [
        ("corpus", "just some prose\n", "'just some prose'"),
        ("corpus", "a\tb\tc\td\n", r"'a\tb\tc\td'"),
        ("queries", "why are there tides\n", "'why are there tides'"),
        ("qrels", "1 a 1\n", "'1 a 1'"),
        ("run", "1 a 1 2\n", "'1 a 1 2'"),
        ("run", "1\ta\t0.7\n", r"'1\ta\t0.7'"),
        ("candidates", "1\ta\n", r"'1\ta'"),
        ("triples", "1 2 3\n", "'1 2 3'"),
    ],
)
def test_an_unknown_file_is_shown_with_the_formats_there_are(tmp_path, kind, content, seen):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(UnknownFormat) as caught:
        getattr(data, f"read_{kind}")(path)
    assert f"{path} looks like no {kind} known here: it begins {seen}" in str(caught.value)
    assert ("--qrels-format" if kind == "qrels" else "--format") in str(caught.value)
    assert "msmarco" in str(caught.value)
    convertible = kind in ("corpus", "queries", "qrels", "run")
    assert ("secondlook convert" in str(caught.value)) == convertible


def test_an_unknown_format_gets_the_nearest_known_one(tmp_path):
    with pytest.raises(UnknownName, match="no corpus format 'bier'; did you mean 'beir'"):
        data.read_corpus(tmp_path, "bier")
    with pytest.raises(UnknownName, match="no run format 'beir'"):
        data.read_run(tmp_path, "beir")
    with pytest.raises(UnknownName, match="no corpus format to write 'trec'"):
        data.write_corpus(tmp_path / "x", [Document("1", "x")], "trec")


def test_a_name_that_does_not_say_its_format_is_refused(tmp_path):
    with pytest.raises(UnknownFormat, match=r"run.dat.gz does not end in \.trec"):
        data.write_run(tmp_path / "run.dat.gz", [])
    data.write_run(tmp_path / "run.dat.gz", [Ranking("q", (Hit("d", 1.0),))], "trec")
    assert len(list(data.read_run(tmp_path / "run.dat.gz"))) == 1


def test_nothing_is_written_from_nothing_but_a_run(tmp_path):
    for write, name in (
        (data.write_corpus, "corpus.jsonl"),
        (data.write_queries, "queries.tsv"),
    ):
        with pytest.raises(Unwritable, match="nothing to write"):
            write(tmp_path / name, iter([]))
    with pytest.raises(Unwritable, match="nothing to write"):
        data.write_qrels(tmp_path / "qrels.txt", {"q": {}})
    assert list(tmp_path.iterdir()) == []
    data.write_run(tmp_path / "run.trec", [Ranking("q", ())])
    assert list(data.read_run(tmp_path / "run.trec")) == []


def test_a_query_that_comes_twice_is_not_written(tmp_path):
    with pytest.raises(Unwritable, match="query '1' comes twice"):
        data.write_queries(tmp_path / "queries.tsv", [Query("1", "a"), Query("1", "b")])
    with pytest.raises(Unwritable, match="query '1' comes twice"):
        data.write_run(tmp_path / "run.trec", [Ranking("1", (Hit(d, 1.0),)) for d in "ab"])
    with pytest.raises(Unwritable, match="an id is empty"):
        data.write_corpus(tmp_path / "corpus.jsonl", [Document("", "x")])
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_can_be_read_when_its_format_is_named(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnknownFormat, match="no file to look into"):
        data.read_queries(pipe)
    with subprocess.Popen(["sh", "-c", f"printf '1\\ttides\\n' > '{pipe}'"]):
        assert list(data.read_queries(pipe, "msmarco")) == [Query("1", "tides")]


def test_paths_may_be_plain_strings(tmp_path):
    target = str(tmp_path / "queries.jsonl")
    data.write_queries(target, [Query("1", "tides")])
    assert list(data.read_queries(target)) == [Query("1", "tides")]


def test_the_room_loads_nothing_heavy():
    heavy = "numpy torch ir_datasets trec_car cbor pydantic"
    code = f"import sys, secondlook.data; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
