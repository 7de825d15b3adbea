"""Term weights for first-stage retrieval (DeepCT): a weighted corpus, and the model behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.workflows.first_stage import TrainedModel

_AT_ONCE = 128  # enough that documents of like length meet, little to lose by a kill


@dataclass(frozen=True, slots=True)
class WeighResult:
    """A weighted corpus that was written."""

    output: Path
    documents: int

    def summary(self) -> str:
        """How many documents."""
        return f"{self.output}: {self.documents:,} documents weighted"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {"output": str(self.output), "documents": self.documents}


def weigh(
    corpus: str | Path,
    weigher: str | Path,
    output: str | Path,
    *,
    corpus_format: str = "auto",
    scale: float = 100.0,
    shape: Literal["root", "linear"] = "root",
    device: str | None = None,
    ray: str | None = None,
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> WeighResult:
    """Write the corpus with term weights beside each text, to be indexed as term frequencies.

    A term of weight 1 gets the frequency `scale`; others scale · √weight (`root`) or
    scale · weight (`linear`). Interrupted, the same call goes on. With `ray`, an address or
    "local", workers of that cluster process parts of the corpus.
    """
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.model.checkpoint import files_fingerprint, open_trained
    from secondlook.model.deepct import CARD, WeigherSettings
    from secondlook.retrieve.weigh import FrequencySettings
    from secondlook.scale.documents import weighing
    from secondlook.score.word_weights import precision_on
    from secondlook.workflows.first_stage import CorpusCopy

    target = Path(output)
    refuse_to_overwrite(target, replace=replace)
    folder, _ = open_trained(str(weigher), "weigh", CARD, WeigherSettings)
    settings = FrequencySettings(scale=scale, shape=shape)
    made_with = {
        "weigher": files_fingerprint(folder),
        "frequency": settings.model_dump(),
        "precision": precision_on(device),
    }
    tools = partial(weighing, str(folder.absolute()), settings, device)
    copy = CorpusCopy(corpus, corpus_format, target, made_with, tools, _AT_ONCE, ray)
    documents = copy.write("weighing", lambda rows: rows(), as_progress(progress))
    return WeighResult(target, documents)


def train_weigher(
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
    learning_rate: float = 2e-5,
    max_length: int = 256,
    language: str = "english",
    seed: int = 1,
    device: str | None = None,
    report_to: Sequence[str] = (),
    progress: Progress | ProgressCallback | None = None,
) -> TrainedModel:
    """Train a term-weighting model on the query term recall of judged passages.

    Interrupted, the same call goes on from the last saved step.
    """
    import json
    from hashlib import sha256

    from secondlook.data import Fingerprint, read_qrels, read_queries
    from secondlook.model.checkpoint import refuse_to_replace
    from secondlook.model.deepct import save_weigher
    from secondlook.train import deepct
    from secondlook.train.settings import WeigherTraining
    from secondlook.workflows.documents import documents_of
    from secondlook.workflows.first_stage import FirstStageTraining

    target, reported = Path(output), as_progress(progress)
    refuse_to_replace(target)
    settings = WeigherTraining(
        epochs=epochs,
        max_steps=max_steps,
        batch=batch,
        learning_rate=learning_rate,
        max_length=max_length,
        analyzer=language,
    )
    targets = deepct.recalls(read_queries(str(queries)), read_qrels(str(qrels)), language)
    documents = documents_of(corpus, reported, corpus_format)
    passages = [document for document in documents if document.id in targets]
    made_of = {
        "settings": settings.model_dump(),
        "passages": Fingerprint.of(passages).digest(),
        "targets": sha256(json.dumps(targets, sort_keys=True).encode()).hexdigest(),
    }
    training = FirstStageTraining(target, made_of, base, seed, device, report_to)
    learn = partial(deepct.train_weigher, settings, base, passages, targets)
    return training.run(learn, save_weigher, reported)
