"""`secondlook teach`, as a user calls it."""

import json

import numpy as np
import pytest

import tiny
from command_line import in_process
from invented import invent
from secondlook import Ranker
from secondlook.train.groups import Groups, write_groups
from secondlook.workflows import teach


@pytest.fixture
def given(tmp_path):
    write_groups(tmp_path / "train.parquet", invent(5), about={"labels": "clicks"})
    tiny.save(tiny.classifier(), tmp_path / "teacher")
    return ["teach", tmp_path / "train.parquet", "--teacher", tmp_path / "teacher", "-o"]


def test_every_candidate_gets_the_teachers_score(tmp_path, given):
    assert "5 queries, scored by teacher: 30 pairs" in in_process(
        *given, tmp_path / "taught.parquet"
    )
    taught = Groups([tmp_path / "taught.parquet"])
    assert taught.about == ({"labels": "clicks", "teacher": "teacher"},)
    ranker = Ranker.load(tmp_path / "teacher")
    for group, before in zip(taught, Groups([tmp_path / "train.parquet"]), strict=True):
        scores = ranker.score([(group.query, document) for document in group.documents])
        np.testing.assert_allclose(group.teacher, scores, rtol=1e-5)
        assert (group.documents, group.labels) == (before.documents, before.labels)


def test_interrupted_it_goes_on(tmp_path, given, monkeypatch):
    in_process(*given, tmp_path / "whole.parquet")
    monkeypatch.setattr(teach, "_GROUPS_AT_ONCE", 2)
    scored, score = [], Ranker.scored

    def interrupted(self, pairs):
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(len(pairs))
        return score(self, pairs)

    with monkeypatch.context() as patched:
        patched.setattr(Ranker, "scored", interrupted)
        in_process(*given, tmp_path / "taught.parquet", fails=True)
    assert not (tmp_path / "taught.parquet").exists()
    monkeypatch.setattr(
        Ranker, "scored", lambda self, pairs: scored.append(-1) or score(self, pairs)
    )
    in_process(*given, tmp_path / "taught.parquet")
    assert scored.count(-1) == 1, "four of the five queries were done"
    files = [tmp_path / f"{name}.parquet" for name in ("whole", "taught")]
    tables = [[group.teacher for group in Groups([file])] for file in files]
    np.testing.assert_allclose(*map(np.array, tables), rtol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_student_learns_what_it_was_taught(tmp_path, given):
    in_process(*given, tmp_path / "taught.parquet")
    tiny.save(tiny.encoder(seed=1), tmp_path / "base")
    (tmp_path / "recipe.toml").write_text(
        f'base = {json.dumps(str(tmp_path / "base"))}\n[data]\ntrain = ["taught.parquet"]\n'
        '[encode]\nmax_length = 64\n[[phases]]\nphase = "warm"\n'
        '[[phases]]\nphase = "distil"\nmax_steps = 2\n'
    )
    given = ["train", tmp_path / "recipe.toml", "-o", tmp_path / "student", "--data", tmp_path]
    in_process(*given, "--device", "cpu")
    assert (tmp_path / "student" / "model.safetensors").is_file()
