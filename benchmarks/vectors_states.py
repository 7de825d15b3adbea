"""Part `states` of vectors.py: re-ranking from stored states against reading the pairs."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from secondlook.data import read_corpus, write_corpus
from secondlook.model.checkpoint import layer_count, locate, read_config
from secondlook.rank import rerank as rerank_rankings
from secondlook.retrieve.vector_files import FOLDER, read_vector_card
from secondlook.score.ranker import Ranker
from secondlook.score.warm import make_warm
from secondlook.types import Ranking
from secondlook.workflows.export import export
from secondlook.workflows.index import build_index
from secondlook.workflows.open_index import open_index
from secondlook.workflows.vectors import stored_scorer_of
from vectors_bench import Bench, file_of

NAME, SPLIT = "scifact", "test"
DOCUMENTS, QUERIES, CANDIDATES = 300, 20, 50
SEPARATE = 0.75
"""Of the layers: 9 of 12."""


def states(bench: Bench) -> dict[str, Any]:
    """Pairs a second from stored states and from pairs, both by OpenVINO in fp32, in turns."""
    ranker, folder = half_separate(bench), bench.work / "states.index"
    build_index(first_documents(bench), folder, vectors=ranker, states=True)
    index = open_index(folder, by="bm25").engine
    stored = stored_scorer_of(index, ranker)
    assert stored is not None
    assert stored.scores_from == "states"
    scorers = {"states": stored, "pairs": Ranker.load(ranker, backend="openvino", precision="fp32")}
    queries = bench.judged_queries(NAME, bench.judged(NAME, SPLIT, QUERIES))
    found = [ranking.top(CANDIDATES) for ranking in index.retrieve(queries, CANDIDATES)]
    seconds: dict[str, list[float]] = {name: [] for name in scorers}
    taus, differences = [], []
    for number in (0, *range(len(queries))):  # the first twice: it makes things ready
        ranked = {}
        for name, scorer in scorers.items():
            began = time.perf_counter()
            (ranked[name],) = rerank_rankings([queries[number]], [found[number]], index, scorer)
            seconds[name].append(time.perf_counter() - began)
        tau, difference = compared(ranked["states"], ranked["pairs"])
        taus.append(tau)
        differences.append(difference)
    pairs = sum(len(ranking.hits) for ranking in found)
    rates = {name: pairs / sum(spent[1:]) for name, spent in seconds.items()}
    card = read_vector_card(folder / FOLDER)
    taken = sum(path.stat().st_size for path in (folder / FOLDER).glob("state*.bin"))
    return {
        "separate layers": separate_layers(bench),
        "documents": card.documents,
        "queries": len(queries),
        "pairs": pairs,
        "pairs/s": rates,
        "states / pairs": rates["states"] / rates["pairs"],
        "bytes per passage": taken / card.documents,
        "tokens per passage": card.state_tokens / card.documents,
        "largest difference": max(differences),
        "tau least": min(taus),
    }


def separate_layers(bench: Bench) -> int:
    return int(SEPARATE * layer_count(read_config(locate(bench.base))))


def half_separate(bench: Bench) -> Path:
    """The bi-encoder as a re-ranker with three quarters of its layers separate, exported."""
    folder = bench.work / "half-separate.ranker"
    if not folder.exists():
        make_warm(bench.base, folder, separate_layers=separate_layers(bench))
    if not (folder / "openvino").exists():
        export(folder, precision="fp32")
    return folder


def first_documents(bench: Bench) -> Path:
    path = bench.work / "states.corpus.jsonl"
    if not path.exists():
        write_corpus(path, islice(read_corpus(file_of(bench.data(NAME), "corpus")), DOCUMENTS))
    return path


def compared(one: Ranking, other: Ranking) -> tuple[float, float]:
    """Kendall's tau of two orders of the same documents, and how far scores differ at most."""
    scores = {hit.doc_id: hit.score for hit in other.hits}
    both = np.array([(hit.score, scores[hit.doc_id]) for hit in one.hits])
    tau = float(kendalltau(both[:, 0], both[:, 1]).statistic) if len(both) > 1 else 1.0
    return tau, float(np.abs(both[:, 0] - both[:, 1]).max(initial=0))
