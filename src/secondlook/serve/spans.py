"""OpenTelemetry spans, where its API is installed; they go wherever the process is set up to send.

`opentelemetry-instrument secondlook serve …` sets a process up from the OTEL_ variables. Without
that the API's spans are empty and cost nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

try:
    from opentelemetry import propagate, trace
except ImportError:
    trace = None  # type: ignore[assignment]


def span(name: str, parent: Mapping[str, str] | None = None) -> AbstractContextManager[object]:
    """A span; `parent` are the headers of a request whose sender may have begun a trace."""
    if trace is None:
        return nullcontext()
    context = propagate.extract(parent) if parent is not None else None
    return trace.get_tracer("secondlook").start_as_current_span(name, context)
