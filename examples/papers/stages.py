"""What the scripts of the papers have in common: stages that are done once, and arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from secondlook.workflows.evaluate import evaluate_runs
from secondlook.workflows.index import build_index
from secondlook.workflows.mine import mine
from secondlook.workflows.rerank import rerank
from secondlook.workflows.retrieve import retrieve
from secondlook.workflows.train import train

RECIPES = Path(__file__).parents[2] / "recipes"


def once(target: Path, make: Callable[[], object]) -> Path:
    """Make a file or folder unless it is there: a script that was killed goes on."""
    if not target.exists():
        print(f"making {target}", file=sys.stderr, flush=True)
        make()
    return target


@dataclass(frozen=True)
class Run:
    """Where the data lie, where results go, and what differs from the paper's settings."""

    data: Path
    work: Path
    base: str | None = None
    """Instead of the recipes' own base."""
    recipes: Path = RECIPES
    depth: int = 1000
    """Candidates to re-rank."""
    max_steps: int | None = None
    """Of trainings whose length no recipe says: those of the first stage."""
    device: str | None = None

    def enriched(
        self, learn: Callable[..., object], use: Callable[..., object], base: str | Path, name: str
    ) -> Path:
        """The collection with what a model of the first stage adds: trained, then used on it."""
        collection, model = self.data / "collection.tsv", self.work / name
        judged = self.data / "queries.train.tsv", self.data / "qrels.train.tsv"
        options = {"max_steps": self.max_steps, "device": self.device}
        once(model, lambda: learn(collection, *judged, base, model, **options))
        target = self.work / f"{name}.jsonl"
        return once(target, lambda: use(collection, model, target, device=self.device))

    def index(self, corpus: Path, name: str = "bm25", *, k1: float = 0.9, b: float = 0.4) -> Path:
        """A BM25 index, by default with Anserini's parameters."""
        target = self.work / f"{name}.index"
        return once(target, lambda: build_index(corpus, target, k1=k1, b=b))

    def candidates(self, index: Path, queries: str, qrels: str, name: str) -> Path:
        """The first stage's run of the judged queries."""
        target = self.work / f"{name}.trec"
        files = self.data / queries, target
        return once(target, lambda: retrieve(index, *files, k=self.depth, judged=self.data / qrels))

    def groups(
        self, index: Path, queries: str, qrels: str, target: Path, depth: int | None = None
    ) -> Path:
        """Validation groups: every candidate of the judged queries."""
        files, ranks = (self.data / queries, self.data / qrels, target), (1, depth or self.depth)
        return once(target, lambda: mine(index, *files, ranks=ranks, keep_all=True))

    def ranker(self, recipe: str, name: str | None = None, base: str | Path | None = None) -> Path:
        """The re-ranker that a recipe makes."""
        target = self.work / (name or recipe)
        return once(
            target,
            lambda: train(
                self.recipes / f"{recipe}.toml",
                target,
                data=self.data,
                base=base or self.base,
                device=self.device,
                resume=True,
            ),
        )

    def reranked(self, run: Path, index: Path, queries: str, ranker: Path, name: str) -> Path:
        """The candidates in the re-ranker's order."""
        target = self.work / f"{name}.trec"
        backend = "torch" if self.device else "auto"
        files = run, index, self.data / queries, ranker, target
        return once(target, lambda: rerank(*files, backend=backend))

    def measured(self, qrels: str, runs: list[Path], measures: list[str]) -> str:
        """A table of the runs."""
        return evaluate_runs(self.data / qrels, runs, measures=measures).summary()


def asked(description: str) -> Run:
    """The arguments of a script."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=form)
    parser.add_argument("data", type=Path, help="folder with the files named above")
    parser.add_argument("work", type=Path, help="folder for everything that is made")
    parser.add_argument("--base", help="instead of the recipes' own base model")
    parser.add_argument("--recipes", type=Path, default=RECIPES)
    parser.add_argument("--depth", type=int, default=1000, help="candidates to re-rank")
    parser.add_argument("--max-steps", type=int, help="of the first stage's trainings")
    parser.add_argument("--device")
    given = Run(**vars(parser.parse_args()))
    given.work.mkdir(parents=True, exist_ok=True)
    return given
