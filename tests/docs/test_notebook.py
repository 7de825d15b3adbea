"""The notebook holds what the tutorial says, and runs from top to bottom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copytree

import pytest
from test_tutorial import BASE, ROOT, SAMPLE, steps

import secondlook as sl

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


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_it_runs_from_top_to_bottom(tmp_path, minilm_folder):
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    copytree(ROOT / SAMPLE, tmp_path / "quickstart")
    place = tmp_path / "quickstart" / BASE
    place.parent.mkdir()
    place.symlink_to(minilm_folder)
    made = nbclient.execute(
        nbformat.read(NOTEBOOK, as_version=4),
        cwd=Path(tmp_path / "quickstart"),
        timeout=1800,
        kernel_name="python3",
    )
    shown = [
        output["data"]["text/plain"]
        for one in made.cells
        if one.cell_type == "code"
        for output in one.outputs
        if output.output_type == "execute_result"
    ]
    assert any("helps" in table for table in shown)
    assert "raises the score by" in shown[-1]
