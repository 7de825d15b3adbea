"""The networks can be traced into one graph for all batch sizes and lengths."""

import pytest
import torch

import tiny
from secondlook.model.joint import Joint
from secondlook.model.warm import Warm


@pytest.mark.parametrize("form", ["joint", "warm"])
def test_the_graph_scores_as_the_network_at_any_size(form):
    if form == "joint":
        network = Joint(tiny.classifier(), strm=True)
    else:
        network = Warm(tiny.encoder(), strm=True, pooling="mean", separate_layers=1)
    network.eval().requires_grad_(False)  # a β that could learn keeps the mask out of fused kernels

    def inputs(*lengths):
        batch = tiny.batch(*lengths)
        return {name: batch[name] for name in network.inputs}

    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=4, max=64)
    shapes = {
        name: {0: batch} if name == "first" else {0: batch, 1: length} for name in network.inputs
    }
    graph = torch.export.export(network, (), kwargs=inputs(12, 9, 7), dynamic_shapes=shapes)
    traced = graph.module()
    for sizes in [(40,), (5, 5), (33, 8, 21, 6, 11)]:
        pairs = inputs(*sizes)
        torch.testing.assert_close(traced(**pairs), network(**pairs), atol=1e-5, rtol=1e-5)
