import pytest

import tiny
from command_line import in_process
from invented import invent
from secondlook.errors import SecondlookError
from secondlook.train.groups import write_groups

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
    (bench / "train.parquet").unlink()  # what is done is not done again
    assert run("--seeds", "2", "-m", "RR@10") == table
    with pytest.raises(SecondlookError, match="another recipe, test or measure"):
        run("--seeds", "2", "-m", "nDCG@10")


@pytest.mark.usefixtures("bench")
def test_a_dry_run_names_what_would_be_trained():
    shown = run("--dry-run", "--negatives", "1")
    assert shown.splitlines() == [
        "whole: listwise",
        "whole − STRM: listwise",
        "1 negatives: listwise",
    ]


def test_a_sweep_over_negatives_is_drawn(bench):
    run("--seeds", "1", "--negatives", "1", "--negatives", "2")
    drawn = (bench / "out" / "negatives.svg").read_text("utf-8")
    assert "<svg" in drawn
