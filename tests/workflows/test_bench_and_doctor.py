"""Measurements of the machine, as a program asks for them."""

from functools import partial

import pytest

import tiny
from secondlook.errors import EngineProblem, WrongArgument
from secondlook.retrieve.bm25 import Bm25Index
from secondlook.scale import bench as timings
from secondlook.scale import machine
from secondlook.scale.bench import read_bench
from secondlook.score.ranker import Ranker
from secondlook.workflows.bench import back_end_of, bench
from secondlook.workflows.doctor import doctor
from secondlook.workflows.index import build_index


def test_a_re_ranker_is_timed_without_a_word(tmp_path, monkeypatch, capsys):
    quick = partial(timings.time_ranker, lengths=(), sizes=(1, 4), enough=0)
    monkeypatch.setattr(timings, "time_ranker", quick)
    tiny.save(tiny.classifier(), tmp_path / "ranker")
    capsys.readouterr()
    calls = []
    measured = bench(
        str(tmp_path / "ranker"),
        tmp_path / "bench.json",
        engine=["torch fp32"],
        progress=lambda *call: calls.append(call),
    )
    assert [engine.name for engine in measured.engines] == ["torch fp32"]
    assert read_bench(tmp_path / "bench.json") == measured
    assert calls[-1][:2] == ("timing torch fp32", 2)
    assert capsys.readouterr() == ("", "")


def test_no_text_is_timed_twice_for_the_second_time_it_comes_from_a_cache(tmp_path, monkeypatch):
    ranker = Ranker.load(tiny.half_separate(tmp_path / "ranker"), backend="torch")
    scored, score = [], ranker.score
    monkeypatch.setattr(ranker, "score", lambda pairs: scored.extend(pairs) or score(pairs))
    timed = timings.time_ranker(ranker, "torch fp32", lengths=(40,), sizes=(1, 4), enough=0)
    assert len(scored) == 2 * 3 * (1 + 4)  # lengths, repetitions, sizes
    assert len({document.text for _, document in scored}) == len(scored)
    lengths = {len(row) for encoded in ranker.encode(scored) for row in encoded.rows}
    assert lengths == {timing.length for timing in timed.timings}


def test_what_cannot_be_timed_is_said():
    assert back_end_of("openvino bf16") == ("openvino", "bf16")
    for name in ("openvino", "bf16 openvino", "torch fp32 fp32"):
        with pytest.raises(WrongArgument, match="is not a back end and a precision"):
            back_end_of(name)
    with pytest.raises(WrongArgument, match="both an index and queries"):
        bench("ranker", index="my.index")


def test_a_diagnosis_has_facts_and_a_dictionary(monkeypatch, capsys):
    monkeypatch.setattr(machine, "accelerators", lambda: ["cuda:0 Imaginary GPU"])
    diagnosis = doctor()
    assert diagnosis.to_dict()["accelerators"] == ["cuda:0 Imaginary GPU"]
    assert "accelerators: cuda:0 Imaginary GPU\n" in diagnosis.summary()
    assert diagnosis.facts()["bm25s"] == "usable; in process"
    assert capsys.readouterr() == ("", "")


def test_an_index_that_does_not_tell_its_size_is_refused_before_anything_is_timed(
    tmp_path, monkeypatch
):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "the tide"}\n')
    build_index(tmp_path / "corpus.jsonl", tmp_path / "my.index")
    monkeypatch.setattr(Bm25Index, "stored_bytes", lambda _: 0)
    monkeypatch.setattr(timings, "time_ranker", lambda *_, **__: pytest.fail("timed"))
    with pytest.raises(EngineProblem, match=r"my\.index.*grant the privilege `monitor`"):
        bench(
            tiny.save(tiny.classifier(), tmp_path / "ranker"),
            index=tmp_path / "my.index",
            queries=tmp_path / "queries.jsonl",
        )
