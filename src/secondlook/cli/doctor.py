"""`secondlook doctor`: check the installation and the machine."""

import json
import os
import platform
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import secondlook
from secondlook.errors import SecondlookError

CPU_FEATURES = {
    "AVX2": ("avx2",),
    "AVX512": ("avx512f", "avx512bw", "avx512vl"),
    "AVX512-VNNI": ("avx512_vnni",),
    "AVX512-BF16": ("avx512_bf16",),
    "AMX-INT8": ("amx_tile", "amx_int8"),
    "AMX-BF16": ("amx_tile", "amx_bf16"),
}
"""What makes a re-ranker fast on a CPU, and the flags by which Linux knows it."""

CORE = "core"


def doctor(
    url: Annotated[
        str | None,
        typer.Option(help="OpenSearch or Elasticsearch cluster to check.", metavar="URL"),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Index folder to verify; reads all of it.", metavar="INDEX"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation: versions, CPU, memory, accelerators, extras and engines.

    For each missing package, the command that installs it is shown.

    [bold]Examples[/bold]

      secondlook doctor --url http://localhost:9200
      secondlook doctor --index my.index
    """
    from sqlite3 import sqlite_version

    packages = installed(requirements())
    cgroup = Path("/sys/fs/cgroup")
    report = {
        "secondlook": secondlook.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "sqlite": sqlite_version,
        "cpu": processor(_text(Path("/proc/cpuinfo"))),
        "cores": cores(cgroup),
        "memory": memory(cgroup),
        "accelerators": accelerators() if packages.get("torch", {}).get("torch") else None,
        "packages": packages,
        "install": {
            part: _how_to_get(part) for part in packages if None in packages[part].values()
        },
        "engines": engines(packages, url),
        "index": verified(index) if index else None,
    }
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        _print(report)


def requirements() -> list[str]:
    """What secondlook asks for, as package metadata writes it: `name>=1; extra == 'onnx'`."""
    import tomllib
    from importlib import metadata

    try:
        return metadata.requires("secondlook") or []
    except metadata.PackageNotFoundError:  # run from a checkout
        checkout = _text(Path(secondlook.__file__).parents[2] / "pyproject.toml")
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

    found: dict[str, dict[str, str | None]] = {CORE: {}}
    for requirement in wanted:
        extra = re.search(r"extra == ['\"](.+?)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name is None or name[0] == "secondlook":  # `all` only names the others
            continue
        try:
            version = metadata.version(name[0])
        except metadata.PackageNotFoundError:
            version = None
        found.setdefault(extra[1] if extra else CORE, {})[name[0]] = version
    return found


def processor(cpuinfo: str) -> dict[str, Any]:
    """Name and features by the text of /proc/cpuinfo; features are None where there is no such."""
    fields = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in reversed(cpuinfo.splitlines()))
    }
    listed = fields.get("flags", fields.get("Features"))  # x86; ARM
    flags = None if listed is None else set(listed.split())
    return {
        "name": fields.get("model name") or platform.processor() or "unknown",
        "features": {
            feature: None if flags is None else flags.issuperset(needed)
            for feature, needed in CPU_FEATURES.items()
        },
    }


def cores(cgroup: Path) -> dict[str, float | None]:
    """Cores of the machine, and how many of them this process may use, containers considered."""
    from secondlook.score.cores import usable_cores

    return {"total": os.cpu_count(), "usable": usable_cores(cgroup)}


def memory(cgroup: Path) -> dict[str, int | None]:
    """Bytes of the machine, and how many of them this process may use."""
    try:
        total: int | None = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        total = None
    limit = (
        _text(cgroup / "memory.max") or _text(cgroup / "memory" / "memory.limit_in_bytes")
    ).strip()
    usable = min(total, int(limit)) if limit.isdigit() and total is not None else total
    return {"total": total, "usable": usable}


def accelerators() -> list[str]:
    """What torch can compute on beside the CPU; takes the seconds that importing torch takes."""
    try:
        torch = import_module("torch")
    except (ImportError, OSError) as error:
        return [f"torch is installed but cannot be loaded: {error}"]
    found = [
        f"cuda:{index} {torch.cuda.get_device_name(index)}"
        for index in range(torch.cuda.device_count())
    ]
    return [*found, "mps"] if torch.backends.mps.is_available() else found


def engines(
    packages: Mapping[str, Mapping[str, str | None]], url: str | None
) -> dict[str, dict[str, Any]]:
    """Engine → whether it can be used, and what there is to say of it."""
    bm25s = packages[CORE].get("bm25s")
    client = packages.get("opensearch", {}).get("opensearch-py")
    reachable, cluster = _cluster(url) if url else (True, "name a cluster with --url to check it")
    return {
        "bm25s": {"usable": bm25s is not None, "note": "in process"},
        "opensearch": {
            "usable": client is not None and reachable,
            "note": cluster if client else "its client is not installed",
        },
    }


def verified(folder: Path) -> str:
    """What an index folder holds; raises where it is damaged or was changed."""
    from secondlook.retrieve import open_index

    index = open_index(folder)
    index.verify()
    return f"{folder} is as it was made: {index.card.documents:,} documents, {index.card.engine}"


def _cluster(url: str) -> tuple[bool, str]:
    """Whether a search engine answers there, asked as the engine asks, and what was heard."""
    from secondlook.retrieve.access import Access, Route, plain_urls
    from secondlook.retrieve.cluster import Cluster

    try:
        access = Access.from_environment(os.environ)
        cluster = Cluster.connect(Route.named_by_user(access, plain_urls([url])))
        version = cluster.request("GET", "/", needs=("version",), within=5)["version"]
        return True, f"{url} is {version.get('distribution', 'elasticsearch')} {version['number']}"
    except SecondlookError as problem:
        return False, str(problem)
    except (KeyError, TypeError, AttributeError):
        return False, f"{url} answers, but is not a search engine"


def _text(path: Path) -> str:
    """What the file says; nothing where there is no such file, as on macOS and Windows."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _how_to_get(part: str) -> str:
    return "pip install secondlook" if part == CORE else f"pip install 'secondlook[{part}]'"


def _print(report: Mapping[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    for name, fact in _facts(report).items():
        facts.add_row(Text(name, style="bold"), Text(fact))
    parts = Table("extra", "packages", box=box.SIMPLE_HEAD)
    parts.add_column("state", no_wrap=True)
    for part, versions in report["packages"].items():
        listed = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
        parts.add_row(part, Text(listed), Text(report["install"].get(part, "ready")))
    console = Console()
    console.print(facts)
    console.print(parts)


def _facts(report: Mapping[str, Any]) -> dict[str, str]:
    says = {True: "yes", False: "no", None: "unknown"}
    features = report["cpu"]["features"].items()
    devices = report["accelerators"]
    computes_on = "unknown without torch" if devices is None else ", ".join(devices) or "none"
    return {
        "secondlook": f"{report['secondlook']} on Python {report['python']}",
        "platform": report["platform"],
        "SQLite": report["sqlite"],
        "CPU": report["cpu"]["name"],
        "": ", ".join(f"{feature} {says[there]}" for feature, there in features),
        "cores": _share(report["cores"]),
        "memory": _share(report["memory"], 2**30, " GiB"),
        "accelerators": computes_on,
        **{
            name: f"{'usable' if engine['usable'] else 'not usable'}; {engine['note']}"
            for name, engine in report["engines"].items()
        },
        **({"index": report["index"]} if report["index"] else {}),
    }


def _share(amount: Mapping[str, float | None], unit: int = 1, name: str = "") -> str:
    usable, total = (
        "unknown" if number is None else f"{number / unit:.3g}{name}"
        for number in (amount["usable"], amount["total"])
    )
    return usable if usable == total else f"{usable} of {total}"
