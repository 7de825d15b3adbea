r"""Feedback: the query's vector moves towards the mean of its own best documents.

    python benchmarks/feedback.py figures --base e5-small --data DATA
    python benchmarks/feedback.py lists --base e5-small --data DATA --index INDEX -o distil.parquet

`figures`: nDCG@10 of re-ranking BM25's best 100, for some shares of so many documents. `lists`: of
INDEX's best 100 for MS MARCO's dev queries (INDEX is of DATA/msmarco-dl) the best 8 after feedback
and 16 others, with the scores after feedback, for the phase `distil`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from scipy.stats import ttest_rel
from transformers import AutoModel, AutoTokenizer

from secondlook.data import read_corpus, read_qrels, read_queries, read_run
from secondlook.evaluate.measures import evaluate
from secondlook.model.biencoder import read_biencoder
from secondlook.retrieve import open_index
from secondlook.retrieve.expand import text_of
from secondlook.train.groups import Group, write_groups
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.types import Qrels

LISTS = {"dl21": "msmarco-v2-dl21", "dl19": "msmarco-dl", "dl20": "msmarco-dl"}
TRIED = ((5, 0.6), (8, 0.3))
ALPHA = 40.0
"""The warm form's score of a cosine, about: what the student begins with."""
QUERIES, BEST, OTHERS = 700, 8, 16


class Vectors:
    """A bi-encoder's vectors of texts."""

    def __init__(self, base: str) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(base)
        self._network = AutoModel.from_pretrained(base).eval()
        self._settings = read_biencoder(Path(base))
        assert self._settings.pooling == "mean"

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, numbers], each of length one."""
        return self._of([self._settings.query_prompt + text for text in texts])

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same."""
        return self._of([self._settings.document_prompt + text for text in texts])

    @torch.inference_mode()
    def _of(self, texts: list[str]) -> NDArray[np.float32]:
        order = np.argsort([len(text) for text in texts])
        made = np.zeros((len(texts), self._network.config.hidden_size), np.float32)
        for at in range(0, len(texts), 32):
            some = order[at : at + 32]
            read = self._tokenizer(
                [texts[place] for place in some],
                padding=True,
                truncation=True,
                max_length=256,
                return_tensors="pt",
            )
            with torch.autocast("cpu", torch.bfloat16):
                states = self._network(**read).last_hidden_state.float()
            mask = read["attention_mask"][..., None]
            mean = (states * mask).sum(1) / mask.sum(1)
            made[some] = torch.nn.functional.normalize(mean, dim=-1).numpy()
        return made


def after(
    query: NDArray[np.float32], documents: NDArray[np.float32], best: int, share: float
) -> NDArray[np.float32]:
    """The documents' scores after `share` of the mean of the `best` came into the query."""
    scores: NDArray[np.float32] = documents @ query
    order = np.argsort(-scores, kind="stable")[:best]
    moved: NDArray[np.float32] = documents @ documents[order].mean(0)
    return (1 - share) * scores + share * moved


@dataclass(frozen=True)
class Candidates:
    """BM25's best 100 for the judged queries, with their vectors."""

    qrels: Qrels
    ids: dict[str, list[str]]
    """Query → its candidates."""
    queries: dict[str, NDArray[np.float32]]
    documents: dict[str, NDArray[np.float32]]

    @classmethod
    def read(cls, data: Path, name: str, vectors: Vectors) -> Self:
        """One of the lists."""
        qrels = read_qrels(data / "qrels" / f"{name}.tsv")
        run = read_run(data / "runs" / f"{name}.bm25.trec.gz")
        ids = {r.query_id: [h.doc_id for h in r.hits[:100]] for r in run if r.query_id in qrels}
        asked = {one.id: one.text for one in read_queries(data / "queries.jsonl")}
        wanted = {doc_id for some in ids.values() for doc_id in some}
        texts = {o.id: text_of(o) for o in read_corpus(data / "corpus.jsonl.gz") if o.id in wanted}
        return cls(
            qrels,
            ids,
            dict(zip(ids, vectors.queries([asked[one] for one in ids]), strict=True)),
            dict(zip(texts, vectors.documents(list(texts.values())), strict=True)),
        )

    def values(self, best: int, share: float) -> list[float]:
        """nDCG@10 of each query after feedback."""
        rankings = []
        for query_id, ids in self.ids.items():
            documents = np.stack([self.documents[one] for one in ids])
            scores = after(self.queries[query_id], documents, best, share)
            rankings.append(Ranking.of(query_id, map(Hit, ids, map(float, scores))))
        return list(evaluate(self.qrels, rankings, ["nDCG@10"]).per_query["nDCG@10"].values())


def figures(given: argparse.Namespace) -> None:
    vectors = Vectors(given.base)
    for name, folder in LISTS.items():
        found = Candidates.read(given.data / folder, name, vectors)
        before = found.values(1, 0.0)
        print(f"{name}: {np.mean(before):.4f}", flush=True)
        for best, share in TRIED:
            now = found.values(best, share)
            p = ttest_rel(now, before).pvalue
            print(f"  {share} of the best {best}: {np.mean(now):.4f}, p = {p:.3f}", flush=True)


def lists(given: argparse.Namespace) -> None:
    vectors, index = Vectors(given.base), open_index(given.index)
    rng = np.random.default_rng(0)
    queries = list(read_queries(given.data / "msmarco-dev-gold" / "queries.jsonl"))
    queries = [queries[place] for place in rng.permutation(len(queries))[:QUERIES]]
    found = [one for one in index.retrieve(queries, 100) if len(one.hits) >= 40]
    ids = sorted({hit.doc_id for ranking in found for hit in ranking.hits})
    documents = dict(zip(ids, index.fetch(ids), strict=True))
    texts = vectors.documents([text_of(one) for one in documents.values()])
    made = dict(zip(ids, texts, strict=True))
    asked = {query.id: query for query in queries}
    of = vectors.queries([asked[ranking.query_id].text for ranking in found])
    groups = []
    for ranking, query in zip(found, of, strict=True):
        own = [hit.doc_id for hit in ranking.hits]
        scores = ALPHA * after(query, np.stack([made[one] for one in own]), BEST, 0.3)
        order = np.argsort(-scores, kind="stable")
        places = [*order[:BEST], *rng.choice(order[BEST:], OTHERS, replace=False)]
        groups.append(
            Group(
                asked[ranking.query_id],
                tuple(documents[own[place]] for place in places),
                (1,) * 4 + (-1,) * (BEST + OTHERS - 4),
                tuple(int(place) + 1 for place in places),
                teacher=tuple(float(scores[place]) for place in places),
            )
        )
    write_groups(given.output, groups, about={"teacher": "feedback of the best 8, .3"})
    print(f"{given.output}: {len(groups):,} queries")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    does = arguments.add_subparsers(required=True)
    for work in (figures, lists):
        one = does.add_parser(work.__name__)
        one.set_defaults(work=work)
        one.add_argument("--base", required=True)
        one.add_argument("--data", type=Path, required=True)
        if work is lists:
            one.add_argument("--index", type=Path, required=True)
            one.add_argument("-o", "--output", type=Path, required=True)
    given = arguments.parse_args()
    given.work(given)


if __name__ == "__main__":
    main()
