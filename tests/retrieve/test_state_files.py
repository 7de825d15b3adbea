"""Stored states: written so that a kill loses nothing, read without copying."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook.errors import IndexProblem, MissingDocument
from secondlook.retrieve.state_files import StateWriter, count_tokens, told_states
from secondlook.retrieve.vector_files import VectorCard, VectorWriter
from secondlook.retrieve.vectors import DocumentVectors

HIDDEN = 6
LENGTHS = (3, 1, 4, 2)
DRAW = np.random.default_rng(0)
TEXTS = [(DRAW.normal(size=(n, HIDDEN)).astype(np.float32), np.arange(n) // 2) for n in LENGTHS]


def stored(index, *, killed=False):
    """An index folder with vectors and states of four documents, in two batches."""
    index.mkdir()
    ids = [f"d{number}" for number in range(len(TEXTS))]
    writer = VectorWriter(index, {}, HIDDEN, "fp32")
    StateWriter(writer.folder, 0, HIDDEN).add(TEXTS[:2])
    writer.add(ids[:2], np.ones(2, np.int64), np.eye(2, HIDDEN, dtype=np.float32))
    writer.save()
    states = StateWriter(writer.folder, writer.documents, HIDDEN)
    if killed:  # when the second batch was written here, but not there
        states.add(TEXTS[2:])
        states = StateWriter(writer.folder, writer.documents, HIDDEN)
    states.add(TEXTS[2:])
    writer.add(ids[2:], np.ones(2, np.int64), np.eye(2, HIDDEN, dtype=np.float32))
    writer.complete()
    card = VectorCard(
        ranker="r",
        source="s",
        fingerprint="f",
        dimension=HIDDEN,
        documents=4,
        rows=4,
        corpus="c",
        state_tokens=count_tokens(writer.folder),
    )
    writer.finish(card)
    return index


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_written_is_read(tmp_path, killed):
    vectors = DocumentVectors(stored(tmp_path / "index", killed=killed))
    found = vectors.states.read(["d2", "d0", "d2"])
    for one, number in zip(found, (2, 0, 2), strict=True):
        rows, words = TEXTS[number]
        assert one.rows.dtype == np.float16
        assert one.rows == pytest.approx(rows, abs=1e-2)
        assert one.words.tolist() == words.tolist()
    with pytest.raises(MissingDocument):
        vectors.states.read(["d0", "d9"])
    # 10 tokens of 6 numbers and a word, 2 bytes each, in 4 documents
    assert told_states(vectors.card) == ", states of 10 tokens (35 bytes per passage)"


def test_files_that_do_not_belong_together_are_damaged(tmp_path):
    index = stored(tmp_path / "index")
    counts = index / "vectors" / "state_counts.bin"
    counts.write_bytes(counts.read_bytes()[:-4])
    with pytest.raises(IndexProblem, match=r"damaged.*--states"):
        _ = DocumentVectors(index).states
    (index / "vectors" / "states.bin").write_bytes(b"")
    with pytest.raises(IndexProblem, match="damaged"):
        _ = DocumentVectors(index).states
    with pytest.raises(IndexProblem, match="too short"):
        StateWriter(index / "vectors", 4, HIDDEN)
