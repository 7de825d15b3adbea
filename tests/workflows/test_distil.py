"""Distillation, as a program calls it, with two-layer networks."""

from __future__ import annotations

import json
import random
from shutil import rmtree

import numpy as np
import pytest

import secondlook as sl
import tiny
from command_line import in_process
from secondlook.errors import CheckpointProblem, CostLimitReached, SecondlookError, WrongArgument
from secondlook.evaluate.agreement import agreement
from secondlook.model.checkpoint import files_fingerprint, open_checkpoint, read_config
from secondlook.train.groups import Groups
from secondlook.workflows import teach
from secondlook.workflows.fuse import set_fusion
from served import Watched, listening, serving

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def _no_export(monkeypatch):
    """Exports have tests of their own, and take most of the time here."""
    monkeypatch.setattr("secondlook.workflows.export.export_for_speed", lambda *_, **__: False)


@pytest.fixture
def folder(tmp_path):
    """A corpus of letters, an index of it, queries without judgments, and two models."""
    rng = random.Random(3)
    texts = [" ".join(rng.choices(LETTERS, k=8)) for _ in range(30)]
    rows = {
        "corpus": [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)],
        "log": [{"_id": f"q{n}", "text": text[4:]} for n, text in enumerate(texts)],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    sl.build_index(tmp_path / "corpus.jsonl", tmp_path / "index")
    tiny.save(tiny.classifier(seed=5), tmp_path / "teacher")
    tiny.save(tiny.encoder(), tmp_path / "student")
    return tmp_path


def distilled(folder, output="small", **given):
    options = {"teacher": folder / "teacher", "student": folder / "student", "pool": 10, "depth": 6}
    options |= {"epochs": 2.0, "learning_rate": 1e-3, "device": "cpu"} | given
    return sl.distil(folder / "index", folder / "log.jsonl", folder / output, **options)


def test_the_student_ranks_more_like_the_teacher(folder, capsys):
    result = distilled(folder, epochs=20.0)
    assert capsys.readouterr().out == ""
    assert (result.teacher, result.student) == ("teacher", "student")
    assert dict(result.queries) == {"train": 24, "dev": 2, "test": 4}
    assert result.pairs == 6 * 30
    assert result.kept
    assert "24 queries without judgments, 180 pairs" in result.summary()
    written = json.loads((folder / "small" / "agreement.json").read_text())
    assert written["taught"]["kendall"] == result.taught.kendall
    assert written["p"] == result.p
    lineage = open_checkpoint(result.ranker).settings.lineage
    assert lineage.phases[-1].name == "distil"
    assert lineage.phases[-1].labels == "the scores of teacher, without judgments"
    assert kendall(folder, result.ranker) > kendall(folder, folder / "small/stages/untaught") + 0.1


def kendall(folder, ranker):
    """The agreement with the teacher on what was learnt: four test queries say little."""
    groups = list(Groups([folder / "small" / "stages" / "train.taught.parquet"]))
    scorer = sl.Ranker.load(ranker)
    own = [scorer.score([(g.query, d) for d in g.documents]).tolist() for g in groups]
    return agreement([group.teacher for group in groups], own).kendall


def test_interrupted_it_resumes_without_scoring_again(folder, monkeypatch):
    scored = []
    score = sl.Ranker.scored
    monkeypatch.setattr(teach, "_GROUPS_AT_ONCE", 2)

    def cut_off(self, pairs):
        if self.settings.form == "joint":
            if len(scored) == 3:
                raise KeyboardInterrupt
            scored.append(len(pairs))
        return score(self, pairs)

    with monkeypatch.context() as patch:
        patch.setattr(sl.Ranker, "scored", cut_off)
        with pytest.raises(KeyboardInterrupt):
            distilled(folder)
    monkeypatch.setattr(
        sl.Ranker,
        "scored",
        lambda self, pairs: (
            (scored.append(len(pairs)) if self.settings.form == "joint" else None),
            score(self, pairs),
        )[1],
    )
    whole = distilled(folder)
    assert sum(scored) == whole.pairs, "the teacher scored every pair once"
    teacher_calls = len(scored)
    again = distilled(folder)
    assert again == whole
    assert len(scored) == teacher_calls


def test_any_scorer_is_a_teacher(folder):
    class Longest:
        name = "longest"

        def score(self, pairs):
            return np.array([len(set(document.text)) for _, document in pairs], np.float32)

    result = distilled(folder, teacher=Longest(), max_steps=1)
    assert result.teacher == "longest"
    assert not (folder / "small" / "stages" / "teacher").exists()


def test_a_teacher_by_url_scores_every_pair_once_and_within_its_cost(folder, monkeypatch):
    monkeypatch.setenv("SECONDLOOK_CACHE", str(folder / "cache"))
    teacher = Watched(sl.Ranker.load(folder / "teacher", device="cpu"))
    with listening(serving(teacher)) as url:
        priced = f"{url}/rerank#model=tiny,price_per_1000_documents=1"
        with pytest.raises(CostLimitReached, match=r"more than 0\.17"):
            distilled(folder, teacher=f"{priced},max_cost=0.17", max_steps=1)  # 144 + 12 + 24 pairs
        assert 144 < sum(map(len, teacher.chunks)) <= 170
        result = distilled(folder, teacher=priced, max_steps=1)
    host = url.removeprefix("http://")
    assert sum(map(len, teacher.chunks)) == result.pairs == 180, "every pair is paid for once"
    assert result.teacher == f"{host} tiny"
    scored = Groups([folder / "small" / "stages" / "test.scored.parquet"])[0]
    own = teacher.ranker.score([(scored.query, document) for document in scored.documents])
    assert scored.teacher == pytest.approx(own.tolist(), abs=1e-4)
    [about] = Groups([folder / "small" / "stages" / "train.taught.parquet"]).about
    assert about["labels"] == f"the scores of {host} tiny, without judgments"
    assert not (folder / "small" / "stages" / "teacher").exists()


def test_a_url_without_its_key_or_as_a_student_is_refused_before_any_work(folder):
    address = "https://rank.example/v2/rerank#key=NO_SUCH_KEY"
    with pytest.raises(WrongArgument, match="NO_SUCH_KEY"):
        distilled(folder, teacher=address)
    with pytest.raises(CheckpointProblem, match=r"rank\.example"):
        distilled(folder, "other", student=address)
    assert not (folder / "small" / "stages" / "pool.trec.gz").exists()


def test_a_folder_of_another_command_is_left_alone(folder):
    other = folder / "tuned" / "stages"
    other.mkdir(parents=True)
    (other / "asked.json").write_text('{"data": "my-data"}')
    with pytest.raises(SecondlookError, match="holds the work of another command"):
        distilled(folder, "tuned")
    assert [path.name for path in other.iterdir()] == ["asked.json"]


def test_a_folder_is_for_the_arguments_it_was_begun_with(folder):
    distilled(folder, max_steps=1)
    with pytest.raises(SecondlookError, match="was started with loss kl"):
        distilled(folder, max_steps=1, loss="margin_mse")
    namesake = tiny.save(tiny.classifier(seed=6), folder / "better" / "teacher")
    with pytest.raises(SecondlookError, match="was started with teacher folder"):
        distilled(folder, max_steps=1, teacher=namesake)
    (folder / "log.jsonl").write_text('{"_id": "q1", "text": "a b"}\n')
    with pytest.raises(SecondlookError, match="other contents of the queries"):
        distilled(folder, max_steps=1)


def test_where_the_stages_are_made_again_so_is_the_student(folder):
    first = distilled(folder, epochs=20.0)
    before = files_fingerprint(first.ranker)
    for name in ("taught", "taught.work"):
        rmtree(folder / "small" / "stages" / name)
    again = distilled(folder, epochs=10.0, seed=8)
    assert again.kept
    assert files_fingerprint(again.ranker) != before
    assert files_fingerprint(again.ranker) == files_fingerprint(folder / "small/stages/taught")
    assert again.taught != first.taught
    set_fusion(again.ranker, 0.5)  # what somebody sets in the student stays
    distilled(folder, epochs=10.0, seed=8)
    assert open_checkpoint(again.ranker).settings.fusion.weight == 0.5


def test_as_a_verb_with_a_cross_encoder_as_student(folder):
    tiny.save(tiny.classifier(seed=9), folder / "student")
    given = folder / "index", folder / "log.jsonl", "--teacher", folder / "teacher"
    options = "-o", folder / "small", "--student", folder / "student", "--max-steps", 1
    more = "--pool", 10, "--depth", 6, "--device", "cpu", "--loss", "margin_mse"
    said = in_process("distil", *given, *options, *more)
    assert "Agreement with teacher, 4 test queries" in said
    settings = open_checkpoint(folder / "small" / "ranker").settings
    assert settings.form == "joint"


def test_the_student_may_be_a_part_of_the_teacher(folder):
    teacher = folder / "teacher"
    result = distilled(folder, student=teacher, student_layers=1, epochs=20.0)
    assert result.student == "teacher-1-layers"
    assert read_config(result.ranker)["num_hidden_layers"] == 1
    assert result.kept
    assert not (folder / "small/stages/student.trec.gz").exists(), "it cannot rank before training"
    assert kendall(folder, result.ranker) > kendall(folder, folder / "small/stages/untaught") + 0.1
    with pytest.raises(SecondlookError, match="student layers 1"):
        distilled(folder, student=teacher, student_layers=2)
