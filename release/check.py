"""Build wheel and sdist and check them as a stranger would meet them.

    python release/check.py dist
    python release/check.py dist --each-extra
    python release/check.py dist --pinned

The wheel is built from the sdist; contents, metadata and size are looked at; then the wheel is
installed into a fresh environment (`--extra serve` installs an extra too), where pip has to find
nothing broken; with --each-extra every extra gets such an environment of its own. Beside them go
`sbom.json` (CycloneDX) and `report.json`. Known vulnerabilities are asked for where the database
can be reached, and the report says so where it cannot. The report lists the actions and images that
are named by a tag, which can be moved; with --pinned, as at a release, there must be none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "secondlook"
IN_SDIST = ("pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "NOTICE")
LICENSES = ("LICENSE", "NOTICE", "THIRD_PARTY_NOTICES.md")
MOST_WHEEL_BYTES = 1_000_000
MOST_IMPORT_SECONDS = 1.0
_NAMED = re.compile(r"^\s*-?\s*(?:uses:|image:|FROM)[ \t]+(\S+)", re.MULTILINE)
_DIGEST = re.compile(r"@(?:sha256:[0-9a-f]{64}|[0-9a-f]{40})$")


class Unfit(Exception):
    """Something a release must not go out with."""


def main() -> None:
    """Check, and end with 1 where the package is unfit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("dist", type=Path, help="an empty or new folder")
    parser.add_argument("--extra", action="append", default=[], help="install this extra too")
    parser.add_argument("--each-extra", action="store_true", help="try each of them alone, too")
    parser.add_argument("--pinned", action="store_true", help="refuse actions and images by tag")
    asked = parser.parse_args()
    asked.dist = asked.dist.resolve()
    try:
        if asked.pinned and (tags := named_by_tag()):
            raise Unfit(f"write the digest instead of the tag: {', '.join(tags)}")
        report = check(asked.dist, asked.extra, each=asked.each_extra)
    except Unfit as problem:
        sys.exit(f"unfit: {problem}")
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


def check(dist: Path, extras: list[str], *, each: bool = False) -> dict[str, Any]:
    """What was found; raises Unfit."""
    if dist.exists() and any(dist.iterdir()):
        raise Unfit(f"{dist} is not empty; name a new folder")
    run(sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT))
    wheel, sdist = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    look_into_wheel(wheel)
    look_into_sdist(sdist)
    with tempfile.TemporaryDirectory() as folder:
        python = fresh_environment(Path(folder), wheel, extras)
        report: dict[str, Any] = {
            "wheel bytes": wheel.stat().st_size,
            "sdist bytes": sdist.stat().st_size,
            "environment bytes": size_of(Path(folder)),
            "import seconds": import_seconds(python),
            "extras": extras,
            "named by tag": named_by_tag(),
            "audit": audit(python),
        }
        run(sys.executable, "-m", "cyclonedx_py", "environment", str(python),
            "--output-file", str(dist / "sbom.json"))  # fmt: skip
    if each:
        report["each extra"] = {extra: alone(wheel, extra) for extra in all_extras()}
    (dist / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if report["import seconds"] > MOST_IMPORT_SECONDS:
        raise Unfit(f"`import secondlook` takes {report['import seconds']} s")
    return report


def named_by_tag() -> list[str]:
    """Actions, base images and images of the examples that are not named by what they hold."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    images = [ROOT / "Dockerfile", *sorted((ROOT / "examples").rglob("*.yaml"))]
    named = [
        (name, path.relative_to(ROOT).as_posix())
        for path in (*workflows, *images)
        for name in _NAMED.findall(path.read_text(encoding="utf-8"))
    ]
    tags = [
        f"{name} ({path})"
        for name, path in named
        if not _DIGEST.search(name) and name.partition(":")[0] != "secondlook"
    ]
    return list(dict.fromkeys(tags))


def look_into_wheel(wheel: Path) -> None:
    """All of the package, its licences, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    if names - about != wanted:
        raise Unfit(f"the wheel and src/ differ in {sorted((names - about) ^ wanted)}")
    lacking = [one for one in LICENSES if not any(n.endswith(f"/licenses/{one}") for n in about)]
    if lacking:
        raise Unfit(f"the wheel lacks {lacking}")
    if wheel.stat().st_size > MOST_WHEEL_BYTES:
        raise Unfit(f"the wheel has {wheel.stat().st_size:,} bytes; what made it grow?")


def look_into_sdist(sdist: Path) -> None:
    """What is needed to build, read and cite it; no test data."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    lacking = [one for one in (*IN_SDIST, "recipes/cpu.toml", "mkdocs.yml") if one not in names]
    if lacking:
        raise Unfit(f"the sdist lacks {lacking}")
    stray = [name for name in names if name.startswith(("tests/", "examples/", "site/", "dist/"))]
    if stray:
        raise Unfit(f"the sdist holds {stray[:5]}")


def fresh_environment(folder: Path, wheel: Path, extras: list[str]) -> Path:
    """Its Python, with the wheel installed and nothing broken."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    what = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what)
    run(str(python), "-m", "pip", "check")
    run(str(python), "-m", "secondlook", "--help")
    run(str(python), "-m", "secondlook", "doctor")
    return python


def alone(wheel: Path, extra: str) -> dict[str, Any]:
    """An environment with this extra and no other."""
    with tempfile.TemporaryDirectory() as folder:
        python = fresh_environment(Path(folder), wheel, [extra])
        found = {
            "environment bytes": size_of(Path(folder)),
            "import seconds": import_seconds(python),
        }
    sys.stderr.write(f"{extra}: {found}\n")
    return found


def all_extras() -> list[str]:
    """Their names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["optional-dependencies"])


def import_seconds(python: Path) -> float:
    """The best of three, in new processes: a busy machine only ever adds."""
    code = "import time; t = time.perf_counter(); import secondlook; print(time.perf_counter() - t)"
    return round(min(float(run(str(python), "-c", code).stdout) for _ in range(3)), 3)


def size_of(folder: Path) -> int:
    """Of all files, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def audit(python: Path) -> str:
    """Whether a library has a known vulnerability; raises Unfit where one has."""
    where = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    asked = run(
        sys.executable, "-m", "pip_audit", "--format", "json", "--path", where.stdout.strip(),
        may_fail=True,
    )  # fmt: skip
    return verdict(asked.stdout)


def verdict(answer: str) -> str:
    """What pip-audit found. A library it did not find in its database was not looked at."""
    try:
        libraries = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):  # it printed an error instead
        libraries = []
    looked_at = [one for one in libraries if "skip_reason" not in one]
    found = [one for one in looked_at if one["vulns"]]
    if found:
        raise Unfit(f"known vulnerabilities: {json.dumps(found)}")
    if not looked_at:
        return "not done: the database of vulnerabilities was not reached"
    return f"no known vulnerability in the {len(looked_at)} of {len(libraries)} libraries looked up"


def run(*command: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
    """Run it away from the sources, so that only what is installed can be imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - the commands are all above
        command,
        cwd=tempfile.gettempdir(),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not may_fail:
        raise Unfit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done


if __name__ == "__main__":
    main()
