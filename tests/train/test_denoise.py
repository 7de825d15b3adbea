"""Noise reduction: what scores like a positive is taken out, shown and counted."""

import json
from dataclasses import replace

import numpy as np
import pytest

from invented import invent
from secondlook.data import read_qrels, read_queries
from secondlook.errors import MalformedInput, SecondlookError
from secondlook.model.network import new_warm
from secondlook.train.denoise import Cut, run
from secondlook.train.groups import Groups, write_groups
from secondlook.train.mine import Miner, MineSettings
from secondlook.train.phase import Place, TrainData
from secondlook.train.recipe import read_recipe
from secondlook.train.settings import DenoisePhase


def scores_of(groups):
    """Positives 10, 11, … and the others 0, 1, … 4 in every group."""
    return np.array(
        [10 + at if label > 0 else (number - 1) for at, group in enumerate(groups)
         for number, label in enumerate(group.labels)],
        np.float32,
    )  # fmt: skip


def test_what_lies_above_an_absolute_threshold_goes():
    groups = invent(4)
    cut = Cut(DenoisePhase(threshold=2.5), groups, scores_of(groups))
    for before, after in zip(groups, cut.groups(), strict=True):
        assert after == replace(
            before,
            documents=before.documents[:4],
            labels=(1, -1, -1, -1),
            ranks=(1, 2, 3, 4),
        )
    assert cut.metrics() == {
        "threshold": 2.5,
        "positives above": 1.0,
        "unlabelled": 20.0,
        "taken": 8.0,
        "queries changed": 4.0,
    }


def test_the_threshold_can_be_put_by_the_known_positives():
    groups = invent(11)  # their positives score 10 … 20
    scores = scores_of(groups)
    cut = Cut(DenoisePhase(positives_above=0.7), groups, scores)
    assert cut.threshold == pytest.approx(13)
    scores[1] = 13.5  # an unlabelled candidate that scores as positives do
    assert cut.metrics()["taken"] == 0
    cut = Cut(DenoisePhase(positives_above=0.7), groups, scores)
    (line,) = cut.taken()
    assert json.loads(line) == {
        "query_id": "q0",
        "query": groups[0].query.text,
        "doc_id": "d0-1",
        "title": "",
        "text": groups[0].documents[1].text,
        "score": 13.5,
        "rank": 2,
        "known_positives": [groups[0].documents[0].text],
    }


def test_they_can_be_kept_as_positives():
    groups = invent(2)
    cut = Cut(DenoisePhase(threshold=3.5, found="positive"), groups, scores_of(groups))
    assert [group.labels for group in cut.groups()] == [(1, -1, -1, -1, -1, 1)] * 2


def test_what_a_person_judged_is_never_touched():
    group = replace(invent(1)[0], labels=(1, 0, 0, 0, 0, 0))
    cut = Cut(DenoisePhase(threshold=-100), [group], scores_of([group]))
    assert list(cut.groups()) == [group]


def test_without_a_positive_there_is_no_threshold_to_find():
    group = replace(invent(1)[0], labels=(-1,) * 6)
    with pytest.raises(SecondlookError, match="give `threshold`"):
        Cut(DenoisePhase(positives_above=0.5), [group], scores_of([group]))


@pytest.mark.parametrize("given", ["", "threshold = 1.0\npositives_above = 0.5"])
def test_a_recipe_says_one_threshold(tmp_path, given):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'base = "b"\n[[phases]]\nphase = "denoise"\n{given}\n')
    with pytest.raises(MalformedInput, match="either `threshold` or `positives_above`"):
        read_recipe(recipe)


def test_the_phase_writes_new_groups_and_an_account(tmp_path, warm, data):
    settings = DenoisePhase(positives_above=0.5, precision="fp32")
    outcome = run(settings, warm, data, Place(tmp_path / "work", seed=7))
    assert outcome.model is warm
    (clean,) = outcome.data.train
    before, after = Groups(data.train), Groups([clean])
    gone = sum(len(g.documents) for g in before) - sum(len(g.documents) for g in after)
    dropped, summary = outcome.keep
    assert gone == len(dropped.read_text().splitlines()) == outcome.metrics["taken"] > 0
    assert json.loads(summary.read_text()) == outcome.metrics
    assert [group.query.id for group in after] == [group.query.id for group in before]
    assert outcome.learned_from == {"groups.parquet": before.fingerprint}


def test_a_killed_run_goes_on_to_the_same_result(tmp_path, warm):
    path = tmp_path / "groups.parquet"
    write_groups(path, invent(150), about={})
    data = TrainData(tmp_path, (path,))
    settings = DenoisePhase(positives_above=0.5, precision="fp32")
    whole = run(settings, warm, data, Place(tmp_path / "whole", seed=7))

    class Killed(Exception):
        pass

    class Killer:
        steps = 0

        def begin(self, doing, total, *, done=0):
            self.done = done

        def step(self, items, figures):
            self.steps += 1
            if self.steps == 100:
                raise Killed

        def say(self, message):
            pass

    with pytest.raises(Killed):
        run(settings, warm, data, Place(tmp_path / "killed", seed=7, watch=Killer()))
    with (tmp_path / "killed" / "scores.f32").open("ab") as scores:
        scores.write(b"half a score")
    watch = Killer()
    again = run(settings, warm, data, Place(tmp_path / "killed", seed=7, watch=watch))
    assert watch.done == 128
    assert again.metrics == whole.metrics
    assert again.data.train[0].read_bytes() == whole.data.train[0].read_bytes()


@pytest.mark.slow
def test_planted_noise_is_found(tmp_path, shared_data, minilm_folder):
    """A fifth of SQuAD's positives hidden among BM25's candidates; an untrained warm MiniLM."""
    from secondlook.data import read_corpus
    from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings

    folder = shared_data / "squad-passage"
    qrels = dict(list(read_qrels(folder / "qrels" / "dev.tsv").items())[::10])
    queries = {query.id: query for query in read_queries(folder) if query.id in qrels}
    index = Bm25Index.build(tmp_path / "index", read_corpus(folder), Bm25Settings())
    miner = Miner(queries, qrels, index, MineSettings(negatives=10, ranks=(1, 30)))
    planted, groups = set(), []
    for number, group in enumerate(miner.groups(index.retrieve(list(queries.values()), 30))):
        if number % 5 == 0:
            planted.add((group.query.id, group.documents[group.labels.index(1)].id))
            group = replace(group, labels=(-1,) * len(group.labels))
        groups.append(group)
    path = tmp_path / "groups.parquet"
    write_groups(path, groups, about={})
    place = Place(tmp_path / "work", seed=7)
    settings = DenoisePhase(positives_above=0.7)
    outcome = run(settings, new_warm(minilm_folder), TrainData(tmp_path, (path,)), place)
    rows = [json.loads(line) for line in outcome.keep[0].read_text().splitlines()]
    dropped = {(row["query_id"], row["doc_id"]) for row in rows}
    found = len(dropped & planted) / len(planted)
    lost = len(dropped - planted) / (outcome.metrics["unlabelled"] - len(planted))
    assert found > 0.6
    assert lost < 0.12


def test_in_bf16_the_share_of_positives_that_is_asked_for_lies_above(joint, tmp_path):
    """Where scores are rounded to bf16, many are equal to the threshold and so not above it."""
    path = tmp_path / "many.parquet"
    write_groups(path, invent(400, candidates=2), about={})
    settings = DenoisePhase(positives_above=0.5, precision="bf16")
    outcome = run(settings, joint, TrainData(tmp_path, (path,)), Place(tmp_path / "a", 1, "cpu"))
    assert outcome.metrics["positives above"] == pytest.approx(0.5, abs=1 / 400)
