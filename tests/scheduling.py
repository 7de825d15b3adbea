"""Which process runs which tests, where there are several (pytest-xdist).

The tests of a file share a process, so that its fixtures are made once; so do all files that need
a cluster, which is started once for the whole run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer

ROOT = Path(__file__).parent.parent
CLUSTER = re.compile(
    r"[(,] ?(three_nodes|secured|(secured_)?elasticsearch)[,)]|fixturevalue\(.three_nodes"
)
"""A fixture that is a cluster, as an argument of a test."""


class ByFile(LoadScopeScheduling):
    """Files one after the other, as they stand: the long ones of the command line come first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "cluster" if file in self._cluster_files else file

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._cluster_files = {
            str(path.relative_to(ROOT))
            for path in ROOT.glob("tests/*/test_*.py")
            if CLUSTER.search(path.read_text(encoding="utf-8"))
        }
