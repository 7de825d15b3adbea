"""What the parts of a recipe are worth, as a program calls it."""

import pytest
import torch

import tiny
from invented import invent
from secondlook.data import read_run
from secondlook.errors import SecondlookError
from secondlook.evaluate.measures import evaluate
from secondlook.score.torch_backend import fast_bf16
from secondlook.train.groups import write_groups
from secondlook.workflows.ablate import AblationTrainings, ablate, plan, read_figures

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
max_steps = 1
"""


@pytest.fixture
def folder(tmp_path):
    tiny.save(tiny.encoder(), tmp_path / "base")
    (tmp_path / "my.toml").write_text(RECIPE)
    write_groups(tmp_path / "train.parquet", invent(8, seed=1), about={})
    write_groups(tmp_path / "test.parquet", invent(4, seed=2), about={})
    return tmp_path


def trainings_in(folder, recipe="my.toml", base="base"):
    return AblationTrainings.of(
        folder / recipe,
        folder / "out",
        folder / "test.parquet",
        base=folder / base,
        device="cpu",
    )


def test_a_training_is_done_once_and_leaves_its_run_its_figures_and_its_curve(folder):
    trainings = trainings_in(folder)
    assert trainings.kept("whole − STRM", 7) is None
    values = trainings.values("whole − STRM", 7)
    run = folder / "out" / "whole-without-strm.7.trec.gz"
    qrels = {f"q{number}": {f"d{number}-0": 1} for number in range(4)}
    measured = evaluate(qrels, read_run(run), ["nDCG@10"]).per_query["nDCG@10"]
    assert values == pytest.approx(dict(measured))
    figures = read_figures(folder / "out", "whole − STRM", 7)
    [phase] = figures["history"]
    assert phase["phase"] == "listwise"
    assert figures["precision"] == ("bf16" if fast_bf16(torch.device("cpu")) else "fp32")
    assert phase["points"][0]["step"] == 1
    written = run.stat().st_mtime_ns
    assert trainings_in(folder).values("whole − STRM", 7) == values
    assert run.stat().st_mtime_ns == written  # nothing was trained or scored again


def test_what_was_kept_of_another_recipe_is_not_taken_for_this_one(folder):
    trainings_in(folder).values("whole", 7)
    changed = RECIPE.replace("negatives = 3", "negatives = 2")
    (folder / "other.toml").write_text(changed)
    with pytest.raises(SecondlookError, match="made with another recipe"):
        trainings_in(folder, "other.toml").values("whole", 7)


def test_what_was_kept_of_another_base_or_other_data_is_not_taken_for_this_one(folder):
    trainings_in(folder).values("whole", 7)
    tiny.save(tiny.encoder(), folder / "another")
    with pytest.raises(SecondlookError, match="made with another base;"):
        trainings_in(folder, base="another").values("whole", 7)
    write_groups(folder / "train.parquet", invent(8, seed=3), about={})
    with pytest.raises(SecondlookError, match="made with another training set;"):
        trainings_in(folder).values("whole", 7)


def test_a_killed_training_leaves_no_figures_and_goes_on(folder, monkeypatch):
    trainings = trainings_in(folder)
    monkeypatch.setattr("secondlook.data.run.Run.write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainings.values("whole", 7)
    assert trainings.kept("whole", 7) is None
    monkeypatch.undo()
    assert trainings.values("whole", 7) == trainings.kept("whole", 7)["values"]


def interrupt(*_):
    raise KeyboardInterrupt


def test_variants_on_cleaned_data_wait_for_the_whole_recipe(folder):
    denoise = '[[phases]]\nphase = "denoise"\nthreshold = 0.0\n'
    first = '[[phases]]\nphase = "pointwise"\nmax_steps = 1\nbatch = 4\n'
    head, listwise = RECIPE.split("[[phases]]")
    (folder / "my.toml").write_text(f"{head}{first}{denoise}[[phases]]{listwise}")
    trainings = trainings_in(folder)
    assert trainings.can_begin("plain", 7)
    assert not trainings.can_begin("plain + denoise", 7)
    trainings.values("whole", 7)
    assert trainings.can_begin("plain + denoise", 7)
    assert len(trainings.values("plain + denoise", 7)) == 4


def test_a_smaller_training_is_planned_with_its_share_of_the_time(folder):
    recipe = (folder / "my.toml").read_text("utf-8").replace("max_steps = 1", "max_steps = 4")
    (folder / "my.toml").write_text(recipe)
    options = {"seeds": 2, "base": folder / "base", "device": "cpu"}
    planned = plan(folder / "my.toml", pairs=[32], parts=False, **options)
    assert {name: one.pairs for name, one in planned.variants.items()} == {
        "whole": 64,
        "32 pairs": 32,
    }
    assert planned.all_seconds == pytest.approx(2 * 1.5 * planned.seconds)


def test_variants_are_planned_trained_and_compared(folder, capsys):
    options = {"seeds": 1, "base": folder / "base", "device": "cpu"}
    planned = plan(str(folder / "my.toml"), **options)
    assert list(planned.variants) == ["whole", "whole − STRM"]
    assert planned.to_dict()["seconds"] == planned.seconds * 2
    seen = []
    result = ablate(
        folder / "my.toml",
        str(folder / "out"),
        folder / "test.parquet",
        **options,
        progress=lambda *step: seen.append(step),
    )
    assert [row.name for row in result.rows] == ["whole", "whole − STRM"]
    assert (folder / "out" / "ablations.md").read_text("utf-8") == result.summary()
    assert len(result.to_dict()["rows"]) == 2
    assert seen.count(("training", 1, 1)) == 2
    assert capsys.readouterr().out == ""
