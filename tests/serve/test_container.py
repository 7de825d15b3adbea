"""What the image would hold, built from the Dockerfile's own steps, serves without torch."""

import json
import re
import subprocess

import httpx
import pytest
from typer.testing import CliRunner

import tiny
from container import REPOSITORY, Image
from graphs import sum_of_ids
from secondlook.cli import app
from secondlook.serve.limits import Limits
from secondlook.serve.metrics import Metrics

QUERY = "what is the tide"
TEXTS = ["the tide of the sea", "a river is deep"]


def test_the_image_runs_as_nobody_and_asks_for_no_torch():
    image = Image.read()
    (user,) = image.all("USER")
    assert int(user.partition(":")[0]) > 0
    assert not re.search(r"torch|train|export", " ".join(image.all("RUN")))
    assert image.all("FROM")[-1].endswith("-slim")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_images_environment_serves_an_exported_ranker_without_torch(tmp_path):
    image, root = Image.read(), tmp_path / "image"
    root.mkdir()
    image.build(root, ENGINE="onnx")
    python = root / "opt/secondlook/bin/python"
    found = subprocess.run(
        [python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True, text=True
    )
    names = {one["name"].lower() for one in json.loads(found.stdout)}
    assert {"secondlook", "fastapi", "onnxruntime", "opensearch-py"} <= names
    assert names.isdisjoint({"torch", "transformers", "accelerate"})
    ranker = sum_of_ids(tiny.save(tiny.classifier(), tmp_path / "ranker"))
    with subprocess.Popen(
        [*image.command(root), ranker, "--port", "0"],
        env={"PATH": "/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            said = iter(server.stderr)
            url = next(filter(None, (re.search(r"http://[\d.:]+", line) for line in said)))[0]
            asked = {"query": QUERY, "documents": TEXTS}
            assert len(httpx.post(f"{url}/v2/rerank", json=asked).json()["results"]) == 2
            assert "<title>secondlook" in httpx.get(url).text
            explained = httpx.post(f"{url}/v1/explain", json={"query": QUERY, "text": TEXTS[0]})
            assert explained.json()["explanation"]["attention"] == []
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def manifests():
    yaml = pytest.importorskip("yaml")
    path = REPOSITORY / "examples/kubernetes/secondlook.yaml"
    return {one["kind"]: one for one in yaml.safe_load_all(path.read_text("utf-8"))}


def test_the_manifests_name_what_the_server_has(manifests):
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    probes = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness")}
    assert probes == {"/health"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    (metric,) = manifests["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert f"# TYPE {metric['pods']['metric']['name']} gauge" in Metrics().text().decode()
    given = ["serve", *container["args"], "--help"]
    assert CliRunner().invoke(app, given).exit_code == 0
    options = {one.partition("=")[0] for one in container["args"]}
    assert {"--deadline", "--queue", "--keys", "--rate"} <= options
    assert "--allow-host" not in options  # Prometheus asks by a pod's address


def test_the_ingress_and_the_network_policy_lead_to_the_pods(manifests):
    pod = manifests["Deployment"]["spec"]["template"]
    service, ingress = manifests["Service"], manifests["Ingress"]
    policy = manifests["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == pod["metadata"]["labels"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    given = dict(one.split("=") for one in pod["spec"]["containers"][0]["args"][1:-2])
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
    limits = {
        key.rpartition("/")[2]: said for key, said in ingress["metadata"]["annotations"].items()
    }
    assert int(limits["proxy-read-timeout"]) > float(given["--deadline"])
    assert limits["proxy-body-size"] == f"{Limits().body_bytes // 2**20}m"


def test_the_image_asks_for_a_key():
    (command,) = Image.read().all("CMD")
    assert "--keys" in json.loads(command)
    assert "--no-keys" not in json.loads(command)


def test_the_pod_may_do_no_more_than_it_must(manifests):
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (user,) = Image.read().all("USER")
    assert pod["securityContext"]["runAsUser"] == int(user.partition(":")[0])
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["limits"]["cpu"] == container["resources"]["requests"]["cpu"]


def test_compose_adds_the_server_to_the_cluster():
    yaml = pytest.importorskip("yaml")
    cluster, more = (
        yaml.safe_load((REPOSITORY / "examples" / name).read_text("utf-8"))["services"]
        for name in ("compose.yaml", "serve.yaml")
    )
    (server,) = more.values()
    assert set(server["depends_on"]) == set(cluster)
    assert CliRunner().invoke(app, ["serve", *server["command"], "--help"]).exit_code == 0
    assert {"--no-keys", "--allow-host"} <= set(server["command"])  # else any web page may ask
