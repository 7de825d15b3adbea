"""The files of `secondlook wire`, and what an engine would do with them."""

import json
import os
import subprocess
import threading
import xml.etree.ElementTree as ET
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from shutil import copytree

import httpx
import pytest
from tokenizers import Tokenizer

import tiny
from command_line import in_process
from graphs import sum_of_ids
from secondlook.errors import BackendProblem
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.score.export_folder import weights_beside
from served import QUERY, TEXTS

IDS = {"connectors": "connector_id", "model_groups": "model_group_id", "models": "model_id"}
KEY = "sl_secret|&1"  # with characters that sed and awk take for more than themselves
HARD = 'a "quoted"\nquery \\ of ünïcode'


def wire(engine, output, *arguments):
    in_process("wire", engine, "-o", output, *arguments)
    files = {one.relative_to(output).as_posix(): one for one in output.rglob("*") if one.is_file()}
    told = {name: json.loads(path.read_text()) for name, path in files.items() if ".json" in name}
    return files, told


class Cluster(BaseHTTPRequestHandler):
    """Remembers what it is sent, and answers with ids as OpenSearch does, or refuses."""

    def do(self):
        length = int(self.headers["content-length"])
        self.server.asked.append((self.command, self.path, json.loads(self.rfile.read(length))))
        kind = next((kind for kind in IDS if f"/{kind}/" in self.path), None)
        answer = {IDS[kind]: f"the-{kind}", "status": "CREATED"} if kind else {}
        refused = self.server.refusals.get(kind)
        self.send_response(200 if refused is None else 400)
        self.end_headers()
        self.wfile.write(json.dumps(answer if refused is None else refused).encode())

    do_PUT = do_POST = do  # noqa: N815 - http.server's names

    def log_message(self, *_):
        pass


@pytest.fixture
def cluster():
    with HTTPServer(("127.0.0.1", 0), Cluster) as server:
        server.asked, server.refusals = [], {}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def apply(script, cluster, *options):
    environment = os.environ | {
        "ENGINE_URL": f"http://127.0.0.1:{cluster.server_port}",
        "SECONDLOOK_KEY": KEY,
    }
    done = subprocess.run(["sh", *options, script], env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr, cluster.asked


def test_opensearch_is_sent_all_files_in_order_with_ids_and_key(tmp_path, cluster):
    files, told = wire("opensearch", tmp_path, "--ranker", "My/ranker", "--url", "http://r:8080/")
    assert "sl_" not in "".join(path.read_text() for path in files.values())
    status, told_by_it, asked = apply(files["apply.sh"], cluster)
    assert (status, told_by_it) == (0, "")
    assert [(method, path) for method, path, _ in asked] == [
        ("PUT", "/_cluster/settings"),
        ("POST", "/_plugins/_ml/connectors/_create"),
        ("POST", "/_plugins/_ml/model_groups/_register"),
        ("POST", "/_plugins/_ml/models/_register?deploy=true"),
        ("PUT", "/_search/pipeline/my-ranker"),
    ]
    settings, connector, _, model, pipeline = (body for _, _, body in asked)
    assert connector["parameters"]["model"] == "My/ranker"
    assert connector["credential"]["key"] == KEY
    assert connector["actions"][0]["url"] == "http://r:8080/v2/rerank"
    trusted = settings["persistent"]["plugins.ml_commons.trusted_connector_endpoints_regex"]
    assert trusted == [r"^http://r:8080/v2/rerank$"]
    assert model["connector_id"] == "the-connectors"
    assert model["model_group_id"] == "the-model_groups"
    (processor,) = pipeline["response_processors"]
    assert processor["rerank"]["ml_opensearch"]["model_id"] == "the-models"
    assert processor["rerank"]["context"]["document_fields"] == ["text"]
    assert "query_text" in told["query.json"]["ext"]["rerank"]["query_context"]


@pytest.mark.parametrize("kind", ["connectors", "model_groups", "models", None])
def test_a_step_that_opensearch_refuses_ends_the_script(kind, tmp_path, cluster):
    """The pipeline of an earlier run stays as it is."""
    files, _ = wire("opensearch", tmp_path, "--ranker", "ranker", "--url", "http://r")
    cluster.refusals[kind] = {"error": {"reason": f"no \\n {kind} here"}, "status": 400}
    status, told, asked = apply(files["apply.sh"], cluster)
    assert status != 0
    assert kind is None or f"no \\\\n {kind} here" in told
    last = {"connectors": 2, "model_groups": 3, "models": 4, None: 1}
    assert len(asked) == last[kind]


def test_an_answer_without_an_id_ends_the_script(tmp_path, cluster, monkeypatch):
    files, _ = wire("opensearch", tmp_path, "--ranker", "ranker", "--url", "http://r")
    monkeypatch.setitem(IDS, "models", "task_id")
    status, told, asked = apply(files["apply.sh"], cluster)
    assert (status, len(asked)) == (1, 4)
    assert "no model_id in the answer" in told


def test_a_second_run_takes_the_model_group_of_the_first(tmp_path, cluster):
    files, _ = wire("opensearch", tmp_path, "--ranker", "ranker", "--url", "http://r")
    taken = "The name you provided is already being used by a model group with ID: a-group_7."
    cluster.refusals["model_groups"] = {"error": {"reason": taken}, "status": 400}
    status, _, asked = apply(files["apply.sh"], cluster)
    assert (status, len(asked)) == (0, 5)
    assert asked[3][2]["model_group_id"] == "a-group_7"


def test_elasticsearch_is_sent_the_endpoint(tmp_path, cluster):
    files, told = wire(
        "elasticsearch", tmp_path, "--ranker", "ranker", "--url", "http://r", "--field", "body"
    )
    _, _, ((method, path, endpoint),) = apply(files["apply.sh"], cluster)
    assert (method, path) == ("PUT", "/_inference/rerank/ranker")
    assert endpoint["service_settings"]["secret_parameters"]["api_key"] == KEY
    retriever = told["query.json"]["retriever"]["text_similarity_reranker"]
    assert (retriever["inference_id"], retriever["field"]) == ("ranker", "body")


@pytest.mark.parametrize("engine", ["opensearch", "elasticsearch"])
def test_the_key_is_in_no_command_line(engine, tmp_path, cluster):
    files, _ = wire(engine, tmp_path, "--ranker", "ranker", "--url", "http://r")
    status, commands, asked = apply(files["apply.sh"], cluster, "-x")
    assert status == 0
    assert "curl" in commands
    assert KEY not in commands
    assert any(json.dumps(KEY) in json.dumps(body) for _, _, body in asked)


def filled(template, values):
    for name, value in values.items():
        template = template.replace("${" + name + "}", value)
    return template


@pytest.mark.parametrize("query", [QUERY, HARD], ids=["plain", "hard"])
def test_the_server_answers_what_the_engines_would_send(tmp_path, url, query):
    """Both put JSON in place of their names; OpenSearch's query stands inside quotes already."""
    _, opensearch = wire("opensearch", tmp_path / "o", "--ranker", "tiny", "--url", url)
    (action,) = opensearch["connector.json"]["actions"]
    documents = json.dumps(TEXTS)
    inside = json.dumps(query)[1:-1]
    first = filled(
        action["request_body"],
        {"parameters.model": "tiny", "parameters.query": inside, "parameters.documents": documents},
    )
    _, elasticsearch = wire("elasticsearch", tmp_path / "e", "--ranker", "tiny", "--url", url)
    service = elasticsearch["inference.json"]["service_settings"]
    second = filled(service["request"], {"query": json.dumps(query), "input": documents})
    assert json.loads(first) == json.loads(second)
    for place, body in ((action["url"], first), (service["url"], second)):
        answer = httpx.post(place, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 200
        assert {one["index"] for one in answer.json()["results"]} == set(range(len(TEXTS)))


def test_without_a_url_there_is_nothing_to_ask(tmp_path):
    given = "wire", "opensearch", "--ranker", "r", "-o", tmp_path
    assert "--url" in in_process(*given, fails=True)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return sum_of_ids(tiny.save(tiny.classifier(), tmp_path_factory.mktemp("vespa") / "tiny"))


def test_vespa_gets_a_package_with_the_graph(tmp_path, exported):
    files, told = wire("vespa", tmp_path, "--ranker", exported)
    assert files["models/ranker.onnx"].read_bytes() == next(exported.rglob("*.onnx")).read_bytes()
    ET.fromstring(files["services.xml"].read_text())
    schema = files["schemas/doc.sd"].read_text()
    assert schema.count("{") == schema.count("}")
    assert not [word for word in schema.split() if word.isupper()]  # every name is filled in
    settings = open_checkpoint(exported).settings.encode
    assert f"customTokenInputIds(2, 3, {settings.max_length}, query(q)" in schema
    assert settings.max_query_length is None  # an imported one: Vespa needs a limit
    assert f"query(q) tensor<float>(d0[{min(64, settings.max_length // 2)}])" in schema
    assert "token_type_ids" in schema
    bare = Tokenizer.from_file(str(files["models/tokenizer.json"]))
    assert bare.encode("the tide").tokens == ["the", "tide"]
    assert told["query.json"]["ranking.profile"] == "second-look"


def test_vespa_refuses_what_a_rank_profile_cannot_build(tmp_path, exported):
    made = tiny.save(tiny.classifier(), tmp_path / "strm")
    settings = open_checkpoint(made).settings
    strm = settings.encode.model_copy(update={"strm": True})
    write_settings(made, settings.model_copy(update={"encode": strm}))
    with pytest.raises(BackendProblem, match="STRM"):
        wire("vespa", tmp_path / "out", "--ranker", made)
    bare = tiny.save(tiny.classifier(), tmp_path / "bare")
    with pytest.raises(BackendProblem, match="secondlook export"):
        wire("vespa", tmp_path / "out", "--ranker", bare)
    large = copytree(exported, tmp_path / "large")
    weights_beside(next(large.rglob("*.onnx"))).touch()
    with pytest.raises(BackendProblem, match="one file"):
        wire("vespa", tmp_path / "out", "--ranker", large)
    assert not Path(tmp_path / "out").exists()
