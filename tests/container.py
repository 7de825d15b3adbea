"""The Dockerfile's environment without a container engine.

Its own steps are followed in a folder instead of a file system's root: COPY copies, RUN runs. So
what the image would hold can be looked at, and run, wherever there is a Python.

    python tests/container.py FOLDER [ENGINE=onnx]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
_PLACES = re.compile(r"(?<![\w.])/(?=(source|opt)\b)")
"""Folders that the steps name, as seen from the image's root."""


@dataclass(frozen=True)
class Image:
    """What the Dockerfile says."""

    steps: tuple[tuple[str, str], ...]
    """Instruction and argument, in order."""

    @classmethod
    def read(cls, path: Path = REPOSITORY / "Dockerfile") -> Image:
        lines = [one for one in path.read_text("utf-8").splitlines() if not one.startswith("#")]
        joined = "\n".join(lines).replace("\\\n", " ").splitlines()
        return cls(tuple(tuple(one.split(maxsplit=1)) for one in joined if one.strip()))

    def all(self, instruction: str) -> list[str]:
        return [argument for name, argument in self.steps if name == instruction]

    def command(self, root: Path) -> list[str]:
        """What a container would run, before the arguments of `docker run`."""
        (entry,) = self.all("ENTRYPOINT")
        return [_PLACES.sub(f"{root}/", word) for word in json.loads(entry)]

    def build(self, root: Path, **arguments: str) -> None:
        """Follow the steps of the first stage; the second copies what they made."""
        given = dict(one.split("=") for one in self.all("ARG")) | arguments
        first_stage = self.steps[: [name for name, _ in self.steps].index("FROM", 1)]
        for name, argument in first_stage:
            if name == "COPY":
                *sources, target = argument.split()
                _copy(sources, root / target.strip("/"))
            elif name == "RUN":
                step = _PLACES.sub(f"{root}/", argument)
                step = re.sub(r"^python\b", sys.executable, step)
                environment = {**os.environ, **given}
                environment.pop("PYTHONPATH", None)  # the image has its own code only
                subprocess.run(["sh", "-ec", step], check=True, env=environment, cwd=root)


def _copy(sources: list[str], target: Path) -> None:
    for source in sources:
        path = REPOSITORY / source
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, target, dirs_exist_ok=True, ignore=ignored)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    Image.read().build(folder, **dict(one.split("=") for one in sys.argv[2:]))
    sys.stdout.write(" ".join(Image.read().command(folder)) + "\n")
