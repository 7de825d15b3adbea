"""What is installed is what was resolved, and nothing is named by a tag that means "the newest"."""

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCKED = ROOT / "requirements"
CHECK = importlib.util.spec_from_file_location("check", ROOT / "release" / "check.py")


def names(requirements):
    return {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", one)[0]).lower() for one in requirements}


def pinned(file):
    """Name → the lines that pin it, one for each platform or Python that differs."""
    text = (LOCKED / file).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert all(re.match(r"[\w.-]+(\[.*\])?==", line) for line in lines)
    return {name: [line for line in lines if names([line]) == {name}] for name in names(lines)}


def test_every_library_has_a_version_that_it_must_stay_below():
    wanted = [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    assert [one for one in wanted if "<" not in one and not one.startswith("secondlook[")] == []


@pytest.mark.parametrize("engine", ["openvino", "onnx"])
def test_the_image_installs_every_file_by_its_hash(engine):
    lock = pinned(f"{engine}.txt")
    wanted = [*PROJECT["dependencies"], *EXTRAS["serve"], *EXTRAS["opensearch"], *EXTRAS[engine]]
    assert names(wanted) <= lock.keys()
    assert "torch" not in lock
    for lines in (*lock.values(), *pinned("build.txt").values()):
        assert all("--hash=sha256:" in line for line in lines)


def test_the_dockerfile_installs_nothing_without_hashes():
    steps = re.findall(
        r"^RUN .*pip (?:install|wheel) (.*)$", (ROOT / "Dockerfile").read_text(), re.M
    )
    assert len(steps) == 4
    assert all("--require-hashes" in step or "--no-deps" in step for step in steps)
    assert "!requirements" in (ROOT / ".dockerignore").read_text().split()


def test_ci_installs_the_versions_that_were_resolved():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    wanted = [one for group in groups.values() for one in group if isinstance(one, str)]
    wanted += [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    assert names(wanted) - {"secondlook"} <= pinned("constraints.txt").keys()
    assert "--constraint requirements/constraints.txt" in (ROOT / ".ci/run").read_text()


def test_no_manifest_asks_for_whatever_is_newest():
    manifests = [ROOT / "Dockerfile", *(ROOT / "examples").rglob("*.yaml")]
    found = [path for path in manifests if re.search(r":latest\b", path.read_text("utf-8"))]
    assert found == []


def test_the_workflows_name_actions_by_commit_and_say_their_version():
    lines = [
        line.strip()
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text("utf-8").splitlines()
        if "uses:" in line
    ]
    assert len(lines) > 15
    pinned_line = r"(- )?uses: [\w.-]+/[\w.-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
    assert [line for line in lines if not re.fullmatch(pinned_line, line)] == []


def test_no_file_of_requirements_names_where_packages_come_from():
    for path in LOCKED.iterdir():
        assert not re.search(r"://|--(extra-)?index-url|--find-links", path.read_text("utf-8"))


def test_a_release_is_refused_while_an_action_or_image_is_named_by_tag(tmp_path, monkeypatch):
    check = importlib.util.module_from_spec(CHECK)
    CHECK.loader.exec_module(check)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (tmp_path / "examples").mkdir()
    digest = "sha256:" + "0" * 64
    (tmp_path / "Dockerfile").write_text(f"FROM base:1@{digest} AS build\nFROM base:1\n")
    (tmp_path / "examples" / "a.yaml").write_text("image: secondlook:1.0\n  image: engine:3\n")
    (workflows / "w.yml").write_text(f"  image:\n  - uses: a/b@v4\n  - uses: a/c@{'0' * 40}\n")
    assert check.named_by_tag() == [
        "a/b@v4 (.github/workflows/w.yml)",
        "base:1 (Dockerfile)",
        "engine:3 (examples/a.yaml)",
    ]
    monkeypatch.setattr("sys.argv", ["check.py", str(tmp_path / "dist"), "--pinned"])
    with pytest.raises(SystemExit, match="write the digest instead of the tag"):
        check.main()


def test_scripts_are_sound():
    for script in (".ci/run", "requirements/lock", "tests/opensearch/install-full"):
        subprocess.run(["bash", "-n", ROOT / script], check=True)
