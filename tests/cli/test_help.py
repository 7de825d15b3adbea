"""The command line answers at once: what is heavy is imported by the verb that needs it."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
HEAVY = ["torch", "transformers", "numpy", "bm25s", "ir_measures", "opensearchpy", "pydantic"]


def python(*arguments):
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize(
    "arguments",
    [["-c", "import secondlook"], ["-m", "secondlook", "--help"]],
    ids=["import", "help"],
)
def test_nothing_heavy_is_loaded(arguments):
    report = python("-X", "importtime", *arguments).stderr
    loaded = {line.split("|")[-1].strip().partition(".")[0] for line in report.splitlines()}
    assert "secondlook" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_help_names_every_verb_in_under_six_tenths_of_a_second():
    resource = pytest.importorskip("resource")

    def seconds_of_work():  # not of waiting: other processes may keep this machine busy
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = python("-m", "secondlook", "--help").stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "eval" in shown
        assert "doctor" in shown
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert median(seconds_of_work() for _ in range(5)) < 0.6
