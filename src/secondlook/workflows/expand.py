"""Document expansion by predicted queries (doc2query): an expanded corpus, and its model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.workflows.first_stage import TrainedModel

_AT_ONCE = 8  # documents: some dozens of rows of the decoder


@dataclass(frozen=True, slots=True)
class ExpandResult:
    """An expanded corpus that was written."""

    output: Path
    documents: int
    sampled: int
    """Queries of each document, before any were filtered out."""

    def summary(self) -> str:
        """How many documents and queries."""
        return (
            f"{self.output}: {self.documents:,} documents, {self.sampled} queries sampled for each"
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {"output": str(self.output), "documents": self.documents, "sampled": self.sampled}


def expand(
    corpus: str | Path,
    expander: str | Path,
    output: str | Path,
    *,
    count: int = 10,
    top_k: int = 10,
    ranker: str | Path | None = None,
    keep: float | None = None,
    corpus_format: str = "auto",
    seed: int = 1,
    device: str | None = None,
    ray: str | None = None,
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> ExpandResult:
    """Write the corpus with `count` predicted queries beside each text, to be indexed with it.

    With `ranker`, only the share `keep` of all queries that it scores best is kept, by default 0.3
    (Doc2Query--). Predicted queries that the corpus already has stay beside the new ones; term
    weights are refused, since an index goes by them alone. Interrupted, the same call goes on. With
    `ray`, an address or "local", workers of that cluster process parts of the corpus.
    """
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.errors import WrongArgument
    from secondlook.model.checkpoint import files_fingerprint, open_checkpoint
    from secondlook.model.doc2query import locate_expander
    from secondlook.retrieve.expand import best, unweighed
    from secondlook.scale.documents import expanding
    from secondlook.workflows.first_stage import CorpusCopy

    if keep is not None and ranker is None:
        raise WrongArgument("`keep` is of the queries that a `ranker` scores best: it needs one")
    share = 0.3 if keep is None else keep
    target = Path(output)
    refuse_to_overwrite(target, replace=replace)
    model = locate_expander(str(expander))
    judge = None if ranker is None else open_checkpoint(ranker).folder
    made_with = {
        "expander": files_fingerprint(model),
        "ranker": None if judge is None else files_fingerprint(judge),
        "draw": [count, top_k, seed],
    }
    scorer = None if judge is None else str(judge.absolute())
    tools = partial(expanding, str(model.absolute()), scorer, count, top_k, seed, device)
    copy = CorpusCopy(corpus, corpus_format, target, made_with, tools, _AT_ONCE, ray, unweighed)
    documents = copy.write("expanding", lambda rows: best(rows, share), as_progress(progress))
    return ExpandResult(target, documents, count)


def train_expander(
    corpus: str | Path,
    queries: str | Path,
    qrels: str | Path,
    base: str | Path,
    output: str | Path,
    *,
    corpus_format: str = "auto",
    epochs: float = 3.0,
    max_steps: int | None = None,
    batch: int = 16,
    learning_rate: float = 1e-4,
    max_length: int = 256,
    max_query_length: int = 32,
    seed: int = 1,
    device: str | None = None,
    report_to: Sequence[str] = (),
    progress: Progress | ProgressCallback | None = None,
) -> TrainedModel:
    """Train a model that predicts the queries a passage answers, on judged passages.

    `base` is a seq2seq model, or an encoder, which becomes both encoder and decoder. Interrupted,
    the same call goes on from the last saved step.
    """
    import json
    from hashlib import sha256

    from secondlook.data import read_qrels, read_queries
    from secondlook.model.checkpoint import refuse_to_replace
    from secondlook.model.doc2query import save_expander
    from secondlook.retrieve.expand import text_of
    from secondlook.train import doc2query
    from secondlook.train.settings import ExpanderTraining
    from secondlook.workflows.documents import documents_of
    from secondlook.workflows.first_stage import FirstStageTraining

    target, reported = Path(output), as_progress(progress)
    refuse_to_replace(target)
    settings = ExpanderTraining(
        epochs=epochs,
        max_steps=max_steps,
        batch=batch,
        learning_rate=learning_rate,
        max_length=max_length,
        max_query_length=max_query_length,
    )
    judged = doc2query.answered(read_queries(str(queries)), read_qrels(str(qrels)))
    wanted = {doc_id for doc_id, _ in judged}
    documents = documents_of(corpus, reported, corpus_format)
    texts = {document.id: text_of(document) for document in documents if document.id in wanted}
    pairs = [pair for pair in judged if pair[0] in texts]
    made_of = {
        "settings": settings.model_dump(),
        "data": sha256(json.dumps([texts, pairs], sort_keys=True).encode()).hexdigest(),
    }
    training = FirstStageTraining(target, made_of, base, seed, device, report_to)
    learn = partial(doc2query.train_expander, settings, base, pairs, texts)
    return training.run(learn, save_expander, reported)
