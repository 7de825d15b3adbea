"""Score fusion, as a program calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny
from command_line import writing
from secondlook.data import read_run, write_qrels, write_run
from secondlook.errors import OutputInUse, SecondlookError, UnknownName
from secondlook.model.checkpoint import open_checkpoint
from secondlook.rank.fusion import Fusion
from secondlook.score.fusion_choice import TunedFusion, Way
from secondlook.score.raw import FUSED_TAG, RAW_TAG, TAIL_TAG
from secondlook.score.warm import make_warm
from secondlook.types import Hit, Ranking
from secondlook.workflows.fuse import (
    FusionResult,
    clear_fusion,
    set_fusion,
    tune_fusion,
    windows_of_words,
)

QUERIES = [f"q{n}" for n in range(6)]
DOCUMENTS = [f"d{n}" for n in range(8)]


@pytest.fixture
def given(tmp_path):
    """A ranker that puts the relevant document last, where the first stage puts it first."""
    make_warm(tiny.save(tiny.encoder(), tmp_path / "base"), tmp_path / "ranker")
    for name, sign in (("first", -1.0), ("raw", 1.0)):
        hits = [Hit(doc_id, sign * n) for n, doc_id in enumerate(DOCUMENTS)]
        write_run(tmp_path / f"{name}.trec", [Ranking.of(query, hits) for query in QUERIES])
    write_qrels(tmp_path / "qrels.tsv", {query: {"d0": 1} for query in QUERIES})
    return tmp_path


def test_a_fusion_is_tuned_stored_and_cleared(given, capsys):
    ranker, seen = given / "ranker", []
    runs = {"first": given / "first.trec", "raw": str(given / "raw.trec")}
    before = open_checkpoint(ranker).settings

    def tune(**more):
        return tune_fusion(ranker, **runs, qrels=given / "qrels.tsv", folds=3, **more)

    tried = tune(dry_run=True, progress=lambda *step: seen.append(step))
    assert (tried.tuned.first, tried.tuned.queries) == (1.0, 6)
    assert tried.tuned.ranker < tried.tuned.first
    assert tried.summary().endswith(
        "the first stage alone; the re-ranker's scores have no weight (not stored)"
    )
    assert open_checkpoint(ranker).settings == before
    stored = tune(curve=str(given / "curve.svg"))
    fusion = open_checkpoint(ranker).settings.fusion
    assert (fusion.weight, fusion.scale) == (stored.weight, stored.scale)
    assert json.loads(json.dumps(stored.to_dict())) == tried.to_dict() | {"stored": True}
    assert "<svg" in (given / "curve.svg").read_text()
    clear_fusion(str(ranker))
    assert open_checkpoint(ranker).settings == before
    assert seen == [("trying fusions", 0, None)]
    assert capsys.readouterr().out == ""


def figures(queries, first, ranker, fused, weight=0.2):
    way = Way(None, Fusion(weight) if weight else None)
    return FusionResult(
        Path("r"),
        "nDCG@10",
        TunedFusion(way, queries, first, ranker, fused, 0.5, {}, 0),
        stored=True,
        calibration_dropped=False,
    )


def test_a_fusion_of_few_queries_or_below_its_inputs_is_warned_of():
    assert figures(40, 0.3, 0.4, 0.41).warnings == []
    (few,) = figures(39, 0.3, 0.4, 0.41).warnings
    assert few.startswith("only 39 judged queries, where 40 or more are needed")
    (worse,) = figures(40, 0.3, 0.4, 0.39).warnings
    assert worse.startswith("cross-validated, the re-ranker alone is better by 0.0100")
    assert f"warning: {worse}" in figures(40, 0.3, 0.4, 0.39).summary()
    assert figures(40, 0.45, 0.4, 0.39, weight=1).warnings == []
    assert figures(40, 0.3, 0.4, 0.39, weight=0).warnings == []


def test_a_ranker_that_another_process_writes_is_left_alone_but_may_be_looked_at(given):
    runs = {"first": given / "first.trec", "raw": given / "raw.trec", "qrels": given / "qrels.tsv"}
    with writing(given / "ranker"):
        for change in (lambda: tune_fusion(given / "ranker", **runs, folds=3),
                       lambda: clear_fusion(given / "ranker")):  # fmt: skip
            with pytest.raises(OutputInUse, match="process"):
                change()
        assert not tune_fusion(given / "ranker", **runs, folds=3, dry_run=True).stored


def test_a_known_fusion_is_stored_and_raw_scores_are_tuned_where_asked(given):
    ranker = given / "ranker"
    set_fusion(ranker, 0.8, "raw")
    fusion = open_checkpoint(ranker).settings.fusion
    assert (fusion.weight, fusion.scale) == (0.8, "raw")
    set_fusion(ranker, 0.9, windows=windows_of_words(100, None, (1.0, 0.5)))
    settings = open_checkpoint(ranker).settings
    assert settings.fusion.scale == "min-max"
    windows = settings.encode.windows
    assert (windows.length, windows.stride, windows.pooling) == (100, 50, "top")
    assert windows.weights == (1.0, 0.5)


def test_raw_scores_are_tuned_only_where_asked(given):
    files = {name: given / f"{name}.trec" for name in ("first", "raw")}
    options = {**files, "qrels": given / "qrels.tsv", "folds": 3, "dry_run": True}
    assert tune_fusion(given / "ranker", **options, scales=["raw"]).scale in ("raw", None)
    assert tune_fusion(given / "ranker", **options).scale != "raw"
    with pytest.raises(UnknownName, match="no scale 'log'"):
        tune_fusion(given / "ranker", **options, scales=["log"])


@pytest.mark.parametrize(
    ("tag", "fuses", "problem"),
    [
        (FUSED_TAG, False, "fuses its scores"),
        (TAIL_TAG, False, "has not scored"),
        ("secondlook", True, "fuses its scores"),
    ],
)
def test_scores_that_are_not_the_rankers_own_are_refused(given, tag, fuses, problem):
    ranker, run = given / "ranker", given / "other.trec"
    files = {"first": given / "first.trec", "qrels": given / "qrels.tsv", "folds": 3}
    if fuses:
        set_fusion(ranker, 0.8)
    before = open_checkpoint(ranker).settings
    write_run(run, read_run(given / "raw.trec"), tag=tag)
    with pytest.raises(SecondlookError, match=f"{problem}.*rerank … --raw"):
        tune_fusion(ranker, raw=run, **files)
    assert open_checkpoint(ranker).settings == before
    write_run(run, read_run(given / "raw.trec"), tag=RAW_TAG)
    assert tune_fusion(ranker, raw=run, **files).weight == 1


def test_a_run_of_ranks_alone_is_refused(given):
    write_run(given / "raw.tsv", read_run(given / "raw.trec"))
    files = {"first": given / "first.trec", "raw": given / "raw.tsv", "qrels": given / "qrels.tsv"}
    with pytest.raises(SecondlookError, match=r"raw.tsv has ranks and no scores.*rerank … --raw"):
        tune_fusion(given / "ranker", **files, folds=3)


def test_judged_queries_that_the_run_does_not_have_are_left_out_and_counted(given):
    write_qrels(given / "qrels.tsv", {query: {"d0": 1} for query in [*QUERIES, "never", "asked"]})
    files = {name: given / f"{name}.trec" for name in ("first", "raw")}
    found = tune_fusion(given / "ranker", **files, qrels=given / "qrels.tsv", folds=3, dry_run=True)
    assert (found.tuned.first, found.tuned.queries) == (1.0, 6)
    assert found.to_dict()["left_out"] == 2
    assert found.summary().endswith("a run does not tell): 2 judged queries")
