import json
import socket
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from typer.testing import CliRunner

import benched
import tiny
from command_line import in_process as run
from command_line import secondlook
from secondlook import Ranker
from secondlook.cli import app
from secondlook.scale.bench import LENGTHS, Bench, time_requests
from secondlook.serve.keys import add_key
from secondlook.terminal.problems import WRONG_OPTION, exit_code
from served import Watched, listening, serving


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(benched.bench(benched.engine(lengths=LENGTHS)).model_dump_json())
    return path


def test_a_plan_says_machines_cost_and_what_saves_most(bench, request):
    prices = request.config.rootpath / "examples" / "prices.toml"
    given = ["plan", "--qps", 20, "--candidates", 100, "--p99", "1s", "--corpus", "1e6"]
    given += ["--bench", bench, "--prices", prices]
    made = json.loads(run(*given, "--json"))
    assert made["plan"]["p99"] <= 1
    assert made["plan"]["monthly"] == pytest.approx(made["plan"]["second"]["monthly"])
    assert made["levers"][0]["saved"] >= made["levers"][-1]["saved"] > 0
    said = run(*given)
    assert "USD/month" in said
    assert "saves" in said
    assert "first stage was not measured" in said


def test_without_prices_the_machine_of_the_bench_is_counted(bench):
    given = ["plan", "--qps", "5", "--p99", "2s", "--corpus", "1M", "--bench", bench]
    said = run(*given)
    assert "this machine" in said
    assert "USD" not in said
    assert "vectors" not in said
    with_vectors = run(*given, "--vectors", "fp16", "--dimension", "100")
    assert "vectors, fp16, 100 dimensions: 0.7 GB of memory" in with_vectors
    assert ", encode " in with_vectors


def test_what_cannot_be_done_is_said_with_what_would_do(bench):
    given = ["--qps", "5", "--p99", "300ms", "--corpus", "1M", "--bench", bench]
    said = secondlook("plan", *given, fails=True)
    assert "alone take" in said
    assert "50 candidates instead of 100" in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"--p99": "0ms"}, "a p99 of '0ms' must be longer than no time"),
        ({"--corpus": "0"}, "a corpus of '0' must hold at least one passage"),
        ({"--qps": "0"}, "must be at least one query per second"),
    ],
)
def test_a_load_of_nothing_is_refused(bench, given, says):
    assert says in str(refused(bench, given))


def refused(bench, given):
    options = {"--qps": "5", "--p99": "2s", "--corpus": "1M", "--bench": bench} | given
    words = [str(word) for pair in options.items() for word in pair]
    problem = CliRunner().invoke(app, ["plan", *words]).exception
    assert exit_code(problem) == WRONG_OPTION
    return problem


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"--qps": "0.5"}, "at least one query per second"),
        ({"--qps": "2 apples"}, "is no number"),
        ({"--p99": "150%"}, "is no amount"),
        ({"--p99": "150"}, "write it with its unit"),
        ({"--corpus": "abc"}, "is no amount"),
        ({"--corpus": "1.5"}, "no whole number"),
        ({"--engine": "openvino bf61"}, "did you mean 'openvino bf16'"),
    ],
)
def test_an_option_that_cannot_be_read_ends_it_as_a_wrong_option(bench, given, says):
    assert says in str(refused(bench, given))


def test_a_bench_measures_what_a_plan_reads(tmp_path):
    tiny.save(tiny.encoder(), tmp_path / "base")
    run("warm", tmp_path / "base", "-o", tmp_path / "ranker")
    run("bench", tmp_path / "ranker", "-o", tmp_path / "bench.json")
    made = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    assert [engine.name for engine in made.engines] == ["torch fp32"]
    assert made.engine(None).pairs_per_second(32) > 0
    given = ["--qps", "1", "--candidates", "2", "--p99", "60s", "--corpus", "1k", "--length", "32"]
    assert "re-ranking, " in run("plan", *given, "--bench", tmp_path / "bench.json")


def test_a_bench_asks_a_server_what_http_adds(tmp_path, monkeypatch):
    tiny.save(tiny.encoder(), tmp_path / "base")
    run("warm", tmp_path / "base", "-o", tmp_path / "ranker")
    slow = Watched(Ranker.load(tmp_path / "ranker"), seconds_per_pair=0.001)
    key = add_key(tmp_path / "keys", "bench")
    with listening(serving(slow, keys=tmp_path / "keys")) as url:
        given = ["bench", tmp_path / "ranker", "--url", url, "-o", tmp_path / "bench.json"]
        assert "SECONDLOOK_API_KEY" in run(*given, fails=True)
        monkeypatch.setenv("SECONDLOOK_API_KEY", key)
        run(*given)
    made = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    assert made.request_seconds > 0.001
    assert made.busy_request_seconds > 20 * 0.001 / 2  # its 20 documents, two chunks at once


@contextmanager
def answering(answer):
    """A server that answers every POST so, and notes the keys that it was sent."""
    keys = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            keys.append(self.headers["authorization"])
            self.rfile.read(int(self.headers["content-length"]))
            answer(self)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", keys
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def timed(tmp_path, monkeypatch):
    """`bench` of a re-ranker and a server, of which one request is sent."""
    monkeypatch.setattr("secondlook.scale.bench._REQUESTS", 1)
    monkeypatch.setenv("SECONDLOOK_API_KEY", "secret")
    tiny.save(tiny.classifier(), tmp_path / "ranker")
    return lambda url: run("bench", tmp_path / "ranker", "--url", url, fails=True)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_bench_sends_its_key_nowhere_else(timed, code):
    def redirect(request):
        request.send_response(code)
        request.send_header("location", other)
        request.end_headers()

    with (
        answering(lambda request: request.send_error(500)) as (other, leaked),
        answering(redirect) as (url, keys),
    ):
        said = timed(url)
    assert (keys, leaked) == (["Bearer secret"], [])
    assert f"{url} redirects to '{other}'" in said
    assert "give it as --url" in said


def test_a_bench_says_what_is_wrong_with_a_server_in_one_line(timed, monkeypatch):
    with answering(lambda request: request.connection.shutdown(socket.SHUT_RDWR)) as (url, _):
        said = timed(url)
    assert "did not answer" in said
    assert "\n" not in said
    for url in ("ranker", "localhost:8000", "http://", "http://["):
        said = timed(url)
        assert f"{url!r} is not the address of a server; give --url as http" in said
    assert "did not answer" in timed("http://127.0.0.1:port")
    monkeypatch.setenv("SECONDLOOK_API_KEY", "sec\nret")
    said = timed("http://127.0.0.1:9")
    assert "SECONDLOOK_API_KEY holds no API key" in said
    assert "ret" not in said.replace("secret", "")


def test_requests_cost_what_a_server_takes_longer_than_scoring():
    now = [0.0]

    def takes(*seconds):
        left = iter(seconds)

        def work():
            now[0] += next(left)

        return work

    asked, scored = takes(9, 3, 3, 3, 3), takes(2, 2, 2, 7, 2)
    assert time_requests(asked, scored, 10, clock=lambda: now[0]) == pytest.approx(0.1)
    asked, scored = takes(*[1] * 5), takes(*[2] * 5)
    assert time_requests(asked, scored, 10, clock=lambda: now[0]) == 0
