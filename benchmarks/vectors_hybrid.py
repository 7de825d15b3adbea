"""BM25, vectors and both as the first stage, in process and on a cluster; a part of vectors.py.

`tuned` is what `secondlook fuse index` chooses by judgments of other queries. Two re-rankers follow
each first stage: the bi-encoder, by the stored vectors of the hundred candidates, fused with the
first stage's score by the weight that is best on those other queries; and for some of the queries a
cross-encoder, which reads the twenty best and scores a pair once, whichever run asks: alone, and
fused with the first stage's score as `fuse tune` does it, cross-validated over these queries.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from opensearch_cluster import FULL_OPENSEARCH, Cluster
from secondlook.data import read_qrels, read_run, write_run
from secondlook.evaluate.measures import evaluate
from secondlook.evaluate.significance import t_test
from secondlook.rank.fusion import Fusion, second_look
from secondlook.retrieve.hybrid import FirstStageChoice, write_choice
from secondlook.score.fusion_choice import read_looks, tune, ways
from secondlook.types import Hit, Ranking
from secondlook.workflows.choose_first_stage import choose_first_stage
from secondlook.workflows.index import build_index
from secondlook.workflows.rerank import rerank
from vectors_bench import Bench, by_query, carry_over, file_of, values

SETS = {
    "scifact": "train",
    "nfcorpus": "dev",
    "insuranceqa": "dev",
    "squad-passage": "dev",
    "covidqa-passage": "train",
}
"""Sets with test judgments, and the split that the first stage is tuned on."""
MEASURES = ("nDCG@10", "R@100")
FIRST_STAGES = ("bm25", "vectors", "hybrid", "tuned")
RANKER, CROSS_ENCODER, FUSED = " + ranker", " + cross-encoder", " + fused cross-encoder"
DEPTH = 20
"""Candidates that the cross-encoder reads."""
_FUSED_BY = 300
"""Queries that the weight of a fusion is found on."""
NODES = 3
_OPEN = ExitStack()
_CLUSTERS: list[Cluster] = []


def hybrid(bench: Bench, name: str) -> dict[str, Any]:
    """Every first stage alone and re-ranked, in process; differences with their p-values."""
    index = bench.index(name)
    choice = chosen(bench, name, index)
    figures = compared(bench, name, index, choice)
    return {"tuned to": choice.model_dump(mode="json", exclude={"figures"})} | figures


def on_cluster(bench: Bench, name: str) -> dict[str, Any]:
    """The same on three nodes, and how far each figure is from that in process."""
    own, inside = bench.index(name), bench.work / f"{name}.compared.json"
    choice = chosen(bench, name, own)
    if not inside.exists():
        compared(bench, name, own, choice)
    folder = bench.work / f"{name}.cluster"
    if not all(path.exists() for path in wanted_runs(bench, name, folder)):
        load(bench, name, own, folder)
    figures = compared(bench, name, folder, choice)
    before = json.loads(inside.read_text("utf-8"))
    apart = {
        stage: {m: figures[stage][m] - before[stage][m] for m in MEASURES}
        for stage in (*FIRST_STAGES, *(stage + RANKER for stage in FIRST_STAGES))
    }
    if bench.cross:
        for stage in (stage + plus for stage in FIRST_STAGES for plus in (CROSS_ENCODER, FUSED)):
            apart[stage] = {"nDCG@10": figures[stage]["nDCG@10"] - before[stage]["nDCG@10"]}
    largest = max(abs(value) for one in apart.values() for value in one.values())
    return figures | {"against in process": apart, "largest difference": largest}


def wanted_runs(bench: Bench, name: str, index: Path) -> list[Path]:
    """What is asked of an index; with all of it kept, no cluster is needed again."""
    runs = (bench.run_file(index, bench.judged(name, "test"), stage) for stage in FIRST_STAGES)
    return [path for run in runs for path in (run, run.with_suffix(".fused.trec"))]


def load(bench: Bench, name: str, own: Path, folder: Path) -> None:
    """The corpus with the vectors of the index in process, on the cluster of this process."""
    shutil.rmtree(folder, ignore_errors=True)  # an earlier cluster is gone
    carry_over(own, folder, bench.separate_ranker())
    for run in bench.work.glob(f"{folder.name}.*.trec"):
        run.unlink()
    build_index(
        file_of(bench.data(name), "corpus"),
        folder,
        engine="opensearch",
        url=cluster().urls,
        name=name,
        shards=NODES,
        replicas=1,
        vectors=bench.separate_ranker(),
        replace=True,
    )


def cluster() -> Cluster:
    """Three nodes with k-NN, for as long as this process runs."""
    if not _CLUSTERS:
        nodes = Cluster(NODES, FULL_OPENSEARCH.with_plugins("opensearch-knn"), heap="1g")
        _CLUSTERS.append(_OPEN.enter_context(nodes))
    return _CLUSTERS[0]


def chosen(bench: Bench, name: str, index: Path) -> FirstStageChoice:
    """What `fuse index` chooses on other queries than those of the test."""
    kept = bench.work / f"{name}.choice.json"
    if not kept.exists():
        qrels = bench.judged(name, SETS[name])
        found = choose_first_stage(index, bench.query_file(name), qrels, dry_run=True)
        kept.write_text(found.choice.model_dump_json(), "utf-8")
    return FirstStageChoice.model_validate_json(kept.read_text("utf-8"))


def compared(bench: Bench, name: str, index: Path, choice: FirstStageChoice) -> dict[str, Any]:
    """Means of each first stage, alone and re-ranked, and the differences to BM25's."""
    qrels = bench.judged(name, "test")
    runs, weights = dict[str, Path](), dict[str, Any]()
    for stage in FIRST_STAGES:
        # by reciprocal rank where nothing was tuned; what is tuned is stored in the index
        write_choice(index, choice if stage == "tuned" else FirstStageChoice())
        runs[stage] = bench.run(name, index, qrels, None if stage == "tuned" else stage, stage)
        fusion = best_fusion(bench, name, index, stage)
        weights[stage + RANKER] = asdict(fusion)
        runs[stage + RANKER] = fused(bench, name, index, runs[stage], fusion)
    table = {key: {m: values(run, qrels, m) for m in MEASURES} for key, run in runs.items()}
    if bench.cross:
        few = bench.judged(name, "test", bench.cross)
        for stage in FIRST_STAGES:
            read = by_cross_encoder(bench, name, runs[stage], few)
            table[stage + CROSS_ENCODER] = {"nDCG@10": values(read, few, "nDCG@10")}
            row, weights[stage + FUSED] = cross_validated(runs[stage], read, few)
            table[stage + FUSED] = {"nDCG@10": row}
    figures: dict[str, Any] = {
        key: {"queries": len(row["nDCG@10"])} | {m: float(own.mean()) for m, own in row.items()}
        for key, row in table.items()
    }
    for key, row in table.items():
        stage, plus, after = key.partition(" + ")
        if stage == "bm25":
            continue
        gains = {m: own - table[f"bm25{plus}{after}"][m] for m, own in row.items()}
        figures[key]["against bm25"] = {
            m: {"difference": float(own.mean()), "p": t_test(own)} for m, own in gains.items()
        }
    for key in figures:
        figures[key]["fusion"] = weights.get(key)
    if index.name.endswith(".index"):
        (bench.work / f"{name}.compared.json").write_text(json.dumps(figures), "utf-8")
    return figures


def best_fusion(bench: Bench, name: str, index: Path, stage: str) -> Fusion:
    """How the first stage's and the bi-encoder's scores are best fused, on queries of no test."""
    kept = bench.work / f"{name}.{stage}.fusion.json"
    if not kept.exists():
        path = bench.judged(name, SETS[name], min(_FUSED_BY, bench.queries))
        qrels, by = read_qrels(path), None if stage == "tuned" else stage
        first = list(read_run(bench.run(name, index, path, by, stage)))
        second = scores_by_vectors(bench, name, index, bench.run(name, index, path, by, stage))

        def mean(fusion: Fusion) -> float:
            looks = [second_look(one, scores_of(one, second), fusion) for one in first]
            return evaluate(qrels, looks, ["nDCG@10"]).means["nDCG@10"]

        ways = [Fusion(step / 10, scale) for scale in ("min-max", "z") for step in range(11)]
        kept.write_text(json.dumps(asdict(max(ways, key=mean))), "utf-8")
    return Fusion(**json.loads(kept.read_text("utf-8")))


def fused(bench: Bench, name: str, index: Path, run: Path, fusion: Fusion) -> Path:
    """The run in the order of both scores."""
    target = run.with_suffix(".fused.trec")
    if not target.exists():
        second = scores_by_vectors(bench, name, index, run)
        looks = (second_look(one, scores_of(one, second), fusion) for one in read_run(run))
        write_run(target, looks, tag="fused")
    return target


Scores = dict[str, dict[str, float]]


def scores_by_vectors(bench: Bench, name: str, index: Path, run: Path) -> Scores:
    """Query → document → the bi-encoder's score, of a run's candidates."""
    found = read_run(by_vectors(bench, name, index, run))
    return {one.query_id: {hit.doc_id: hit.score for hit in one.hits} for one in found}


def scores_of(ranking: Ranking, scores: Scores) -> list[float]:
    return [scores[ranking.query_id][hit.doc_id] for hit in ranking.hits]


def by_vectors(bench: Bench, name: str, index: Path, run: Path) -> Path:
    """The run in the order of the bi-encoder's stored vectors."""
    target = run.with_suffix(".vectors.trec")
    if not target.exists():
        result = rerank(run, index, bench.query_file(name), bench.separate_ranker(), target)
        assert result.by_vectors
    return target


def by_cross_encoder(bench: Bench, name: str, run: Path, qrels: Path) -> Path:
    """The best of some queries in the cross-encoder's order; pairs new to it are scored first."""
    target = run.with_suffix(f".{bench.cross}.crossed.trec")
    if target.exists():
        return target
    scores = known_scores(bench, name)
    wanted = [one.top(DEPTH) for one in by_query(run, qrels).values()]
    missing = [
        Ranking(one.query_id, tuple(h for h in one.hits if (one.query_id, h.doc_id) not in scores))
        for one in wanted
    ]
    missing = [one for one in missing if one.hits]
    if missing:
        unscored = bench.work / f"{name}.unscored.trec"
        write_run(unscored, missing, tag="unscored")
        output = next(path for path in score_files(bench, name) if not path.exists())
        index, ranker = bench.work / f"{name}.index", bench.exported_cross_encoder()
        rerank(unscored, index, bench.query_file(name), ranker, output, raw=True)
        scores = known_scores(bench, name)
    made = (
        Ranking.of(one.query_id, [Hit(h.doc_id, scores[one.query_id, h.doc_id]) for h in one.hits])
        for one in wanted
    )
    write_run(target, made, tag="cross-encoder")
    return target


def cross_validated(run: Path, read: Path, qrels: Path) -> tuple[Any, dict[str, Any] | None]:
    """nDCG@10 of each query by the weight that is best on others, and the weight of all."""
    judged = read_qrels(qrels)
    first = [one.top(DEPTH) for one in by_query(run, qrels).values()]
    looks = read_looks(first, read_run(read), windows=False)
    tried = tune(looks, judged, ways(None), "nDCG@10", folds=5, seed=0)
    way, tuned = tried.among(lambda _: True)
    return tuned.held_out, way.fusion and asdict(way.fusion)


def score_files(bench: Bench, name: str) -> Any:
    """Where the cross-encoder's scores are, file after file."""
    return (bench.work / f"{name}.scores.{number}.trec" for number in count())


def known_scores(bench: Bench, name: str) -> dict[tuple[str, str], float]:
    """(query, document) → the cross-encoder's score."""
    scores = {}
    for path in score_files(bench, name):
        if not path.exists():
            return scores
        for one in read_run(path):
            scores |= {(one.query_id, hit.doc_id): hit.score for hit in one.hits}
    return scores
