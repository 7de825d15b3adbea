"""Whether `secondlook tune` keeps to its minutes on a machine that others use.

    python benchmarks/tune_budget.py examples/quickstart -o OUT --base all-MiniLM-L6-v2 --minutes 10

So many processes as --busy says (two) compute beside it all the time. What the command prints is
passed on; in the end come the minutes it took, and the exit code is 1 if they were more than a
fifth above --minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from multiprocessing import Process

LATE = 1.2
"""The most that it may take, in shares of --minutes."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--busy", type=int, default=2)
    given, others = arguments.parse_known_args()
    loops = [Process(target=compute, daemon=True) for _ in range(given.busy)]
    for loop in loops:
        loop.start()
    command = [sys.executable, "-m", "secondlook", "tune", *others, "--minutes", str(given.minutes)]
    began = time.monotonic()
    code = subprocess.run(command, check=False).returncode
    minutes = (time.monotonic() - began) / 60
    for loop in loops:
        loop.kill()
    print(
        f"exit code {code}; {minutes:.1f} minutes of {given.minutes:g}, beside {given.busy} loops"
    )
    if code not in (0, 3):  # 3: no ranker was put in place
        sys.exit(code)
    sys.exit(minutes > LATE * given.minutes)


def compute() -> None:
    """Keep a core busy."""
    while True:
        sum(range(100_000))


if __name__ == "__main__":
    main()
