"""What Prometheus may know: counts and times, no text."""

from __future__ import annotations

import os
import re
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.5, 2.0)


class Metrics:
    """One server's figures, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"secondlook_{name}", says, labels, registry=self._registry)

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(
                f"secondlook_{name}",
                says,
                labels,
                registry=self._registry,
                multiprocess_mode="livesum",
            )

        def histogram(
            name: str, says: str, *labels: str, buckets: tuple[float, ...] = _SECONDS
        ) -> Histogram:
            return Histogram(
                f"secondlook_{name}", says, labels, registry=self._registry, buckets=buckets
            )

        self.requests = counter("requests", "Requests answered.", "route", "status")
        self.request_seconds = histogram("request_seconds", "From head to answer.", "route")
        self.stage_seconds = histogram(
            "stage_seconds", "Time in a stage: wait, encode, score, first_look, fetch.", "stage"
        )
        self.scoring_seconds = counter(
            "scoring_seconds",
            "Seconds in which documents were encoded and scored: their rate is how busy it is.",
            "ranker",
        )
        self.queue_pairs = gauge("queue_pairs", "Documents that wait for a score.", "ranker")
        self.chunk_pairs = histogram("chunk_pairs", "Documents scored together.", buckets=_SIZES)
        self.chunk_requests = histogram(
            "chunk_requests", "Requests whose documents were scored together.", buckets=_SIZES
        )
        self.chunk_fill = histogram(
            "chunk_fill", "Share of the token budget that a chunk used.", buckets=_SHARES
        )
        self.documents = counter("documents", "Documents scored.", "ranker")
        self.vector_documents = counter(
            "vector_documents", "Documents scored from vectors or states of the index.", "ranker"
        )
        self.cascade_documents = histogram(
            "cascade_documents",
            "Candidates of a search that were scored, of more, for lack of time; by vectors.",
            "ranker",
            buckets=_SIZES,
        )
        self.truncated = counter("truncated_documents", "Documents cut short.", "ranker")
        self.partials = counter("partial_answers", "Answered before all was scored.", "ranker")
        self.refused = counter("refused", "Requests turned away.", "status")
        self.scoring_errors = counter("scoring_errors", "Rankers that raised.", "ranker", "error")
        self.engine_errors = counter("engine_errors", "First looks that failed.", "kind")
        self.engine_open = gauge("engine_circuit_open", "1 while the search engine is left alone.")
        self.remote_requests = counter("remote_requests", "Asked of a remote ranker.", "ranker")
        self.remote_retries = counter("remote_retries", "Asked of it again.", "ranker")
        self.remote_cached = counter("remote_cached", "Scores that were cached.", "ranker")
        self.remote_cost = counter("remote_cost", "By the price in its address.", "ranker")
        self.reloads = counter("reloads", "Rankers loaded anew.", "result")

    def text(self) -> bytes:
        """All figures in Prometheus' text format; with several workers, of all of them."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            _forget_dead_workers(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _forget_dead_workers(folder: Path) -> None:
    """What waited in a worker that crashed waits no longer, though its file still says so."""
    for path in folder.glob("gauge_live*.db"):
        found = re.search(r"_(\d+)\.db$", path.name)
        if found is not None and not _runs(int(found[1])):
            multiprocess.mark_process_dead(int(found[1]), str(folder))  # type: ignore[no-untyped-call]


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
