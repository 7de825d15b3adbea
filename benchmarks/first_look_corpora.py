"""What weighing or expanding a corpus does for BM25.

    python benchmarks/first_look_corpora.py DATA/squad-passage weighed.jsonl.gz
    python benchmarks/first_look_corpora.py DATA/squad-passage weighed.jsonl.gz --opensearch

k1 and b are chosen for each corpus alike, by MRR@10 on the queries of qrels/dev.tsv; figures are of
qrels/test.tsv. p is of a two-sided paired t-test over queries, against the corpus of DATA. With
--opensearch each corpus goes into a cluster too, which the tests' package gives (or --url), with
the k1 and b that were chosen, and is compared with DATA's in the cluster.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from first_look import cluster
from secondlook.analyze import analyzer
from secondlook.data import read_corpus, read_qrels, read_queries
from secondlook.evaluate.measures import evaluate
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings, _Postings
from secondlook.retrieve.contents import contents

MEASURES = ("RR@10", "R@100")
PLAIN = tuple(product((0.6, 0.9, 1.2, 2.0), (0.4, 0.75)))
WEIGHED = tuple(product((5.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0), (0.2, 0.4, 0.75)))


class Ids:
    """As the index's own list, in memory."""

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids

    def at(self, places: Any) -> list[str]:
        """The ids at these places."""
        return [self._ids[place] for place in places]


class Engine:
    """One corpus, searched under any k1 and b; it is read and analysed once."""

    def __init__(self, corpus: str) -> None:
        self._files = [TemporaryFile() for _ in range(3)]  # noqa: SIM115 - gone with the process
        self._postings = _Postings(*self._files)  # type: ignore[arg-type]
        english, ids = analyzer(), []
        self.weighed = False
        for document in read_corpus(corpus):
            self._postings.add(english.terms(contents(document)))
            ids.append(document.id)
            self.weighed |= document.weights is not None
        self._ids: Any = Ids(ids)
        self.length = float(np.mean(self._postings.lengths))

    def run(self, queries: list[Any], k1: float, b: float, k: int) -> list[Any]:
        """The best `k` for each query."""
        matrix = self._postings.matrix(Bm25Settings(k1=k1, b=b))
        nothing: Any = None  # of the index, only searching is asked for
        return Bm25Index(nothing, nothing, matrix, self._ids).retrieve(queries, k)


class Table:
    """Figures of one engine, each beside those of the first corpus."""

    def __init__(self, test: dict[str, dict[str, int]]) -> None:
        self._test = test
        self._before: Any = None

    def line(self, name: str, setting: tuple[float, float], run: list[Any]) -> None:
        """Print them."""
        found = evaluate(self._test, run, list(MEASURES))
        self._before = self._before or found
        line = f"  {name} k1 {setting[0]:g} b {setting[1]:g}"
        for measure in MEASURES:
            there, here = self._before.per_query[measure], found.per_query[measure]
            p = ttest_rel([here[q] for q in there], list(there.values())).pvalue
            line += f"  {measure} {found.means[measure]:.4f} (p {p:.2g})"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--opensearch", action="store_true")
    parser.add_argument("--url", help="a cluster that is already up")
    asked = parser.parse_args()
    dev, test = (read_qrels(asked.data / "qrels" / f"{part}.tsv") for part in ("dev", "test"))
    queries = list(read_queries(asked.data))
    of_dev = [query for query in queries if query.id in dev]
    of_test = [query for query in queries if query.id in test]
    chosen, table = {}, Table(test)
    for corpus in (asked.data, *asked.corpora):
        engine = Engine(str(corpus))
        tried = {
            setting: evaluate(dev, engine.run(of_dev, *setting, 10), ["RR@10"]).means["RR@10"]
            for setting in (WEIGHED if engine.weighed else PLAIN)
        }
        chosen[corpus] = best = max(tried, key=tried.__getitem__)
        print(f"{corpus.name}: {engine.length:,.0f} terms on average; dev {tried[best]:.4f}")
        for setting in dict.fromkeys([best, (0.9, 0.4)]):
            table.line("bm25s", setting, engine.run(of_test, *setting, 100))
    if asked.opensearch or asked.url:
        in_cluster(asked.url, chosen, of_test, Table(test))


def in_cluster(
    url: str | None, chosen: dict[Path, tuple[float, float]], queries: list[Any], table: Table
) -> None:
    """The same corpora in OpenSearch, each with its own k1 and b."""
    from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings

    with cluster(url) as address, TemporaryDirectory() as folder:
        for place, (corpus, (k1, b)) in enumerate(chosen.items()):
            settings = OpenSearchSettings(urls=(address,), name=f"corpus-{place}", k1=k1, b=b)
            documents = list(read_corpus(str(corpus)))
            index = OpenSearchIndex.build(Path(folder) / str(place), documents, settings)
            print(corpus.name)
            table.line("opensearch", (k1, b), index.retrieve(queries, 100))


if __name__ == "__main__":
    main()
