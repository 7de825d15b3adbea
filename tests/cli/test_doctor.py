import json
import os
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from socket import socket
from threading import Thread

import pytest
from typer.testing import CliRunner

from command_line import in_process
from secondlook.cli import app
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.scale import machine
from secondlook.types import Document
from secondlook.workflows import doctor

SAPPHIRE_RAPIDS = """\
processor\t: 0
model name\t: Imaginary Xeon
flags\t\t: fpu avx2 avx512f avx512bw avx512vl avx512_vnni avx512_bf16 amx_bf16 amx_tile amx_int8

processor\t: 1
model name\t: Imaginary Xeon
flags\t\t: fpu
"""
HASWELL = "model name : Older\nflags : fpu sse4_2 avx avx2 fma\n"
ARM = "processor : 0\nFeatures : fp asimd i8mm bf16\nCPU part : 0xd4f\n"


def test_cpu_features_are_those_of_the_first_core():
    told = machine.processor(SAPPHIRE_RAPIDS)
    assert told["name"] == "Imaginary Xeon"
    assert all(told["features"].values())


def test_a_feature_needs_all_of_its_flags():
    old = machine.processor(HASWELL)["features"]
    assert [name for name, there in old.items() if there] == ["AVX2"]
    half = machine.processor("flags : avx512f amx_int8")["features"]
    assert not any(half.values())


def test_an_arm_core_has_none_of_them():
    assert set(machine.processor(ARM)["features"].values()) == {False}


def test_without_cpuinfo_features_are_unknown():
    told = machine.processor("")
    assert told["name"]
    assert set(told["features"].values()) == {None}


def test_a_container_may_use_a_share_of_the_cores_and_of_the_memory(tmp_path):
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text("1048576\n")
    assert machine.cores(tmp_path)["usable"] == 0.5
    assert machine.memory(tmp_path)["usable"] == 1048576


def test_so_may_one_of_the_first_version_of_control_groups(tmp_path):
    for folder in ("cpu", "memory"):
        (tmp_path / folder).mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("25000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("4096\n")
    assert machine.cores(tmp_path)["usable"] == 0.25
    assert machine.memory(tmp_path)["usable"] == 4096


@pytest.mark.parametrize("limits", [{}, {"cpu.max": "max 100000\n", "memory.max": "max\n"}])
def test_without_a_limit_all_that_the_process_may_run_on_is_usable(tmp_path, limits):
    for name, limit in limits.items():
        (tmp_path / name).write_text(limit)
    assert 1 <= machine.cores(tmp_path)["usable"] <= os.cpu_count()
    assert machine.memory(tmp_path)["usable"] == machine.memory(tmp_path)["total"] > 2**20


def test_what_a_system_does_not_tell_is_unknown(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.cores(tmp_path) == {"total": None, "usable": None}
    assert machine.memory(tmp_path) == {"total": None, "usable": None}


WANTED = [
    "numpy>=2.0",
    "no-such-package>=1; extra == 'onnx'",
    'pytest[extra]>=8; extra == "onnx" and python_version > "3"',
    "secondlook[onnx,torch]; extra == 'all'",
]


def test_packages_are_grouped_by_extra_with_the_versions_that_are_here():
    assert doctor.installed(WANTED) == {
        "core": {"numpy": metadata.version("numpy")},
        "onnx": {"no-such-package": None, "pytest": metadata.version("pytest")},
    }


def test_the_extras_come_from_the_metadata_or_in_a_checkout_from_the_project_file(monkeypatch):
    monkeypatch.setattr(metadata, "requires", lambda _: WANTED)
    assert doctor.requirements() == WANTED

    def absent(_):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "requires", absent)
    packages = doctor.installed(doctor.requirements())
    assert "ir-measures" in packages["core"]
    assert "onnxruntime" in packages["onnx"]
    assert "all" not in packages


class Answer(BaseHTTPRequestHandler):
    def __init__(self, status, body, *arguments):
        self.status, self.body = status, body
        super().__init__(*arguments)

    def do_GET(self):
        self.send_response(self.status)
        self.send_header(
            "Content-Type", "application/json" if self.body[:1] in b"{[" else "text/html"
        )
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        """Nothing: the test's output is its own."""


@pytest.fixture
def answering():
    servers = []

    def start(status, body):
        server = HTTPServer(("127.0.0.1", 0), partial(Answer, status, body))
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            200,
            b'{"version": {"distribution": "opensearch", "number": "2.5.0"}}',
            "opensearch 2.5.0",
        ),
        (200, b'{"version": {"number": "8.12.2"}}', "elasticsearch 8.12.2"),
        (200, b"<html>", "not as a search engine does"),
        (200, b"[]", "not as a search engine does"),
        (401, b"{}", "refused the credentials"),
    ],
)
def test_a_cluster_says_what_it_is(answering, status, body, said):
    url = answering(status, body)
    engine = doctor.engines(url)["opensearch"]
    assert said in engine["note"]
    assert engine["usable"] == ("number" in body.decode())


def test_without_its_client_the_cluster_is_not_usable(monkeypatch):
    monkeypatch.setattr("secondlook.retrieve.opensearch.find_spec", lambda package: None)
    assert doctor.engines(None)["opensearch"] == {
        "usable": False,
        "note": "its client is not installed",
    }


def test_a_cluster_that_is_not_there_is_no_failure():
    with socket() as taken:  # bound but not listening: nobody answers, nobody else can
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert "cannot reach" in doctor.engines(url)["opensearch"]["note"]


def test_what_is_no_address_of_a_server_is_not_opened(tmp_path):
    url = tmp_path.as_uri()
    assert "is no cluster's url" in doctor.engines(url)["opensearch"]["note"]


@pytest.fixture
def imaginary_gpu(monkeypatch):
    """Loading torch takes seconds, and finds what this machine happens to have."""
    monkeypatch.setattr(machine, "accelerators", lambda: ["cuda:0 Imaginary GPU"])


@pytest.mark.usefixtures("imaginary_gpu")
def test_the_report_is_json_on_demand():
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["packages"]["core"]["numpy"] == metadata.version("numpy")
    assert report["engines"]["bm25s"] == {"usable": True, "note": "in process"}
    assert report["accelerators"] == ["cuda:0 Imaginary GPU"]
    for extra, command in report["install"].items():
        assert None in report["packages"][extra].values()
        assert extra in command


def test_the_report_says_how_to_get_what_is_missing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(doctor, "requirements", lambda: WANTED)
    monkeypatch.setattr(machine, "text_of", lambda _: "")  # as on a system without /proc
    monkeypatch.setattr("secondlook.retrieve.opensearch.find_spec", lambda package: None)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "pip install 'secondlook[onnx]'" in result.stdout
    assert "no-such-package missing" in result.stdout
    assert "AMX-BF16 unknown" in result.stdout
    assert "unknown without torch" in result.stdout
    assert "its client is not installed" in result.stdout


def test_an_index_is_verified(tmp_path):
    folder = tmp_path / "my.index"
    Bm25Index.build(folder, [Document("cats", "A cat lands on its feet.")], Bm25Settings())
    assert "as it was made: 1 documents" in doctor.verified(folder)
    store = folder / "corpus.sqlite"
    store.write_bytes(store.read_bytes().replace(b"A cat lands", b"A dog lands"))
    complaint = in_process("doctor", "--index", folder, fails=True)
    assert "not those that were indexed" in complaint
