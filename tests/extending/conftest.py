"""Packages of third parties, installed for one test."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from secondlook.analyze import ANALYZERS
from secondlook.data.clicks import CLICK_FORMATS
from secondlook.remote.client_shapes import CLIENT_SHAPES
from secondlook.retrieve.engines import ENGINES
from secondlook.serve.api_shapes import API_SHAPES
from secondlook.train.losses import LOSSES

PACKAGES = Path(__file__).parent / "packages"


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """What a test adds is gone after it."""
    for registry in (ANALYZERS, API_SHAPES, CLICK_FORMATS, CLIENT_SHAPES, ENGINES, LOSSES):
        monkeypatch.setattr(registry, "_added", dict(registry._added))
        monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lays a package out as pip does: its module, and its entry points beside it."""

    def laid_out(package):
        project = tomllib.loads((PACKAGES / package / "pyproject.toml").read_text())["project"]
        module = package.replace("-", "_")
        site = tmp_path / "site-packages"
        about = site / f"{module}-{project['version']}.dist-info"
        about.mkdir(parents=True)
        shutil.copy(PACKAGES / package / f"{module}.py", site)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {project['version']}\n"
        )
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {where}" for name, where in entries.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(site)
        return site

    return laid_out
