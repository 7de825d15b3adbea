"""The report of `benchmarks/ablation.py`, on invented figures and two-layer networks."""

from __future__ import annotations

import json
import shutil
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

import tiny
from invented import invent
from secondlook.model.network import load_model, save_model
from secondlook.train.groups import Group, write_groups
from secondlook.types import Query

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import ablation
import ablation_data
import ablation_page
import ablation_report

QUERIES = [f"q{number}" for number in range(24)]


@pytest.fixture
def output(tmp_path):
    """NFCorpus in setting (a): `plain` and `plain + STRM`, which gains .1 on split words only."""
    data, folder = tmp_path / "data" / "nfcorpus", tmp_path / "encoder" / "nfcorpus"
    data.mkdir(parents=True)
    folder.mkdir(parents=True)
    nothing = Group(Query("none", "finds nothing"), documents=(), labels=(), ranks=())
    write_groups(data / "test.parquet", [nothing, *invent(5)], about={})
    split = {query: number % 2 for number, query in enumerate(QUERIES)}
    known = {"terms in a relevant candidate": 1.0, "type": "entity", "BM25": 0.25}
    facets = {query: {"split words": split[query], **known} for query in QUERIES}
    (data / "facets.json").write_text(json.dumps(facets))
    tiny.save(tiny.classifier(), tmp_path / "base")
    for slug, strm, gain in (("plain", False, 0.0), ("plain-with-strm", True, 0.1)):
        model = load_model(tmp_path / "base")
        encode = model.settings.encode.model_copy(update={"strm": strm, "max_length": 60})
        settings = model.settings.model_copy(update={"encode": encode})
        save_model(replace(model, settings=settings), folder / f"{slug}.1")
        for seed in (1, 2):
            values = {query: 0.5 + gain * split[query] for query in QUERIES}
            points = [{"step": step, "nDCG@10": 0.4 + step / 100} for step in (0, 2, 4)]
            history = [{"phase": "pointwise", "points": [*points, {"step": 4, "loss": 1.0}]}]
            figures = {"values": values, "history": history}
            (folder / f"{slug}.{seed}.json").write_text(json.dumps(figures))
    return tmp_path


def test_the_report_has_contrasts_curves_and_cases(output, monkeypatch):
    monkeypatch.setattr(ablation_report, "FEWEST", 12)
    text = ablation_report.write_report(output).read_text("utf-8")
    assert "| BM25's order | | 0.2500 |" in text
    assert "| plain + STRM | 0.5500, 0.5500 | 0.5500 |" in text
    [everywhere] = [line for line in text.splitlines() if line.startswith("| STRM | 24 ")]
    assert "| 0.5000 | +0.0500 | +0.0" in everywhere
    assert "| 0.000 | +0.0500, +0.0500 | +0.0" in everywhere
    assert everywhere.endswith("| 0.000 |"), "for other seeds too"
    assert "| STRM: queries with split words | 12 | 0.5000 | +0.1000 |" in text
    assert "| STRM: other queries | 12 | 0.5000 | +0.0000 |" in text
    assert "markers" not in text, "it was not trained"
    for word in ("bogue", "insouciantly"):
        picture = (output / "pictures" / f"attention-encoder-nfcorpus-{word}.svg").read_text(
            "utf-8"
        )
        assert all(f"<!-- {label} -->" in picture for label in ("plain", "plain + STRM", word))
    assert text.count(" of 6 | ") == 4, "two cases by two rankers, among five other texts"
    assert (output / "pictures" / "curves-encoder-nfcorpus.svg").is_file()
    drawn = (output / "pictures" / "differences.svg").read_text("utf-8")
    assert all(f"<!-- {label} -->" in drawn for label in ("STRM", "encoder, nfcorpus"))
    folder = output / "encoder" / "nfcorpus"
    shutil.copytree(folder / "plain.1", folder / "plain-with-markers.1")
    shutil.copy(folder / "plain.1.json", folder / "plain-with-markers.1.json")
    text = ablation_report.write_report(output).read_text("utf-8")
    alike = [line for line in text.splitlines() if "| ghost meaning urban |" in line]
    assert len({line.split(" | ", 3)[3] for line in alike}) == 1, "the same ranker, seen twice"
    assert len(alike) == 2, "its own example is looked at when a variant is there"
    pictures = {path: path.read_bytes() for path in (output / "pictures").iterdir()}
    for ranker in folder.glob("*.1"):
        shutil.rmtree(ranker)
    again = ablation_report.write_report(output).read_text("utf-8")
    assert again == text, "it is made of files that may be kept without the rankers"
    assert all(path.read_bytes() == drawn for path, drawn in pictures.items())
    assert ablation_report.curve(output / "encoder" / "nfcorpus", "plain")[-1] == (4.0, 0.44)


def test_figures_alone_are_no_training_data(tmp_path):
    domain, folder = ablation_data.DOMAINS["nfcorpus"], tmp_path / "data" / "nfcorpus"
    folder.mkdir(parents=True)
    (folder / "facets.json").write_text("{}")
    with pytest.raises(FileNotFoundError):
        ablation_data.prepare(domain, tmp_path / "nowhere", tmp_path / "data")
    for name in ablation_data.FILES:
        (folder / name).touch()
    assert ablation_data.prepare(domain, tmp_path / "nowhere", tmp_path / "data") == folder


def test_a_part_of_the_grid_can_be_asked_for():
    whole = list(ablation.grid())
    assert len(whole) == len(set(whole)) == 66
    asked = Namespace(
        settings=["encoder"], domains=["insuranceqa"], variants=["plain + denoise"], seeds=[1]
    )
    assert {cell.variant for cell in ablation.chosen(asked)} == {"plain + denoise", "whole"}


def test_what_needs_data_of_another_machine_is_passed_over(tmp_path, capsys):
    class Trainings:
        output = tmp_path
        over = None

        def can_begin(self, variant, seed):
            return False

        def kept(self, variant, seed):
            return self.over

    trainings, cell = Trainings(), ablation.Training("encoder", "nfcorpus", "plain + denoise", 1)
    assert not ablation._train(trainings, cell), "the whole recipe is under way"
    assert capsys.readouterr().err == ""
    trainings.over = {"values": {}}
    assert ablation._train(trainings, cell)
    assert "remove whole.1.json there to make them again" in capsys.readouterr().err


def test_the_page_has_the_tables_of_the_committed_runs():
    results = Path(__file__).parents[2] / "docs" / "results"
    page = (results / "ablations.md").read_text("utf-8")
    tables = list(ablation_page.page_tables(results / "runs" / "ablation"))
    assert len(tables) > 1
    assert [table for table in tables if f"\n\n{table}\n\n" not in page] == []


def test_tables_of_a_folder_without_figures_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ablation.py", "tables", str(tmp_path)])
    with pytest.raises(SystemExit, match="has no figures of a plain recipe"):
        ablation.main()


def test_figures_are_written_as_the_page_has_them():
    assert ablation_page.plain(0.30371) == ".3037"
    assert [ablation_page.signed(value) for value in (-0.0108, 0.002, -0.00001)] == [
        "−.0108",
        "+.0020",
        "+.0000",
    ]
    assert [ablation_page.probability(p) for p in (0.0004, 0.0186, 0.206, 0.999)] == [
        "< .001",
        ".019",
        ".21",
        "1.0",
    ]
