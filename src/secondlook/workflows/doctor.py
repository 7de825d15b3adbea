"""Check the installation and the machine."""

from __future__ import annotations

import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CORE = "core"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is installed, and what the machine has."""

    secondlook: str
    python: str
    platform: str
    sqlite: str
    cpu: Mapping[str, Any]
    """Name, and features: whether there; None where unknown."""
    cores: Mapping[str, float | None]
    """Total and usable."""
    memory: Mapping[str, int | None]
    """Bytes, total and usable."""
    accelerators: list[str] | None
    """None where torch, which knows them, is not installed."""
    packages: Mapping[str, Mapping[str, str | None]]
    """Extra (or `core`) → package → installed version, or None."""
    install: Mapping[str, str]
    """Extra → the command that installs what is missing of it."""
    engines: Mapping[str, Mapping[str, Any]]
    """First-stage engine → whether it can be used, and a note."""
    index: str | None
    """What a verified index folder holds."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def facts(self) -> dict[str, str]:
        """All but the packages, in words."""
        says = {True: "yes", False: "no", None: "unknown"}
        features = self.cpu["features"].items()
        devices = self.accelerators
        computes_on = "unknown without torch" if devices is None else ", ".join(devices) or "none"
        return {
            "secondlook": f"{self.secondlook} on Python {self.python}",
            "platform": self.platform,
            "SQLite": self.sqlite,
            "CPU": self.cpu["name"],
            "": ", ".join(f"{feature} {says[there]}" for feature, there in features),
            "cores": _share(self.cores),
            "memory": _share(self.memory, 2**30, " GiB"),
            "accelerators": computes_on,
            **{
                name: f"{'usable' if engine['usable'] else 'not usable'}; {engine['note']}"
                for name, engine in self.engines.items()
            },
            **({"index": self.index} if self.index else {}),
        }

    def summary(self) -> str:
        """A line for each fact, and for each extra that lacks a package."""
        lines = [f"{name}: {fact}" if name else fact for name, fact in self.facts().items()]
        return "\n".join([*lines, *(f"{part}: {how}" for part, how in self.install.items())])


def doctor(*, url: str | None = None, index: str | Path | None = None) -> Diagnosis:
    """Check versions, CPU, memory, accelerators, extras and engines.

    `url` is an OpenSearch or Elasticsearch cluster to check; `index` an index folder to verify,
    which raises IndexProblem if it is damaged.
    """
    from sqlite3 import sqlite_version

    import secondlook
    from secondlook.scale import machine
    from secondlook.score.cores import CGROUP

    packages = installed(requirements())
    return Diagnosis(
        secondlook=secondlook.__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        sqlite=sqlite_version,
        cpu=machine.processor(machine.cpuinfo()),
        cores=machine.cores(CGROUP),
        memory=machine.memory(CGROUP),
        accelerators=machine.accelerators() if packages.get("torch", {}).get("torch") else None,
        packages=packages,
        install={part: _how_to_get(part) for part in packages if None in packages[part].values()},
        engines=engines(url),
        index=verified(Path(index)) if index else None,
    )


def requirements() -> list[str]:
    """What secondlook asks for, as package metadata writes it: `name>=1; extra == 'onnx'`."""
    import tomllib
    from importlib import metadata

    import secondlook
    from secondlook.scale.machine import text_of

    try:
        return metadata.requires("secondlook") or []
    except metadata.PackageNotFoundError:  # run from a checkout
        checkout = text_of(Path(secondlook.__file__).parents[2] / "pyproject.toml")
        project = tomllib.loads(checkout).get("project", {})
        wanted: list[str] = project.get("dependencies", [])
        return wanted + [
            f"{requirement}; extra == '{extra}'"
            for extra, more in project.get("optional-dependencies", {}).items()
            for requirement in more
        ]


def installed(wanted: list[str]) -> dict[str, dict[str, str | None]]:
    """Extra (or `core`) → package → the version that is here; None where there is none."""
    from importlib import metadata

    versions: dict[str, dict[str, str | None]] = {CORE: {}}
    for requirement in wanted:
        extra = re.search(r"extra == ['\"](.+?)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name is None or name[0] == "secondlook":  # `all` only names the others
            continue
        try:
            version = metadata.version(name[0])
        except metadata.PackageNotFoundError:
            version = None
        versions.setdefault(extra[1] if extra else CORE, {})[name[0]] = version
    return versions


def engines(url: str | None) -> dict[str, dict[str, Any]]:
    """Engine → whether it can be used, and what there is to say of it."""
    from secondlook.errors import SecondlookError
    from secondlook.retrieve.engines import ENGINES

    states: dict[str, dict[str, Any]] = {}
    for name in ENGINES.names():
        try:
            states[name] = ENGINES[name].check(url)._asdict()
        except SecondlookError as problem:  # of a package that adds one
            states[name] = {"usable": False, "note": str(problem)}
    return states


def verified(folder: Path) -> str:
    """What an index folder holds; raises where it is damaged or was changed.

    All of it is read, vectors and the ranker that made them included. Of older indexes, whose files
    have no digests, it says which of them could not be compared.
    """
    from secondlook.retrieve.bm25 import MATRIX
    from secondlook.retrieve.digests import without_digests
    from secondlook.retrieve.hybrid import open_verified
    from secondlook.retrieve.vector_files import FOLDER

    card = open_verified(folder).card
    held = f"{card.documents:,} documents, {card.engine}"
    older = without_digests(folder, (MATRIX, FOLDER))
    if not older:
        return f"{folder} is as it was made: {held}"
    return (
        f"{folder} holds {held}, and nothing wrong was found. The content of "
        f"{' and '.join(f'{name}/' for name in older)} was not compared with what was written: "
        "it was made before digests were kept"
    )


def _how_to_get(part: str) -> str:
    return "pip install secondlook" if part == CORE else f"pip install 'secondlook[{part}]'"


def _share(amount: Mapping[str, float | None], unit: int = 1, name: str = "") -> str:
    usable, total = (
        "unknown" if number is None else f"{number / unit:.3g}{name}"
        for number in (amount["usable"], amount["total"])
    )
    return usable if usable == total else f"{usable} of {total}"
