"""Importing a workflow loads nothing heavy: a program pays for what it calls."""

import pkgutil
import subprocess
import sys

from secondlook import workflows

HEAVY = {"torch", "transformers", "numpy", "pydantic", "rich", "typer", "matplotlib"}
SCRIPT = "import sys, {modules}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"


def test_no_workflow_loads_anything_heavy():
    names = [module.name for module in pkgutil.iter_modules(workflows.__path__)]
    assert "train" in names
    modules = ", ".join(f"secondlook.workflows.{name}" for name in names)
    command = [sys.executable, "-c", SCRIPT.format(modules=modules)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)
