"""Weights that a network has by several names, such as the word embeddings of BART and T5.

Files of safetensors hold no tensor twice, so a state dict that is to be saved names each once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from torch import Tensor, nn


def name_once(network: nn.Module) -> None:
    """Give the network a state dict with each weight under its first name only.

    One with all names can be loaded as well.
    """
    untyped: Any = network
    untyped.register_state_dict_post_hook(_leave_out_other_names)
    untyped.register_load_state_dict_pre_hook(_fill_in_other_names)


def _first_names(network: nn.Module) -> dict[str, str]:
    """The other names of weights that have several → the first name."""
    first: dict[int, str] = {}  # by identity
    named = list(network.named_parameters(remove_duplicate=False))
    for name, weight in named:
        first.setdefault(id(weight), name)
    return {name: first[id(weight)] for name, weight in named if name != first[id(weight)]}


def _leave_out_other_names(
    network: nn.Module, state: MutableMapping[str, Tensor], prefix: str, *_: object
) -> None:
    for name in _first_names(network):
        del state[prefix + name]


def _fill_in_other_names(
    network: nn.Module, state: MutableMapping[str, Tensor], prefix: str, *_: object
) -> None:
    for name, first in _first_names(network).items():
        if prefix + first in state:
            state.setdefault(prefix + name, state[prefix + first])
