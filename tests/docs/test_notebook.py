"""The notebook holds what the tutorial says, and runs from top to bottom."""

from __future__ import annotations

import json
import re
from shutil import copytree

import pytest
from test_tutorial import BASE, ROOT, SAMPLE, steps

import secondlook as sl
from quickstart_sample import small_sample

NOTEBOOK = ROOT / SAMPLE / "quickstart.ipynb"


@pytest.fixture(scope="module")
def cells():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def code(cells):
    return "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")


def test_it_is_kept_without_what_a_run_left(cells):
    for one in cells:
        if one["cell_type"] == "code":
            assert one["outputs"] == []
            assert one["execution_count"] is None
    assert not re.search(r"/(home|root|tmp|work|Users)/", NOTEBOOK.read_text(encoding="utf-8"))


def test_it_uses_the_public_interface_alone(code):
    imports = re.findall(r"^(?:import|from) (secondlook[\w.]*)", code, re.MULTILINE)
    assert imports == ["secondlook"]
    used = set(re.findall(r"\bsl\.(\w+)", code))
    assert used
    assert used <= set(sl.__all__)


def test_it_takes_the_road_of_the_tutorial(code):
    (tuned,) = (line for line in steps() if line.startswith("secondlook tune"))
    depth = re.search(r"--depth (\d+)", tuned).group(1)
    assert f'BASE = "{BASE}"' in code
    assert BASE in tuned
    assert f"DEPTH = {depth}\n" in code
    question = re.search(r'question = "(.*)"', code).group(1)
    assert any(question in line for line in steps())


def run(sample, minilm_folder):
    """What the cells show."""
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    place = sample / BASE
    place.parent.mkdir()
    place.symlink_to(minilm_folder)
    made = nbclient.execute(
        nbformat.read(NOTEBOOK, as_version=4), cwd=sample, timeout=1800, kernel_name="python3"
    )
    return [
        output["data"]["text/plain"]
        for cell in made.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]


@pytest.mark.real
def test_it_runs_on_a_part_of_the_sample(tmp_path, minilm_folder):
    sample = tmp_path / "quickstart"
    small_sample(sample)
    whole = (ROOT / SAMPLE / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    with (sample / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.writelines(f"{line}\n" for line in whole if '"_id": "p5548"' in line)
    shown = run(sample, minilm_folder)
    assert any("8 judged queries" in table for table in shown)
    assert "raises the score by" in shown[-1]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_it_runs_from_top_to_bottom(tmp_path, minilm_folder):
    copytree(ROOT / SAMPLE, tmp_path / "quickstart")
    shown = run(tmp_path / "quickstart", minilm_folder)
    assert any("helps" in table for table in shown)
    assert "raises the score by" in shown[-1]
