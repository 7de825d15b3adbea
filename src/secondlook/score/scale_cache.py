"""Scales that were fitted before, in the user's cache: to fit one takes some two hundred scores."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from secondlook import __version__
from secondlook.data.cache import cache_folder
from secondlook.data.durable import write_at_once
from secondlook.errors import SecondlookError
from secondlook.model.settings import PlattCalibration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from secondlook.types import Pair, Scorer

_PROBES = 8
"""Pairs whose scores tell one ranker from another."""


def cached_scale(
    scorer: Scorer,
    pairs: Sequence[Pair],
    data: str,
    fit: Callable[[], PlattCalibration],
) -> PlattCalibration:
    """The scale of this scorer on these pairs, whose fingerprint is `data`; fitted at most once.

    A scorer is known by the exact scores of a few of the pairs, so other weights, settings or back
    ends have scales of their own. Where the cache cannot be read or written, the scale is fitted.
    """
    probes = scorer.score([*pairs[:: max(1, len(pairs) // _PROBES)]])
    known_by = f"{data} {__version__}"  # another release may fit otherwise
    key = sha256(probes.tobytes() + known_by.encode()).hexdigest()
    path = cache_folder() / "scales" / f"{key}.json"
    with suppress(OSError, ValueError):
        return PlattCalibration.model_validate_json(path.read_text("utf-8"))
    scale = fit()
    with suppress(OSError, SecondlookError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_at_once(path, scale.model_dump_json())
    return scale
