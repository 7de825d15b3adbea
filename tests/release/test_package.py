"""What a release is made of is complete, and the package is fit for strangers."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import secondlook

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_library_that_is_installed_stands_in_the_notices_with_a_licence():
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.match(r"[\w.-]+", one)[0] for one in wanted} - {"secondlook"}
    notices = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (\S+) \| \S.* \| \S.* \|$", notices, re.MULTILINE)) - {"library"}
    assert listed == names


def test_the_citation_names_the_version_that_is_there():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {secondlook.__version__}\n" in citation


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ .*$", text, re.MULTILINE)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert headings[:2] == ["# Changelog", "## [Unreleased]"]
    assert {one[4:] for one in headings if one.startswith("### ")} <= kinds
    for release in (one for one in headings[2:] if one.startswith("## ")):
        assert re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", release)


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "release" / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_audit_that_could_look_nothing_up_does_not_pass_for_a_clean_one(check):
    skipped = {"name": "a", "skip_reason": "not found"}
    clean = {"name": "b", "version": "1", "vulns": []}
    assert check.verdict("no connection").startswith("not done")
    assert check.verdict(json.dumps({"dependencies": [skipped]})).startswith("not done")
    assert "1 of 2" in check.verdict(json.dumps({"dependencies": [skipped, clean]}))
    bad = clean | {"vulns": [{"id": "X-1"}]}
    with pytest.raises(check.Unfit, match="X-1"):
        check.verdict(json.dumps({"dependencies": [skipped, bad]}))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_wheel_and_sdist_are_whole_and_install_into_a_fresh_environment(tmp_path):
    for tool in ("build", "twine", "cyclonedx_py", "pip_audit"):
        pytest.importorskip(tool, reason="pip install --group release")
    dist = tmp_path / "dist"
    command = [sys.executable, str(ROOT / "release" / "check.py"), str(dist)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((dist / "report.json").read_text(encoding="utf-8"))
    assert report["wheel bytes"] > 100_000
    bill = json.loads((dist / "sbom.json").read_text(encoding="utf-8"))
    assert {"secondlook", "numpy", "bm25s"} <= {one["name"] for one in bill["components"]}
