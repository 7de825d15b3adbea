"""What long work says on its way, and where it ends early."""

import errno
import json
import sys
import time
from types import SimpleNamespace

import pytest
from typer.main import get_command

import secondlook
import tiny
from command_line import in_process, writing
from invented import write_deep_sea
from secondlook import Document
from secondlook.cli import app, main
from secondlook.data import read_corpus
from secondlook.errors import SecondlookError
from secondlook.retrieve.snippet import densest, snippet
from secondlook.terminal import bars
from secondlook.terminal.problems import as_problem, told
from secondlook.train import estimate


@pytest.fixture
def corpus(tmp_path):
    return write_deep_sea(tmp_path)[0]


def ended_by(monkeypatch, corpus, error):
    """What the command line says where building an index ends so, and its exit code."""

    def fail(*_):
        raise error

    monkeypatch.setattr("secondlook.retrieve.bm25._fill", fail)
    monkeypatch.setattr(sys, "argv", ["secondlook", "index", str(corpus), str(corpus) + ".index"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert sorted(path.name for path in corpus.parent.iterdir()) == [
        "corpus.jsonl",
        "qrels.tsv",
        "queries.jsonl",
    ]
    return ended.value.code


def test_an_interruption_says_what_was_kept_and_how_to_go_on(monkeypatch, corpus, capsys):
    assert ended_by(monkeypatch, corpus, KeyboardInterrupt()) == 130
    said = capsys.readouterr().err
    assert said.startswith("secondlook: stopped; ")
    assert "corpus.jsonl.index is as it was: run the same command again" in said


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "corpus.sqlite"),
        RuntimeError("[enforce fail] . PytorchStreamWriter failed writing file data/0"),
        ValueError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_a_message(monkeypatch, corpus, capsys, error):
    assert ended_by(monkeypatch, corpus, error) == 1
    said = capsys.readouterr().err
    assert "secondlook: the disk is full" in said
    assert "is as it was: run the same command again" in said


def test_a_folder_that_may_not_be_written_is_a_message():
    refused = PermissionError(errno.EACCES, "Permission denied", "/data/out")
    assert told(refused) == "/data/out: Permission denied"
    assert told(ZeroDivisionError("a fault of ours")) is None


def test_arguments_in_a_message_are_the_options_of_the_verb():
    error = SecondlookError("give `replace=True`, or lower `k1`; `resume=True` is for others")
    verb = get_command(app).commands["index"]
    expected = "give --replace, or lower --k1; `resume=True` is for others"
    assert str(as_problem(error, verb.params)) == expected


def test_what_is_wrong_in_the_program_keeps_its_traceback(monkeypatch, corpus):
    monkeypatch.setattr("secondlook.retrieve.bm25._fill", lambda *_: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["secondlook", "index", str(corpus), str(corpus) + ".index"])
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("rerank a.trec --index i --queries q --ranker r -o b --ray local --raw", "leave out ray"),
        ("bench r --index i", "needs both an index and queries"),
        ("bench r --engine bf16", "'bf16' is not a back end and a precision"),
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_option(monkeypatch, capsys, command, problem):
    monkeypatch.setattr(sys, "argv", ["secondlook", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_a_second_index_of_the_same_folder_is_refused_at_once(corpus):
    with writing(f"{corpus}.index") as held:
        said = in_process("index", corpus, f"{corpus}.index", fails=True)
        assert f"is being written by process {held.pid} on " in said
    in_process("index", corpus, f"{corpus}.index")


def test_a_log_gets_a_line_though_no_item_is_done(monkeypatch, capsys):
    monkeypatch.setattr("secondlook.progress.FIRST_LINE_AFTER", 0.01)
    with bars.progress("re-ranking", "pairs", 6000) as advance:
        _wait_for(lambda: "re-ranking: 0/6,000 pairs" in capsys.readouterr().err)
        advance(10)
    with bars.busy("exporting"):
        _wait_for(lambda: "exporting: 0 s" in capsys.readouterr().err)


def test_the_speed_leaves_out_what_an_interrupted_run_had_done(monkeypatch, capsys):
    monkeypatch.setattr("secondlook.progress.FIRST_LINE_AFTER", 0.01)
    monkeypatch.setattr("secondlook.progress.LINE_EVERY", 0.01)
    now = 0.0
    monkeypatch.setattr(bars, "monotonic", lambda: now)
    with bars.progress("re-ranking", "pairs", 6000) as advance:
        advance(1000)
        _wait_for(lambda: "re-ranking: 1,000/6,000 pairs · 0 s\n" in capsys.readouterr().err)
        now = 20.0
        advance(100)
        expected = "re-ranking: 1,100/6,000 pairs · 5.0 pairs/s · 20 s\n"
        _wait_for(lambda: expected in capsys.readouterr().err)


def _wait_for(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_short_work_is_silent_in_a_log(capsys):
    assert list(bars.track([1, 2], "reading", "documents")) == [1, 2]
    assert capsys.readouterr().err == ""


def test_a_finished_run_is_replaced_only_if_asked(tmp_path, corpus):
    tiny.save(tiny.encoder(), tmp_path / "base")
    in_process("warm", tmp_path / "base", "-o", tmp_path / "ranker")
    in_process("index", corpus, tmp_path / "index")
    queries = tmp_path / "queries.jsonl"
    in_process("retrieve", tmp_path / "index", queries, "-k", 5, "-o", tmp_path / "bm25.trec")
    given = ["rerank", tmp_path / "bm25.trec", "--index", tmp_path / "index"]
    given += ["--queries", queries, "--ranker", tmp_path / "ranker", "-o", tmp_path / "out.trec"]
    in_process(*given)
    made = (tmp_path / "out.trec").read_bytes()
    (tmp_path / "out.trec").write_text("precious")
    assert "give --replace" in in_process(*given, fails=True)
    assert (tmp_path / "out.trec").read_text() == "precious"
    in_process(*given, "--replace")
    assert (tmp_path / "out.trec").read_bytes() == made
    (tmp_path / ".out.trec.partial.json").write_text("{}")  # left by some interrupted job
    assert "give --replace" in in_process(*given, fails=True)
    in_process(*given, "--replace")
    assert (tmp_path / "out.trec").read_bytes() == made


@pytest.mark.timeout(120)
def test_a_text_of_megabytes_has_its_snippet_in_time():
    text = "the sea " * 100_000 + "bogue tide " * 100 + "the sea bogue " * 300_000
    shown = snippet(Document("d", text), "bogue tide sea").text
    assert "bogue tide bogue tide" in shown


def test_the_snippet_begins_where_most_matches_are():
    assert densest([]) == 0
    assert densest([5, 400, 410, 420, 900]) == 400
    assert densest([7, 500]) == 7


def test_names_that_are_imported_late_are_listed():
    assert {"Ranker", "Query", "__version__"} <= set(dir(secondlook))


def test_a_duplicate_id_is_named_with_file_and_line(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"_id": name, "text": "tide"} for name in ("a", "b", "c", "b")]
    path.write_text("\n".join(map(json.dumps, rows)))
    said = in_process("index", path, tmp_path / "index", fails=True)
    assert f"{path}:4: the id 'b' of line 4 is that of line 2 too" in said


def test_pyserinis_json_is_read_as_it_is(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "1", "contents": "a tide"}\n{"id": "2", "contents": "a fish"}\n')
    assert list(read_corpus(path)) == [Document("1", "a tide"), Document("2", "a fish")]
    assert "2 documents" in in_process("index", path, tmp_path / "index")
    path.write_text('{"id": 1, "contents": "a tide"}\n')
    with pytest.raises(SecondlookError, match=r"docs\.jsonl:1"):
        list(read_corpus(path))


@pytest.mark.parametrize(
    ("query_seconds", "tried", "step_seconds"),
    [(0.01, [(1, 2), (16, 4)], 0.16), (1.0, [(1, 2), (5, 4)], 16.0), (30.0, [(1, 2)], 480.0)],
)
def test_a_dry_run_tries_no_longer_than_it_must(monkeypatch, query_seconds, tried, step_seconds):
    seen = []

    def try_(job, settings, model, device, batch, steps):
        seen.append((batch, steps))
        return query_seconds * batch

    monkeypatch.setattr(estimate, "_tried", try_)
    settings = SimpleNamespace(batch=16)
    assert estimate._seconds_per_step(None, settings, None, None) == pytest.approx(step_seconds)
    assert seen == tried
