"""How much a network drops in training, wherever its family keeps that."""

from __future__ import annotations

from torch import nn


def set_dropout(network: nn.Module, probability: float) -> None:
    """Let every part of the network drop with this probability while it is in training.

    Most families have modules for it; the attention of some, and all layers of BART, have numbers
    of their own (`dropout`, `attention_dropout`, `activation_dropout`). What an LSTM calls so is
    between its layers, of which ours have one.
    """
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        elif not isinstance(module, nn.RNNBase):
            for name, value in list(vars(module).items()):
                if name.endswith("dropout") and isinstance(value, (float, int)):
                    setattr(module, name, probability)
