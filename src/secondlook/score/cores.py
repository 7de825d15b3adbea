"""How many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = CGROUP) -> float | None:
    """The cores this process is bound to, and no more than its container is granted.

    A container that is granted two cores of a large machine still sees all of them, and would
    start a thread for each. None where the system does not tell.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    first_version = cgroup / "cpu" / "cpu.cfs_quota_us", cgroup / "cpu" / "cpu.cfs_period_us"
    limit = (_text(cgroup / "cpu.max") or " ".join(map(_text, first_version))).split()
    if usable is not None and len(limit) == 2 and limit[0].isdigit():  # else "max", or -1
        return min(usable, int(limit[0]) / int(limit[1]))
    return usable


def threads() -> int:
    """How many threads to compute with: a core each, and no more than OMP_NUM_THREADS says.

    That is how Ray and torchrun tell a process its share of the machine.
    """
    cores = max(1, int(usable_cores() or 1))
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(cores, int(told)) if told.isdigit() and int(told) else cores


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
