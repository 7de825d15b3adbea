"""The network as an ONNX graph: STRM and the warm form inside it, any batch, any length."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.export import Dim

from secondlook.errors import BackendProblem, MissingExtra
from secondlook.model.first_token import first_token_only
from secondlook.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from secondlook.model.network import CrossEncoder
    from secondlook.model.state_networks import LowerLayers, UpperLayers
    from secondlook.model.vector_network import VectorNetwork

    Network = CrossEncoder | VectorNetwork | LowerLayers | UpperLayers

OUTPUT = "logits"
"""The name of what the graph gives: one logit per pair, or of an encoder one row per text."""


def write_onnx(network: Network, path: Path) -> None:
    """Write the network in float32; the graph's inputs are `network.inputs`.

    All are int64 but `states`, which are float32.
    """
    if isinstance(network, Frozen):
        raise BackendProblem(
            "a ranker of the frozen form has no graph: its LSTM layers read texts of any length "
            "without their padding; score it with the torch back end"
        )
    # A β that wants a gradient makes attention take another road than it takes in inference.
    frozen = deepcopy(network).cpu().eval().requires_grad_(False)  # noqa: FBT003 - torch's form
    _spell_out_attention(frozen)
    example = {name: _example(name, network) for name in network.inputs}
    dynamic = {  # batch and tokens; not the width of states
        name: dict.fromkeys(range(min(rows.dim(), 2)), Dim.DYNAMIC)
        for name, rows in example.items()
    }
    with _quiet(), first_token_only(frozen):
        try:
            torch.onnx.export(
                frozen,
                (),
                path,
                kwargs=example,
                dynamic_shapes=dynamic,
                input_names=list(network.inputs),
                output_names=[OUTPUT],
                external_data=False,
                dynamo=True,
                verbose=False,
            )
        except ImportError as error:
            raise MissingExtra("export", "making an ONNX graph") from error
        except torch.onnx.OnnxExporterError as error:
            raise BackendProblem(
                f"torch {torch.__version__} cannot make a graph of this network ({error}); score "
                "it with the torch back end"
            ) from error


def _spell_out_attention(network: Network) -> None:
    """As products and a softmax, which engines know and fuse.

    Torch's own fused attention becomes the same with a guard against NaN in every layer, and that
    keeps OpenVINO from fusing: its attention then takes twice the time.
    """
    network.encoder.set_attn_implementation("eager")


def _example(name: str, network: Network) -> Tensor:
    """Two pairs of eight tokens. Neither number may be 1, which would be taken for a constant."""
    if name == "states":
        return torch.ones(2, 8, network.encoder.config.hidden_size)
    if name == "first":
        return torch.full((2,), 3)
    return torch.ones(2, 8, dtype=torch.int64)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says to those who work on torch."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
