"""`secondlook tune`, killed once in the middle of each stage and called again each time.

    python benchmarks/tune_killed.py DATA -o OUT --base e5-small --minutes 13 --whole
    python benchmarks/tune_killed.py DATA -o OUT2 --base e5-small --minutes 13 --like OUT

With `--whole` nothing is killed. The seconds of each stage are noted in OUT.seconds.json; the
middle is half of what the stage took in `--like`. Its plan and recipe are taken, too, which else
depend on how fast the machine is just then; in the end all runs and weights are compared, byte for
byte. Give more --minutes than the whole takes: a training that its deadline ends is not repeatable.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from shutil import copyfile

STAGE = re.compile(r"^\[\d+/\d+\] (.+)$")
USUAL = {
    "train": 600.0,
    "load and export the base model": 15.0,
    "export the trained model": 15.0,
    "re-rank the validation queries": 60.0,
    "re-rank the test queries": 200.0,
}
"""Seconds of the long stages, where no other run tells; the others take about four."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", type=Path)
    arguments.add_argument("-o", "--output", type=Path, required=True)
    arguments.add_argument("--whole", action="store_true", help="kill nothing")
    arguments.add_argument("--like", type=Path, help="the output of another call of this")
    given, others = arguments.parse_known_args()
    usual = json.loads(noted(given.like).read_text()) if given.like else USUAL
    command = [sys.executable, "-m", "secondlook", "tune", str(given.data), "-o", str(given.output)]
    seconds: dict[str, float] = {}
    killed: set[str] = set()
    stages = given.output / "stages"
    if given.like:
        stages.mkdir(parents=True)
        for plan in ("plan.json", "recipe.toml"):
            if (given.like / "stages" / plan).is_file():
                copyfile(given.like / "stages" / plan, stages / plan)
    began, calls = time.monotonic(), 0
    while True:
        calls += 1
        code = call([*command, *others], seconds, None if given.whole else killed, usual)
        if code != -signal.SIGKILL:
            break
    noted(given.output).write_text(json.dumps(seconds, indent=2) + "\n")
    minutes = (time.monotonic() - began) / 60
    print(
        f"exit code {code} after {calls} calls, {minutes:.1f} minutes; killed in {sorted(killed)}"
    )
    if given.like:
        for path in sorted(stages.rglob("*")):
            if path.name.endswith((".trec.gz", ".safetensors")) and "trained.work" not in str(path):
                other = given.like / "stages" / path.relative_to(stages)
                same = other.read_bytes() == path.read_bytes()
                print(f"{path.relative_to(stages)}: {'the same' if same else 'ANOTHER'}")
    sys.exit(code)


def noted(output: Path) -> Path:
    """Where the seconds of its stages are."""
    return output.with_name(output.name + ".seconds.json")


def call(
    command: list[str], seconds: dict[str, float], killed: set[str] | None, usual: dict[str, float]
) -> int:
    """One call, to its end or until it is killed in a stage that was never killed before."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    stage, began = "start", time.monotonic()
    timer: threading.Timer | None = None
    for line in process.stdout:
        print(line, end="", flush=True)
        if not (found := STAGE.match(line)):
            continue
        if timer:
            timer.cancel()
        seconds[stage] = max(seconds.get(stage, 0.0), time.monotonic() - began)
        stage, began = found[1], time.monotonic()
        if killed is not None and stage not in killed:
            timer = threading.Timer(usual.get(stage, 4.0) / 2, kill, [process, stage, killed])
            timer.start()
    if timer:
        timer.cancel()
    seconds[stage] = max(seconds.get(stage, 0.0), time.monotonic() - began)
    return process.wait()


def kill(process: subprocess.Popen[str], stage: str, killed: set[str]) -> None:
    """It and whatever it started."""
    killed.add(stage)
    print(f"*** killed in: {stage}", flush=True)
    os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
