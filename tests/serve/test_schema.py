"""The OpenAPI description is true: whatever is sent gets an answer that it describes."""

import json
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from secondlook import Document
from secondlook.serve.app import build_app
from secondlook.serve.explaining import PairExplainer
from secondlook.serve.limits import Limits
from served import TEXTS, Engine, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def app(ranker):
    engine = Engine(Document(f"d{n}", text) for n, text in enumerate(TEXTS))
    limits = Limits(documents=20, body_bytes=50_000)
    return build_app(serving(ranker, index=engine, explainer=PairExplainer(), limits=limits))


def unhurried(case):
    """A deadline that a busy machine misses gets a 504, as it should (test_explaining.py)."""
    with suppress(KeyError, TypeError, ValueError):
        if 0.1 <= float(case.headers["X-Deadline-Seconds"]) < 5:
            case.headers["X-Deadline-Seconds"] = "5"


def answered(app, cases):
    """How many generated requests got a described answer: `cases` right and as many wrong ones
    for every operation that takes a body, a few for the others."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    count = 0
    for operation in (one.ok() for one in schema.get_all_operations()):
        takes_body = operation.method == "post"
        for mode in GenerationMode if takes_body else [GenerationMode.POSITIVE]:

            @settings(
                max_examples=cases if takes_body else 3,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
                derandomize=True,
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case):
                nonlocal count
                unhurried(case)
                case.call_and_validate(checks=CHECKS)
                count += 1

            ask()
    return count


def test_generated_requests_get_described_answers(app):
    assert answered(app, 20) >= 150


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_thousand_generated_requests_get_described_answers(app):
    assert answered(app, 2000) >= 15_000


def test_every_operation_is_described_with_an_example(app):
    described = app.openapi()
    for path in ("/v2/rerank", "/v1/rerank", "/rerank", "/v1/search"):
        operation = described["paths"][path]["post"]
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        assert described["components"]["schemas"][name.rpartition("/")[2]]["examples"]
        assert {"400", "401", "413", "422", "429"} <= set(operation["responses"])
    assert "/metrics" in described["paths"]
    assert json.dumps(described)
