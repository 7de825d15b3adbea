r"""The mean of the weights of two students that began as the same one, on TREC DL.

    python benchmarks/student_mean.py STATES2/student SCORES/student/ranker --data DATA \
      --teacher ms-marco-MiniLM-L12 --work WORK -o docs/results/runs

The students are what `student_states.py` and `student.py` wrote. Measured as they measure.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path

from safetensors.torch import load_file, save_file

from secondlook.terminal.bars import Bars
from secondlook.train.start import make_start
from secondlook.workflows.export import export_for_speed
from student import measured
from two_rankers import SETS

WEIGHTS = "model.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("students", type=Path, nargs=2)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", "-o", type=Path, help="for its runs")
    given = parser.parse_args()
    rankers = {name: given.work / name for name in ("teacher", "student")}
    with redirect_stdout(sys.stderr):  # standard output is for results
        if not rankers["teacher"].exists():
            make_start(given.teacher, rankers["teacher"])
        if not rankers["student"].exists():
            average(given.students, rankers["student"])
        for ranker in rankers.values():
            export_for_speed(ranker, progress=Bars())
    for year in SETS:
        with redirect_stdout(sys.stderr):
            row = measured(given, year, rankers)
        print(json.dumps(row), flush=True)


def average(students: list[Path], output: Path) -> None:
    """All but the weights is the first one's."""
    first, second = (load_file(student / WEIGHTS) for student in students)
    half = output.with_name(f"{output.name}.half")
    left_out = shutil.ignore_patterns(WEIGHTS, "openvino", "onnx")
    shutil.copytree(students[0], half, ignore=left_out, dirs_exist_ok=True)
    mean = {name: (weight.float() + second[name].float()) / 2 for name, weight in first.items()}
    save_file(mean, half / WEIGHTS, metadata={"format": "pt"})
    half.rename(output)


if __name__ == "__main__":
    main()
