"""Logs as lines of JSON: what happened, when, to which request; never what was asked."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO

from secondlook.errors import RemoteProblem, SecondlookError

LOGGER = logging.getLogger("secondlook.serve")

_SPARING = 5.0
"""Seconds between two lines of the same event, where an attacker could cause thousands."""

_last: dict[str, tuple[float, int]] = {}
"""Event → when it was last logged, and how often it happened since."""


class JsonLines(logging.Formatter):
    """One JSON object per line; `extra={"facts": {...}}` are its own keys."""

    def format(self, record: logging.LogRecord) -> str:
        """The record, its traceback included."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def log_to(stream: TextIO = sys.stderr) -> None:
    """Send this server's log, and its web server's, to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    own = ("secondlook.serve", "secondlook.retrieve", "secondlook.remote")
    for name in (*own, "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def note(event: str, **facts: Any) -> None:  # noqa: ANN401 - JSON
    """One line of the log."""
    LOGGER.info(event, extra={"facts": facts})


def reason_of(error: SecondlookError) -> str:
    """Its message, without what a remote service said, which may repeat the texts of a request."""
    return error.reason if isinstance(error, RemoteProblem) else str(error)


def note_sparingly(event: str, reason: str) -> None:
    """A line at most every few seconds for one event and reason, with how often it happened."""
    key, now = f"{event}: {reason}", time.monotonic()
    then, times = _last.get(key, (now - _SPARING, 0))
    if now - then < _SPARING:
        _last[key] = (then, times + 1)
        return
    _last[key] = (now, 0)
    LOGGER.warning(event, extra={"facts": {"reason": reason, "times": times + 1}})
