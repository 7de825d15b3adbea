"""DR-BERT's first phase: the encoder goes on with BERT's own training, on the user's corpus."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file

from secondlook.data import read_corpus, read_qrels
from secondlook.data.durable import replacing_file, write_at_once
from secondlook.encode.template import Template
from secondlook.errors import UnusableTokenizer
from secondlook.score.torch_backend import device_of
from secondlook.train import processes
from secondlook.train.base_heads import put_into
from secondlook.train.course import Course, Shown, TrainingExamples, held_out, teach
from secondlook.train.phase import Outcome
from secondlook.train.pretraining import Pretraining, counts, gather
from secondlook.train.ranking import prepared, verbosity_kept
from secondlook.train.sentences import NO_NEXT, ExampleMaker, Sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.model.network import Model
    from secondlook.train.phase import Place, TrainData
    from secondlook.train.settings import AdaptPhase

_MASKS = ("[MASK]", "<mask>")
_HELD_OUT_EPOCH = 2**31  # no training epoch draws as the held-out documents are drawn


@dataclass(frozen=True, slots=True)
class Held:
    """How well the hidden words of held-out documents are found."""

    perplexity: float
    next_accuracy: float


def run(settings: AdaptPhase, start: Model, data: TrainData, place: Place) -> Outcome:
    """The ranker with its encoder adapted; its head is as it was."""
    device = device_of(place.device)
    place.folder.mkdir(parents=True, exist_ok=True)
    own = processes.share(settings.batch, place.folder / "step.json")
    settings = settings.model_copy(update={"batch": own})
    recital = _recital(settings, start, data, place)
    unseen, learned = held_out(
        len(recital.sentences),
        settings.held_out,
        place.seed,
        f"{settings.corpus} has {len(recital.sentences)} documents with text; to adapt to a corpus "
        "takes thousands, and ten at the least",
    )
    torch.manual_seed(place.seed)
    if settings.fresh:
        _begin_anew(start)
    network = Pretraining(start.network)
    trained = set() if settings.fresh else put_into(network.heads, place.folder)
    # Each has second parts of its own documents: none is measured that was learned from.
    measured = replace(recital, documents=sorted(unseen))
    taught = replace(recital, documents=sorted(learned))
    teach = _Adaptation(settings, network, taught, learned, place, device, trained)
    with prepared(start, settings, device), verbosity_kept():
        teach.heads()
        before = _measured(teach, measured, unseen, place.folder / "start.json")
        steps = teach.all()
        after = measure(network, measured, unseen, settings.at_once)
    place.watch.say(
        f"perplexity on {len(unseen):,} held-out documents: {before.perplexity:.2f} before, "
        f"{after.perplexity:.2f} after"
    )
    metrics = {
        "steps": float(steps),
        "documents": float(len(learned)),
        "perplexity": after.perplexity,
        "perplexity at the start": before.perplexity,
        "next sentence": after.next_accuracy,
        "next sentence at the start": before.next_accuracy,
    }
    learned_from = {Path(settings.corpus).name: recital.sentences.fingerprint}
    fitted_to_other_scores = {"calibration": None, "fusion": None}
    void = start.settings.model_copy(update=fitted_to_other_scores)
    return Outcome(replace(start, settings=void), data, learned_from, metrics, teach.history)


def measure(
    network: Pretraining, recital: ExampleMaker, documents: Sequence[int], at_once: int
) -> Held:
    """The same hidden words each time, so that two figures can be compared."""
    lost, hidden, right, asked = 0.0, 0, 0, 0
    device = next(network.parameters()).device
    network.eval()
    for first in range(0, len(documents), at_once):
        some = [recital.example(one, _HELD_OUT_EPOCH) for one in documents[first : first + at_once]]
        batch = {name: rows.to(device) for name, rows in gather(some, network.network).items()}
        with torch.inference_mode():
            found = network(**batch)
        count = sum(len(example.hidden) for example in some)
        lost, hidden = lost + float(found["words"]) * count, hidden + count
        right += int(found["right"])
        asked += sum(example.follows != NO_NEXT for example in some)
    return Held(exp(lost / hidden), right / max(asked, 1))


class _Adaptation:
    """The two stages of learning, each resumable."""

    def __init__(
        self,
        settings: AdaptPhase,
        network: Pretraining,
        recital: ExampleMaker,
        learned: list[int],
        place: Place,
        device: torch.device,
        trained: set[str],
    ) -> None:
        self.settings, self.network, self.recital = settings, network, recital
        self._trained = trained  # weights of the heads that the base brought
        self._learned, self._place, self._device = learned, place, device
        self._course = Course.of(settings, len(learned))
        self.history: tuple[dict[str, float], ...] = ()

    def heads(self) -> None:
        """The untrained heads alone, until they read the encoder as it is."""
        kept = self._place.folder / "heads.safetensors"
        if not kept.is_file():
            own = dict(self.network.heads.named_parameters())
            as_they_are = [own[name] for name in sorted(self._trained)]
            trainable = [w for w in self.network.network.parameters() if w.requires_grad]
            trainable += as_they_are
            for weight in trainable:
                weight.requires_grad = False
            steps, rate = self.settings.head_steps, self.settings.head_learning_rate
            if steps and len(as_they_are) < len(own):
                course = replace(self._course, steps=steps, learning_rate=rate)
                self._train("heads", course, "warming up the heads")
            for weight in trainable:
                weight.requires_grad = True
            if processes.first():
                with replacing_file(kept) as half:
                    save_file(self.network.heads.state_dict(), half)
        processes.wait()
        self.network.heads.load_state_dict(load_file(kept))

    def all(self) -> int:
        """Heads and encoder together; gives the number of steps."""
        logged = self._train("learning", self._course, "adapting")
        self.history = tuple(
            {"step": float(point["step"]), "loss": float(point["loss"])}
            for point in logged
            if "loss" in point
        )
        return self._course.steps

    def _train(self, name: str, course: Course, doing: str) -> list[dict[str, Any]]:
        recital, network = self.recital, self.network.network
        shown = Shown(recital.example, self._learned, course.shown, recital.seed)
        return teach(
            self.network,
            TrainingExamples(
                course, shown, lambda examples: gather(examples, network), name, doing, counts
            ),
            self._place,
            self._device,
        )


def _recital(settings: AdaptPhase, start: Model, data: TrainData, place: Place) -> ExampleMaker:
    tokenizer = start.tokenizer
    masks = [mask for mask in map(tokenizer.token_to_id, _MASKS) if mask is not None]
    if not masks:
        raise UnusableTokenizer(
            "the tokenizer has no [MASK] or <mask>, so no word can be hidden; adapt a base that "
            "was pre-trained by hiding words"
        )
    source = data.folder / settings.corpus
    corpus = read_corpus(source if source.exists() else settings.corpus)
    unread = {d for name in settings.leave_out for d in _judged(data.folder, name)}
    corpus = (document for document in corpus if document.id not in unread)
    folder = place.folder / "sentences"
    if processes.first():  # the others read what it stores
        Sentences.store(folder, corpus, tokenizer)
    processes.wait()
    return ExampleMaker(
        Sentences(folder),
        Template.read(tokenizer, "joint"),
        min(settings.max_length, start.settings.encode.max_length),
        settings.hidden_share,
        settings.whole_words,
        masks[0],
        tokenizer.get_vocab_size(),
        place.seed,
    )


def _judged(folder: Path, name: str) -> set[str]:
    """The documents that a file of judgments names."""
    source = folder / name
    grades = read_qrels(source if source.exists() else name)
    return {doc_id for judged in grades.values() for doc_id in judged}


def _begin_anew(start: Model) -> None:
    """Give the encoder random weights, drawn as its family draws them."""
    encoder: Any = start.network.encoder
    encoder.load_state_dict(type(encoder)(encoder.config).state_dict(), strict=False)


def _measured(teach: _Adaptation, recital: ExampleMaker, unseen: Sequence[int], kept: Path) -> Held:
    """The figure before; kept, so that a resume need not undo what was learnt since."""
    if processes.first() and not kept.is_file():
        found = measure(teach.network, recital, unseen, teach.settings.at_once)
        write_at_once(kept, json.dumps([found.perplexity, found.next_accuracy]))
    processes.wait()
    return Held(*json.loads(kept.read_text("utf-8")))
