"""What Prometheus and OpenTelemetry are told."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

from secondlook import Document
from secondlook.serve.limits import Limits
from served import QUERY, TEXTS, Engine, Watched, listening, serving


def figures(url):
    """Series → value."""
    found = re.findall(r"^(secondlook_[^ ]+) ([0-9.e+-]+)$", httpx.get(f"{url}/metrics").text, re.M)
    return {name: float(value) for name, value in found}


def test_what_was_done_is_counted(ranker):
    engine = Engine([Document("d", "the tide")])
    with listening(serving(ranker, index=engine)) as url:
        asked = {"query": QUERY, "documents": [*TEXTS, "the sea " * 500]}
        httpx.post(f"{url}/v2/rerank", json=asked)
        httpx.post(f"{url}/v2/rerank", json={})
        httpx.post(f"{url}/v1/search", json={"query": "tide"})
        httpx.get(f"{url}/nowhere/{'x' * 50}")
        told = figures(url)
    assert told['secondlook_requests_total{route="/v2/rerank",status="200"}'] == 1
    assert told['secondlook_requests_total{route="/v2/rerank",status="422"}'] == 1
    assert told['secondlook_requests_total{route="other",status="404"}'] == 1
    assert told['secondlook_documents_total{ranker="tiny"}'] == 7
    assert told['secondlook_truncated_documents_total{ranker="tiny"}'] == 1
    assert told['secondlook_queue_pairs{ranker="tiny"}'] == 0
    assert told["secondlook_chunk_pairs_sum"] == 7
    for stage in ("wait", "encode", "score"):
        assert told[f'secondlook_stage_seconds_count{{stage="{stage}"}}'] == 2
    for stage in ("first_look", "fetch"):
        assert told[f'secondlook_stage_seconds_count{{stage="{stage}"}}'] == 1


def test_partials_refusals_and_failures_are_counted(ranker):
    held = Watched(ranker, breaks_on="bogus")
    engine = Engine([Document("d", "the tide")])
    engine.down = True
    limits = Limits(deadline=0.2, queue_pairs=3)
    with listening(serving(held, index=engine, limits=limits)) as url:
        held.go.clear()
        partial = httpx.post(f"{url}/rerank", json={"query": QUERY, "texts": TEXTS})
        assert partial.headers["x-secondlook-partial"] == "true"
        assert [one["index"] for one in partial.json()] == [0, 1, 2, 3, 4]
        held.go.set()
        httpx.post(f"{url}/rerank", json={"query": QUERY, "texts": ["bogus"]})
        httpx.post(f"{url}/v1/search", json={"query": "tide"})
        told = figures(url)
    assert told['secondlook_partial_answers_total{ranker="tiny"}'] == 1
    assert told['secondlook_scoring_errors_total{error="ValueError",ranker="tiny"}'] == 1
    assert told['secondlook_engine_errors_total{kind="EngineProblem"}'] == 1


@pytest.fixture(scope="module")
def exported():
    """OpenTelemetry takes one provider per process."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def test_spans_continue_the_clients_trace(ranker, exported):
    engine = Engine([Document("d", "the tide")])
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    parent = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    with listening(serving(ranker, index=engine)) as url:
        httpx.post(f"{url}/v1/search", json={"query": "tide"}, headers=parent)
    spans = {span.name: span for span in exported.get_finished_spans()}
    assert set(spans) >= {"POST /v1/search", "first look", "second look"}
    assert {f"{span.context.trace_id:032x}" for span in spans.values()} == {trace_id}


def test_what_waited_in_a_worker_that_crashed_is_forgotten(tmp_path):
    """As prometheus_client keeps it for several workers: a file for each process."""
    waits = (
        "import os, signal\n"
        "from secondlook.serve.metrics import Metrics\n"
        "metrics = Metrics()\n"
        "metrics.queue_pairs.labels('tiny').set(284)\n"
        "metrics.requests.labels('/rerank', '200').inc(3)\n"
        "assert b'queue_pairs{ranker=\"tiny\"} 284.0' in metrics.text()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    asks = (
        "import sys\n"
        "from secondlook.serve.metrics import Metrics\n"
        "sys.stdout.write(Metrics().text().decode())\n"
    )
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    crashed = subprocess.run([sys.executable, "-c", waits], env=environment, check=False)
    assert crashed.returncode == -signal.SIGKILL
    told = subprocess.run(
        [sys.executable, "-c", asks], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert 'queue_pairs{ranker="tiny"} 284' not in told
    assert 'requests_total{route="/rerank",status="200"} 3.0' in told  # what was counted stays
