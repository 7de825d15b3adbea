import numpy as np
import pytest

from secondlook.encode.encoder import Encoder
from secondlook.encode.features import collate, padded
from secondlook.encode.settings import EncodeSettings
from secondlook.types import Document, Query


def test_pairs_are_padded_on_the_right_to_the_longest(bert):
    pairs = [(Query("q", "bogue"), Document(text, text)) for text in ("a ghost town", "bogus")]
    batch = collate(Encoder(bert, EncodeSettings()).encode(pairs), pad_id=7)
    sep, cls = bert.token_to_id("[SEP]"), bert.token_to_id("[CLS]")
    bog, ue, us = (bert.token_to_id(piece) for piece in ("bog", "##ue", "##us"))
    a, ghost, town = (bert.token_to_id(word) for word in ("a", "ghost", "town"))
    assert {name: array.tolist() for name, array in batch.items()} == {
        "input_ids": [
            [cls, bog, ue, sep, a, ghost, town, sep],
            [cls, bog, ue, sep, bog, us, sep, 7],
        ],
        "attention_mask": [[1] * 8, [1] * 7 + [0]],
        "token_type_ids": [[0] * 4 + [1] * 4, [0] * 4 + [1] * 3 + [0]],
        "words": [[0, 1, 1, 2, 3, 4, 5, 6], [0, 1, 1, 2, 3, 3, 4, -1]],
        "first": [4, 4],
    }
    assert all(array.dtype == np.int64 for array in batch.values())


def test_no_pairs_make_an_empty_batch():
    assert collate([], pad_id=0)["input_ids"].shape == (0, 0)


@pytest.mark.parametrize(
    ("length", "limit", "made"),
    [(1, 512, 8), (8, 512, 8), (9, 512, 16), (30, 31, 31), (9, None, 9)],
)
def test_batches_come_in_few_lengths_and_never_above_the_limit(length, limit, made):
    assert padded(length, limit) == made
