import json

import pytest

import tiny
from command_line import in_process
from invented import invent
from secondlook.errors import SecondlookError
from secondlook.train import ablation
from secondlook.train.groups import Groups, write_groups

RECIPE = """
base = "base"

[encode]
strm = true

[data]
train = ["train.parquet"]

[[phases]]
phase = "listwise"
negatives = 3
batch = 4
max_steps = 2
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.save(tiny.encoder(), tmp_path / "base")
    (tmp_path / "my.toml").write_text(RECIPE)
    write_groups(tmp_path / "train.parquet", invent(8, seed=1), about={})
    write_groups(tmp_path / "test.parquet", invent(6, seed=2), about={})
    return tmp_path


def run(*more):
    given = ["my.toml", "-o", "out", "--test", "test.parquet", "--device", "cpu"]
    return in_process("ablate", *given, *more)


def test_recipes_are_trained_once_and_tabled(bench):
    table = run("--seeds", "2", "-m", "RR@10")
    rows = [line.split(" | ")[0] for line in table.splitlines()[2:] if line]
    assert rows == ["| whole", "| whole − STRM"]
    assert (bench / "out" / "ablations.md").read_text("utf-8") == table.rstrip("\n") + "\n"
    trained = sorted((bench / "out").glob("*/model.safetensors"))
    made = [path.stat().st_mtime_ns for path in trained]
    assert run("--seeds", "2", "-m", "RR@10") == table
    assert [path.stat().st_mtime_ns for path in trained] == made  # what is done is not done again
    with pytest.raises(SecondlookError, match="made with another measure"):
        run("--seeds", "2", "-m", "nDCG@10")


@pytest.mark.usefixtures("bench")
def test_a_dry_run_names_what_would_be_trained():
    shown = run("--dry-run", "--negatives", "1")
    assert shown.splitlines()[2:5] == [
        "| whole | listwise | 2 | 32 |",
        "| whole − STRM | listwise | 2 | 32 |",
        "| 1 negatives | listwise | 2 | 32 |",
    ]
    assert "3 recipes with 2 seeds, the whole one about" in shown


NOISY = """
base = "base"

[data]
train = ["train.parquet"]

[[phases]]
phase = "pointwise"
batch = 4
max_steps = 2

[[phases]]
phase = "denoise"
positives_above = 0.9

[[phases]]
phase = "listwise"
negatives = 3
batch = 2
max_steps = 1
"""


def test_without_pointwise_the_data_are_those_that_the_whole_cleaned(bench, monkeypatch):
    wanted = ("whole", "whole − pointwise", "whole − denoise")

    all_of = ablation.variants

    def three(*given, **more):
        made = all_of(*given, **more)
        return {name: made[name] for name in wanted}

    monkeypatch.setattr(ablation, "variants", three)
    (bench / "my.toml").write_text(NOISY)
    run("--seeds", "1")
    out = bench / "out"
    cleaned = Groups([out / "cleaned.7" / "denoised-2.parquet"]).fingerprint

    def learnt(name):
        phases = json.loads((out / f"{name}.7" / "secondlook.json").read_text())["lineage"][
            "phases"
        ]
        return phases[-1]["data"]

    assert learnt("whole") == {"denoised.parquet": cleaned}
    assert learnt("whole-without-pointwise") == {"denoised-2.parquet": cleaned}
    assert list(learnt("whole-without-denoise")) == ["train.parquet"]
    assert not list(out.glob("*.work"))
    run("--seeds", "1")  # what the others learnt from is still there


@pytest.mark.slow
def test_a_sweep_over_negatives_is_drawn(bench):
    run("--seeds", "1", "--negatives", "1", "--negatives", "2")
    drawn = (bench / "out" / "negatives.svg").read_text("utf-8")
    assert "<svg" in drawn
