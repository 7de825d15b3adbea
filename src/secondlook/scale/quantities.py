"""Amounts as people write them: 150ms, 1e9, 2.5k, 64GB."""

from __future__ import annotations

import re
from math import isclose

from secondlook.errors import WrongArgument

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_WHOLE = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9][0-9_]*)"  # commas group thousands, or are refused
_NUMBER = re.compile(
    rf"\s*({_WHOLE}(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+)\s*([a-zµ]*)\s*", re.IGNORECASE
)


def seconds(text: str) -> float:
    """A time with its unit: `150ms`, `2s`, `.5s`. A bare number is refused."""
    amount, unit = _split(text)
    unit = unit.replace("µ", "u")
    if unit not in _SECONDS:
        raise WrongArgument(f"{text!r} is no time; write it with its unit, as in 150ms or 2s")
    return amount * _SECONDS[unit]


def count(text: str) -> int:
    """How many: `1e9`, `8_841_823`, `8,841,823`, `2.5k`, `100M`. A broken number is refused."""
    amount = number(text)
    if not isclose(amount, round(amount)):
        raise WrongArgument(f"{text!r} is no whole number; write it as in 1e9, 8841823 or 100M")
    return round(amount)


def number(text: str) -> float:
    """How much: the same, and `2.5`. k, M, B and T are powers of a thousand."""
    amount, unit = _split(text)
    if unit not in _COUNTS:
        raise WrongArgument(f"{text!r} is no number; write it as in 1e9, 8841823 or 100M")
    return amount * _COUNTS[unit]


def _split(text: str) -> tuple[float, str]:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise WrongArgument(
            f"{text!r} is no amount; write it as in 150ms, 1e9 or 2.5M, with a point for decimals"
        )
    return float(found[1].replace(",", "").replace("_", "")), found[2].lower()
