"""Every family becomes an ONNX graph with its logits."""

import numpy as np
import onnxruntime
import pytest
import torch

import tiny
from secondlook.model.joint import Joint
from secondlook.model.onnx_graph import OUTPUT, write_onnx
from secondlook.model.warm import Warm

OTHERS = [
    pytest.param(family, marks=pytest.mark.slow) for family in tiny.FAMILIES if family != "bert"
]


@pytest.mark.parametrize("family", ["bert", *OTHERS])
@pytest.mark.parametrize("strm", [False, True])
@pytest.mark.parametrize("form", ["joint", "warm"])
def test_the_graph_scores_as_the_network_at_any_size(tmp_path, form, strm, family):
    if form == "joint":
        network = Joint(tiny.classifier(family), strm=strm)
    else:
        network = Warm(tiny.encoder(family), strm=strm, pooling="cls", separate_layers=1)
        network.head.weight.data.normal_()
        network.gate.data.uniform_(0.1, 2.0)
    network.train()
    write_onnx(network, tmp_path / "model.onnx")
    assert network.training
    assert all(weight.requires_grad for weight in network.parameters())
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [one.name for one in session.get_inputs()] == list(network.inputs)
    assert [one.name for one in session.get_outputs()] == [OUTPUT]
    network.eval()
    for lengths in [(40,), (5, 5), (33, 8, 21, 6, 11)]:
        batch = {
            name: rows for name, rows in tiny.batch(*lengths).items() if name in network.inputs
        }
        with torch.no_grad():
            expected = network(**batch).numpy()
        (logits,) = session.run([OUTPUT], {name: rows.numpy() for name, rows in batch.items()})
        np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=1e-5)
