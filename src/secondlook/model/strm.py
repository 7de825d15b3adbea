"""DR-BERT's segmented token recovery mechanism, and the plain padding mask beside it.

STRM (section 3.2, equation 10) lets the last sub-token of a word stand for the whole word: the
other sub-tokens can be attended from inside their word only. "bogue" then cannot match "bogus"
through the piece "bog" they share.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from secondlook.model.families import SHUT


def visible(attention_mask: Tensor, words: Tensor | None) -> Tensor:
    """What each position may attend to, as numbers to add to the attention logits.

    `words` are the word indices of STRM; without them every position that is not padding is seen.
    Padding is never attended. [batch, 1, 1 or tokens, tokens]
    """
    real = attention_mask.bool()  # [batch, tokens]
    if words is None:
        allowed = real[:, None, :]  # [batch, 1, tokens]
    else:
        same_word = words[:, :, None] == words[:, None, :]  # [batch, from, to]
        seen = last_of_word(words, real)[:, None, :] | same_word
        allowed = seen & real[:, None, :]
    return torch.where(allowed, 0.0, SHUT)[:, None]


def last_of_word(words: Tensor, real: Tensor) -> Tensor:
    """Whether a position is its word's last sub-token: the next one is another word's, or padding.

    [batch, tokens]
    """
    next_word = functional.pad(words[:, 1:], (0, 1))
    next_real = functional.pad(real[:, 1:], (0, 1), value=False)
    return (words != next_word) | ~next_real
