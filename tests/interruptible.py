"""Verbs in processes of their own that can be killed; what they import is loaded once for all."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PRELOADED = [
    "bm25s",
    "openvino",
    "pyarrow.parquet",
    "secondlook.cli",
    "secondlook.score.ranker",
    "secondlook.train.run",
    "transformers",
]


def start(folder: Path, arguments: list[str]) -> multiprocessing.process.BaseProcess:
    """Start a verb in `folder`; what it says goes into `said.txt` there."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(_PRELOADED)
    process = forks.Process(target=_verb, args=(str(folder), arguments))
    process.start()
    return process


def first_word(process: multiprocessing.process.BaseProcess, said: Path) -> float | None:
    """Wait for the end; seconds to the first line, None where there was none before the end."""
    began, first = time.monotonic(), None
    while process.is_alive():
        if first is None and said.exists() and said.stat().st_size:
            first = time.monotonic() - began
        process.join(0.02)
    return first


def _verb(folder: str, arguments: list[str]) -> None:
    os.chdir(folder)
    said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    sys.argv = ["secondlook", *arguments]
    from secondlook.cli import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()  # as at the end of a program; a forked process skips them
