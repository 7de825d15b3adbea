"""Infinity, a rerank server that is not ours, as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from serve_command import free_port

INSTALLED = Path(__file__).parent / "rerank_server" / ".installed"
MISSING = "no rerank server to compare with; get it with tests/rerank_server/install"


def is_installed() -> bool:
    return (INSTALLED / "script").is_file()


@contextmanager
def infinity(model: Path, log: Path, patience: float = 300):
    """The address of its server of a cross-encoder's folder, in float32 on the CPU."""
    port = free_port()
    words = [sys.executable, "-m", "infinity_emb.cli", "v2", "--model-id", str(model)]
    words += ["--engine", "torch", "--device", "cpu", "--dtype", "float32"]
    words += ["--host", "127.0.0.1", "--port", str(port)]
    environment = os.environ | {
        "PYTHONPATH": str(INSTALLED),
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "INFINITY_BETTERTRANSFORMER": "false",
        "INFINITY_MODEL_WARMUP": "false",
    }
    with log.open("w") as said:
        server = subprocess.Popen(words, stdout=said, stderr=said, env=environment)
    try:
        until = time.monotonic() + patience
        while not _answers(port):
            assert server.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < until, "the rerank server did not start in time"
            time.sleep(0.2)
        yield f"jina+http://127.0.0.1:{port}/rerank"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:
        return False
