import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from secondlook.encode.features import Features
from secondlook.model.joint import Joint
from secondlook.model.warm import Warm
from secondlook.score.torch_backend import TorchBackend


def pair(query, document, *, seed=0):
    """An encoded pair of this many tokens, with words of one to three sub-tokens."""
    draw = np.random.default_rng((seed, query, document))
    size = query + document
    starts = draw.random(size) < 0.6
    starts[[0, query]] = True
    return Features(
        ids=draw.integers(5, tiny.SIZE, size).astype(np.int32),
        segments=np.repeat([0, 1], [query, document]).astype(np.int32),
        words=(np.cumsum(starts) - 1).astype(np.int32),
        first=query,
        cut=0,
    )


def joint(*, strm=False):
    return Joint(tiny.classifier(), strm=strm)


def warm(*, strm=False, separate_layers=0):
    return Warm(tiny.encoder(), strm=strm, pooling="mean", separate_layers=separate_layers)


NETWORKS = {
    "joint": joint,
    "joint with STRM": lambda: joint(strm=True),
    "warm": warm,
    "warm with STRM, a layer separate": lambda: warm(strm=True, separate_layers=1),
}


@pytest.fixture(scope="module", params=NETWORKS)
def backend(request):
    return TorchBackend(NETWORKS[request.param](), device="cpu", token_budget=200)


@settings(max_examples=10, deadline=None)
@given(sizes=st.lists(st.tuples(st.integers(2, 10), st.integers(1, 60)), min_size=1, max_size=12))
def test_a_pairs_score_does_not_depend_on_its_neighbours(backend, sizes):
    pairs = [pair(*size, seed=place) for place, size in enumerate(sizes)]
    together = backend.logits(pairs)
    alone = np.concatenate([backend.logits([one]) for one in pairs])
    np.testing.assert_allclose(together, alone, atol=1e-5, rtol=1e-5)


def test_scores_come_back_in_the_callers_order(backend):
    pairs = [pair(4, size) for size in (5, 50, 11, 33)]
    forward, backward = backend.logits(pairs), backend.logits(pairs[::-1])
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-5, rtol=1e-5)
    assert len(set(forward.tolist())) == 4


def test_no_pairs_have_no_scores(backend):
    assert backend.logits([]).shape == (0,)


def test_the_network_is_left_ready_to_score():
    network = joint().train()
    backend = TorchBackend(network, device="cpu")
    pairs = [pair(4, 20)]
    assert backend.logits(pairs) == backend.logits(pairs)  # no dropout


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor has no bf16"
)
def test_bf16_is_near_fp32(backend):
    pairs = [pair(4, size) for size in range(5, 40)]
    rounded = TorchBackend(backend.network, device="cpu", precision="bf16").logits(pairs)
    full = backend.logits(pairs)
    assert rounded.dtype == np.float32
    assert np.abs(rounded - full).max() < 0.1 * np.ptp(full)


class TestSeparateLayers:
    """A warm ranker whose lower layers do not look across."""

    @pytest.mark.parametrize("strm", [False, True])
    @pytest.mark.parametrize("separate", [1, 2])
    def test_scores_are_those_of_the_whole_network(self, strm, separate):
        network = warm(strm=strm, separate_layers=separate)
        torch.nn.init.normal_(network.head.weight)
        backend = TorchBackend(network, device="cpu", token_budget=200)
        pairs = [pair(4, size) for size in (5, 50, 11, 33, 50)]
        with torch.no_grad():
            whole = [
                network(
                    **{
                        name: rows
                        for name, rows in backend._collate([one]).items()
                        if name in network.inputs
                    }
                ).item()
                for one in pairs
            ]
        for _ in range(2):  # from the network, then from what was kept
            np.testing.assert_allclose(backend.logits(pairs), whole, atol=1e-4, rtol=1e-5)

    def test_a_document_is_run_through_them_once(self):
        backend = TorchBackend(warm(separate_layers=1), device="cpu")
        network = backend.network
        seen = []
        begin = network.begin
        network.begin = lambda ids, *rest: seen.append(len(ids)) or begin(ids, *rest)
        documents = [pair(4, size) for size in (5, 50, 11)]
        backend.logits(documents)
        assert seen == [3, 3]  # queries are random here, so each is another
        seen.clear()
        backend.logits(documents)
        assert seen == [3]
        assert (backend.states.found, backend.states.missed) == (3, 3)

    def test_one_query_is_run_through_them_once_a_batch(self):
        backend = TorchBackend(warm(separate_layers=1), device="cpu")
        seen = []
        begin = backend.network.begin
        backend.network.begin = lambda ids, *rest: seen.append(len(ids)) or begin(ids, *rest)
        query = pair(4, 1)
        pairs = []
        for size in (5, 9, 14):
            one = pair(4, size)
            one.ids[:4], one.words[:4] = query.ids[:4], query.words[:4]
            pairs.append(one)
        backend.logits(pairs)
        assert seen == [1, 3]

    def test_where_no_layer_looks_across_two_vectors_are_kept_of_a_document(self):
        backend = TorchBackend(warm(separate_layers=2), device="cpu")
        backend.logits([pair(4, size) for size in (5, 50, 11)])
        assert backend.states.bytes == 3 * 2 * 32 * 4

    def test_a_small_store_changes_no_score(self):
        network = warm(separate_layers=1)
        pairs = [pair(4, size) for size in (5, 50, 11, 33)]
        ample = TorchBackend(network, device="cpu", token_budget=60)
        small = TorchBackend(network, device="cpu", token_budget=60, state_bytes=40 * 32 * 4)
        for _ in range(2):
            np.testing.assert_allclose(small.logits(pairs), ample.logits(pairs), atol=1e-5)
        assert 0 < small.states.bytes <= 40 * 32 * 4
