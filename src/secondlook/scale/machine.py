"""What this machine has: processor, cores, memory and accelerators."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from pathlib import Path
from typing import Any

CPU_FEATURES = {
    "AVX2": ("avx2",),
    "AVX512": ("avx512f", "avx512bw", "avx512vl"),
    "AVX512-VNNI": ("avx512_vnni",),
    "AVX512-BF16": ("avx512_bf16",),
    "AMX-INT8": ("amx_tile", "amx_int8"),
    "AMX-BF16": ("amx_tile", "amx_bf16"),
}
"""What makes a re-ranker fast on a CPU, and the flags by which Linux knows it."""


def cpuinfo() -> str:
    """The text of /proc/cpuinfo; empty on a system that has none."""
    return text_of(Path("/proc/cpuinfo"))


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
        text_of(cgroup / "memory.max") or text_of(cgroup / "memory" / "memory.limit_in_bytes")
    ).strip()
    usable = min(total, int(limit)) if limit.isdigit() and total is not None else total
    return {"total": total, "usable": usable}


def accelerators() -> list[str]:
    """What torch can compute on beside the CPU; takes the seconds that importing torch takes."""
    try:
        torch = import_module("torch")
    except (ImportError, OSError) as error:
        return [f"torch is installed but cannot be loaded: {error}"]
    devices = [
        f"cuda:{index} {torch.cuda.get_device_name(index)}"
        for index in range(torch.cuda.device_count())
    ]
    return [*devices, "mps"] if torch.backends.mps.is_available() else devices


def text_of(path: Path) -> str:
    """What the file says; nothing where there is no such file, as on macOS and Windows."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
