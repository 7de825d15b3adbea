"""Neither a corpus nor a run is held in memory, however long it is."""

import itertools
import tracemalloc

import pytest

from secondlook import data
from secondlook.types import Document, Hit, Ranking

MEBIBYTE = 1 << 20
TEXT = "tides follow the moon and the sun " * 20


def peak(work):
    """The most memory that was held at once while the work was done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def count(items):
    return sum(1 for _ in items)


@pytest.mark.parametrize("name", ["run.trec", "run.trec.zst", "run.tsv.gz"])
def test_a_long_run_passes_through_a_small_window(tmp_path, name):
    path = tmp_path / name
    hits = tuple(Hit(f"document-{1000 - i:04}", 1000.0 - i) for i in range(1000))
    rankings = (Ranking(f"query-{number:05}", hits) for number in range(40))
    assert peak(lambda: data.write_run(path, rankings)) < 3 * MEBIBYTE
    assert peak(lambda: count(data.read_run(path))) < 3.5 * MEBIBYTE
    assert peak(lambda: list(data.read_run(path))) > 5 * MEBIBYTE  # so much it is when held


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "corpus.tsv.zst"])
def test_a_large_corpus_passes_through_a_small_window(tmp_path, name):
    path = tmp_path / name
    documents = (Document(str(number), TEXT) for number in range(10_000))
    assert peak(lambda: data.write_corpus(path, documents)) < 3 * MEBIBYTE
    assert peak(lambda: count(data.read_corpus(path))) < 3 * MEBIBYTE
    assert peak(lambda: list(data.read_corpus(path))) > 6 * MEBIBYTE


def test_memory_does_not_grow_with_the_length(tmp_path):
    short, long = tmp_path / "short.tsv", tmp_path / "long.tsv"
    for path, size in ((short, 2_000), (long, 10_000)):
        data.write_corpus(path, map(Document, map(str, range(size)), itertools.repeat(TEXT)))
    first = peak(lambda: count(data.read_corpus(short)))
    second = peak(lambda: count(data.read_corpus(long)))
    assert second < 1.2 * first
