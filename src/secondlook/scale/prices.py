"""What machines are, and what they cost: a TOML file that the user keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from secondlook.errors import MalformedInput
from secondlook.recipe import Settings, read_toml

if TYPE_CHECKING:
    from pathlib import Path

HOURS_A_MONTH = 730.0


class Machine(Settings):
    """A machine that can be had."""

    cores: float = Field(gt=0)
    memory_gb: float = Field(gt=0)
    hourly: float = Field(ge=0)
    speed: float = Field(1.0, gt=0)
    """One of its cores against one of the bench's. A GPU counts as one core, by its measured
    pairs/s over the bench's per core."""


class Prices(Settings):
    """Machines by name, and what else is paid for."""

    currency: str = "USD"
    dated: str
    """When these were the prices."""
    storage_gb_month: float = Field(0.0, ge=0)
    core_efficiency: float = Field(0.85, gt=0, le=1)
    """What is left of a core's speed each time the cores of the bench are doubled."""
    machines: dict[str, Machine] = Field(min_length=1)


def read_prices(path: Path) -> Prices:
    """What the file says; unknown keys are refused."""
    if not path.exists():
        raise MalformedInput(
            path, None, "no such file; examples/prices.toml shows how one is written"
        )
    return read_toml(path, Prices)
