"""What the image would hold, built from the Dockerfile's own steps, serves without torch."""

import json
import re
import subprocess

import httpx
import pytest

import tiny
from container import Image
from graphs import sum_of_ids

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
