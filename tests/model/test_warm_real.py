"""The warm form of real bi-encoders: it begins as they rank."""

import gzip
import json
from itertools import islice

import numpy as np
import pytest
from scipy.stats import kendalltau

from secondlook.encode.encoder import Encoder
from secondlook.model.network import new_warm
from secondlook.score.torch_backend import TorchBackend
from secondlook.types import Document, Query

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def questions(shared_data):
    """Questions, and beginnings of SQuAD paragraphs that both bi-encoders take whole."""
    with gzip.open(shared_data / "squad-passage" / "corpus.jsonl.gz", "rt") as lines:
        corpus = [json.loads(line) for line in islice(lines, 40)]
    texts = [" ".join(one["text"].split()[:100]) for one in corpus]
    return (
        [Query("q1", "who founded the school?"), Query("q2", "what do students write for?")],
        [Document(str(place), text) for place, text in enumerate(texts)],
    )


@pytest.fixture(
    scope="module", params=[pytest.param("e5-small", marks=pytest.mark.slow), "all-MiniLM-L6-v2"]
)
def base(request):
    if request.param == "e5-small":
        return request.getfixturevalue("shared_weights") / "e5-small"
    return request.getfixturevalue("minilm_folder")


def cosines(folder, queries, documents):
    """As sentence-transformers computes them, prompts and all."""
    peer = pytest.importorskip("sentence_transformers").SentenceTransformer
    model = peer(str(folder), device="cpu")
    return model.encode_query([q.text for q in queries], normalize_embeddings=True) @ (
        model.encode_document([d.text for d in documents], normalize_embeddings=True).T
    )


def scores(model, queries, documents):
    encoder = Encoder(model.tokenizer, model.settings.encode)
    features = encoder.encode([(query, document) for query in queries for document in documents])
    made = TorchBackend(model.network, device="cpu").logits(features)
    return made.reshape(len(queries), len(documents))


def test_it_begins_as_the_bi_encoder(base, questions):
    expected = cosines(base, *questions)
    shut = new_warm(base, separate_layers=new_warm(base).network.layers)
    alpha = shut.network.alpha.item()
    exact = scores(shut, *questions)
    np.testing.assert_allclose(exact / alpha, expected, atol=2e-6)
    assert (np.argsort(exact, axis=1) == np.argsort(expected, axis=1)).all()
    at_start = scores(new_warm(base), *questions)
    for ours, theirs in zip(at_start, expected, strict=True):
        assert kendalltau(ours, theirs).statistic >= 0.99
