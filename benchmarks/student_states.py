r"""A student with half of a cross-encoder's layers that learns to make its teacher's hidden states.

    python benchmarks/student_states.py --data DATA --teacher ms-marco-MiniLM-L12 --work WORK \
      --layers 6 --queries 12000 -o docs/results/runs

As `student.py`, whose queries and passages it learns from, but a score is one number of a pair and
hidden states are hundreds for each of its tokens: from the same pairs there is far more to learn.
Layer k of the student is to give what the teacher's layer 2k gives, of the last layer only what the
score is made of, and the score itself. The teacher reads each batch beside the student, so nothing
is kept of it. Then both re-rank BM25's stored top 100 of each year; settings are to be chosen on
2021, and run nothing beside it. Interrupted, the same command resumes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from contextlib import redirect_stdout
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Dropout, Module, ModuleList
from torch.utils.data import Dataset
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from secondlook.data import read_queries, read_run
from secondlook.model.checkpoint import read_tokenizer
from secondlook.model.first_token import first_token_only
from secondlook.model.joint import Joint
from secondlook.retrieve import open_index
from secondlook.terminal.bars import Bars
from secondlook.train.start import make_start
from secondlook.workflows.claim import claim
from secondlook.workflows.export import export_for_speed
from secondlook.workflows.retrieve import retrieve
from student import LEARNT_FROM, measured, prepared
from two_rankers import SETS

if TYPE_CHECKING:
    from torch import Tensor

ASKED = (
    *("teacher", "layers", "student", "pool", "depth", "batch", "max_length", "learning_rate"),
    "score_weight",
)
ALIKE = 50
"""Batches' worth of pairs that are sorted by length together, so that little is padding."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--student", type=Path, help="to go on from, with all its layers")
    parser.add_argument("--sets", nargs="+", default=list(LEARNT_FROM), help="to learn from")
    parser.add_argument("--queries", type=int, default=12_000)
    parser.add_argument("--pool", type=int, default=50)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=160)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--score-weight", type=float, default=1.0, help="each layer's is 1")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", "-o", type=Path, help="for the student's runs")
    given = parser.parse_args()
    with redirect_stdout(sys.stderr):  # standard output is for results
        made = given.work / "model"
        claim(given.work / "asked", {name: (str(getattr(given, name)), made) for name in ASKED})
        if not made.exists():
            taught(given, batches(given), made)
        rankers = {"teacher": given.teacher, "student": made}
        for name, source in rankers.items():
            rankers[name] = given.work / name
            if not rankers[name].exists():
                make_start(str(source), rankers[name])
            export_for_speed(rankers[name], progress=Bars())
    for year in SETS:
        with redirect_stdout(sys.stderr):
            row = measured(given, year, rankers)
        print(json.dumps(row), flush=True)


def batches(given: argparse.Namespace) -> list[dict[str, Tensor]]:
    """All pairs as tokens, those of about equal length together, in random order."""
    index, queries = prepared(given), given.work / "queries.jsonl"
    pool = given.work / "pool.trec.gz"
    if not pool.exists():
        retrieve(index, queries, pool, k=given.pool, progress=Bars())
    rng, corpus = random.Random(given.seed), open_index(index)
    texts = {query.id: query.text for query in read_queries(str(queries))}
    pairs = []
    for ranking in read_run(pool):
        best, rest = ranking.hits[: given.depth // 2], ranking.hits[given.depth // 2 :]
        hits = [*best, *rng.sample(rest, min(len(rest), given.depth - len(best)))]
        documents = corpus.fetch([hit.doc_id for hit in hits])
        pairs += [(texts[ranking.query_id], document.text) for document in documents]
    rng.shuffle(pairs)
    tokenizer = read_tokenizer(given.teacher)
    tokenizer.enable_truncation(given.max_length)
    tokenizer.no_padding()
    made: list[dict[str, Tensor]] = []
    many = ALIKE * given.batch
    for start in range(0, len(pairs), many):
        encoded = sorted(tokenizer.encode_batch(pairs[start : start + many]), key=len)
        firsts = range(0, len(encoded), given.batch)
        made += [padded(encoded[first : first + given.batch]) for first in firsts]
    rng.shuffle(made)
    return made


def padded(encoded: list[Any]) -> dict[str, Tensor]:
    """One batch; a padding token is 0 in all of its inputs."""
    width = max(map(len, encoded))
    inputs = {"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}
    return {
        name: torch.tensor([[*getattr(one, of), *[0] * (width - len(one))] for one in encoded])
        for name, of in inputs.items()
    }


class Batches(Dataset[dict[str, "Tensor"]]):
    """Each item is a whole batch."""

    def __init__(self, made: list[dict[str, Tensor]]) -> None:
        self.made = made

    def __len__(self) -> int:
        return len(self.made)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return self.made[place]


class StatesTrainer(Trainer):
    """Its loss is how far the student's hidden states and scores are from the teacher's."""

    teacher: Module
    every: int
    """A student's layer stands for so many of the teacher's."""
    spread: float
    """Of the teacher's scores."""
    score_weight: float

    def compute_loss(
        self, model: Module, inputs: dict[str, Tensor], *_: object, **__: object
    ) -> Tensor:
        """Each part is relative to the size of what is to be reached."""
        with torch.no_grad():
            goal = self.teacher(**inputs, output_hidden_states=True)
        own = model(**inputs, output_hidden_states=True)
        real = inputs["attention_mask"].unsqueeze(-1)
        wanted = goal.hidden_states[self.every :: self.every]
        loss = self.score_weight * ((own.logits - goal.logits) / self.spread).square().mean()
        for place, (mine, theirs) in enumerate(zip(own.hidden_states[1:], wanted, strict=True), 1):
            error, size = (mine - theirs).square(), theirs.square()
            if place == len(wanted):
                loss = loss + error[:, 0].mean() / size[:, 0].mean()
            else:
                loss = loss + (error * real).sum() / (size * real).sum()
        return loss


def taught(given: argparse.Namespace, made: list[dict[str, Tensor]], output: Path) -> None:
    """Train the student and write it to `output`, with all but the weights as its teacher has."""
    teacher = AutoModelForSequenceClassification.from_pretrained(given.teacher, dtype="float32")
    student = deepcopy(teacher)
    teacher.eval()
    layers = student.base_model.encoder.layer
    every, rest = divmod(len(layers), given.layers)
    if rest:
        raise SystemExit(f"{given.layers} layers cannot stand for {len(layers)}: not a divisor")
    if given.student:
        student = AutoModelForSequenceClassification.from_pretrained(given.student, dtype="float32")
    else:
        student.base_model.encoder.layer = ModuleList(layers[every - 1 :: every])
        student.config.num_hidden_layers = given.layers
    for module in student.modules():
        if isinstance(module, Dropout):
            module.p = 0.0  # the states to learn from have none
    student.base_model.embeddings.requires_grad_(requires_grad=False)
    half = given.work / "trainer"
    trainer = StatesTrainer(
        student,
        TrainingArguments(
            str(half),
            per_device_train_batch_size=1,
            num_train_epochs=1,
            learning_rate=given.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=len(made) // 20,
            weight_decay=0.01,
            logging_steps=20,
            save_steps=100,
            save_total_limit=1,
            remove_unused_columns=False,
            report_to=[],
            seed=given.seed,
            use_cpu=True,
            disable_tqdm=True,
            logging_first_step=True,
        ),
        data_collator=lambda items: items[0],
        train_dataset=Batches(made),
    )
    trainer.teacher, trainer.every, trainer.score_weight = teacher, every, given.score_weight
    with torch.no_grad():
        trainer.spread = float(teacher(**made[0]).logits.std())
    joint = [Joint(model, strm=False) for model in (teacher, student)]
    with first_token_only(joint[0]), first_token_only(joint[1]):
        trainer.train(resume_from_checkpoint=get_last_checkpoint(half) if half.exists() else None)
    written = output.with_name(f"{output.name}.half")
    shutil.copytree(
        given.teacher,
        written,
        ignore=shutil.ignore_patterns("*.safetensors", "*.bin", "onnx", "openvino", "README.md"),
        dirs_exist_ok=True,
    )
    student.save_pretrained(written)
    written.rename(output)


if __name__ == "__main__":
    main()
