"""`warm`, `export`, `rerank` and `eval`, one after the other, at the size of TREC DL 2019 and 2020.

An untrained warm ranker is as good as its bi-encoder, whichever back end runs it.
"""

from __future__ import annotations

import json

import pytest

from command_line import in_process as secondlook

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(3600)]

BIENCODERS = {"e5-small": {"dl19": 0.704, "dl20": 0.665}, "minilm": {"dl19": 0.643, "dl20": 0.609}}
"""nDCG@10 of the cosine itself, over the stored BM25 top-100."""
EVERY_WAY = [
    ("torch", "fp32"),
    ("torch", "bf16"),
    ("onnx", "fp32"),
    ("onnx", "int8"),
    ("openvino", "fp32"),
    ("openvino", "bf16"),
    ("openvino", "int8"),
]


@pytest.fixture(scope="module")
def index(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "msmarco"
    secondlook("index", shared_data / "msmarco-dl" / "corpus.jsonl.gz", folder)
    return folder


@pytest.fixture(scope="module", params=list(BIENCODERS))
def ranker(request, shared_weights, minilm_folder, tmp_path_factory):
    base = minilm_folder if request.param == "minilm" else shared_weights / request.param
    folder = tmp_path_factory.mktemp("rankers") / request.param
    secondlook("warm", base, "-o", folder)
    return folder


@pytest.mark.parametrize(("backend", "precision"), EVERY_WAY)
def test_an_untrained_warm_ranker_is_as_good_as_its_bi_encoder(
    ranker, index, shared_data, tmp_path, backend, precision
):
    if backend != "torch":
        secondlook("export", ranker, "--to", backend, "--precision", precision)
    folder = shared_data / "msmarco-dl"
    found = {}
    for year in ("dl19", "dl20"):
        made = tmp_path / f"{year}.trec"
        secondlook(
            *("rerank", folder / "runs" / f"{year}.bm25.trec.gz", "-o", made, "--index", index),
            *("--queries", folder / "queries.jsonl", "--ranker", ranker),
            *("--backend", backend, "--precision", precision),
        )
        qrels = folder / "qrels" / f"{year}.tsv"
        figures = json.loads(secondlook("eval", qrels, made, "-m", "nDCG@10", "--json"))
        found[year] = figures["runs"][0]["means"]["nDCG@10"]
    print(ranker.name, backend, precision, found)  # noqa: T201
    assert found == pytest.approx(BIENCODERS[ranker.name], abs=0.004)
