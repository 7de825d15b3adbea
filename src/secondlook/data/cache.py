"""Where this user's caches are: files that can be deleted at any time, and are made again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """SECONDLOOK_CACHE, or a folder of ours in the system's place for caches; it may not exist."""
    if given := environ.get("SECONDLOOK_CACHE"):
        return Path(given)
    caches = environ.get("XDG_CACHE_HOME") or environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(caches).expanduser() / "secondlook"
