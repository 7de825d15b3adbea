"""What the parts of a recipe are worth, as a program calls it."""

import tiny
from invented import invent
from secondlook.train.groups import write_groups
from secondlook.workflows.ablate import ablate, plan

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


def test_variants_are_planned_trained_and_compared(tmp_path, capsys):
    tiny.save(tiny.encoder(), tmp_path / "base")
    (tmp_path / "my.toml").write_text(RECIPE)
    write_groups(tmp_path / "train.parquet", invent(8, seed=1), about={})
    write_groups(tmp_path / "test.parquet", invent(4, seed=2), about={})
    options = {"seeds": 1, "base": tmp_path / "base", "device": "cpu"}
    planned = plan(str(tmp_path / "my.toml"), **options)
    assert list(planned.variants) == ["whole", "whole − STRM"]
    assert planned.to_dict()["seconds"] == planned.seconds * 2
    seen = []
    result = ablate(
        tmp_path / "my.toml",
        str(tmp_path / "out"),
        tmp_path / "test.parquet",
        **options,
        progress=lambda *step: seen.append(step),
    )
    assert [row.name for row in result.rows] == ["whole", "whole − STRM"]
    assert (tmp_path / "out" / "ablations.md").read_text("utf-8") == result.summary()
    assert len(result.to_dict()["rows"]) == 2
    assert seen.count(("training", 1, 1)) == 2
    assert capsys.readouterr().out == ""
