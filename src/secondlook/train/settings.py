"""The settings of each phase, with the papers' values as defaults. Nothing here needs torch."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from secondlook.analyze import DEFAULT
from secondlook.recipe import Settings

if TYPE_CHECKING:
    from torch import Tensor


class PhaseSettings(Settings):
    """What every phase has: its name, and the module whose `run` it is."""

    phase: str

    module: ClassVar[str] = ""


class WarmPhase(PhaseSettings):
    """The ranker begins as the bi-encoder `base`. Without this phase it begins in joint form."""

    phase: Literal["warm"] = "warm"
    separate_layers: int = Field(0, ge=0)
    """In this many lowest layers query and document do not see each other."""
    cross_attention: bool = True
    """False keeps them apart in all layers: the control that shows what looking across is worth."""


class RankingPhase(PhaseSettings):
    """A phase that learns from groups: its settings, and its loss as a method.

    A loss is a class that says its `phase` and has a `cost` (see `secondlook.train.losses`).
    """

    module: ClassVar[str] = "secondlook.train.ranking"
    needs_labels: ClassVar[bool] = True
    """Whether a query needs a relevant document and another one; all its documents are drawn
    alike where it does not."""
    needs_teacher: ClassVar[bool] = False
    """Whether a query needs a teacher's scores."""
    learns_log_odds: ClassVar[bool] = False
    """Whether scores become log-odds, so that a warm ranker's scale is set to them first."""

    only: tuple[str, ...] = ()
    """The group files this phase learns from, by name; all where none is named."""
    epochs: float = Field(1.0, gt=0)
    """Times every query is seen; documents are drawn anew each time."""
    max_steps: int | None = Field(None, ge=1)
    """Instead of `epochs`."""
    batch: int = Field(16, ge=1)
    """Queries per step and device, whatever memory there is: a step is cut up as need be."""
    positives: int = Field(1, ge=1)
    negatives: int = Field(1, ge=1)
    """How many documents of each kind are drawn for a query; fewer where it has fewer."""
    learning_rate: float = Field(3e-6, gt=0)
    scalar_learning_rate: float = Field(0.02, gt=0)
    """Of the warm form's alpha and gates; a gate is to be open after some fifty steps."""
    head_learning_rate: float = Field(1e-3, gt=0)
    """Of the warm form's head, which reads [CLS] and begins at zero."""
    fit_score_scale: bool = False
    """Whether the loss reads the scores times a factor: the one at which the loss of the start is
    least, found on 32 queries. The ranker's own scores keep their scale."""
    warmup: float = Field(0.1, ge=0, lt=1)
    """The share of the steps in which the learning rate rises."""
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = "linear"
    weight_decay: float = Field(0.01, ge=0)
    max_grad_norm: float = Field(1.0, ge=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    """0 is right on a CPU, where random numbers cost a fifth of the time, for short trainings."""
    average: float = Field(0.0, ge=0, lt=1)
    """At the end validate the mean of the weights over the steps up to the best ones, too, and keep
    it where it is better; a step counts less by this factor for every step since: .99 is about the
    last hundred. 0 keeps no mean."""
    freeze_embeddings: bool = False
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """`auto` is bf16 where the hardware has it."""
    forward_tokens: int | None = Field(None, ge=1)
    """Pairs of like length are scored together, up to this many tokens with their padding; None is
    16,384, on a CPU `backward_tokens` where word embeddings are learnt and 1,024 otherwise."""
    backward_tokens: int | None = Field(None, ge=1)
    """A step with more tokens is cut up and accumulated; halved when memory runs out. None is 4,096
    on a CPU, which is no faster with more, and 65,536 elsewhere."""
    measure: str = "nDCG@10"
    validate_every: int | None = Field(None, ge=1)
    """Steps; None is ten times in the whole phase. The run is saved then, and ten times at least
    in any case."""
    validate_queries: int | None = Field(None, ge=1)
    """At most so many, the first of the file; None is all."""
    patience: int | None = Field(None, ge=1)
    """Stop after so many validations without a better one; None never does."""
    keep: Literal["best", "last"] = "best"
    """Which weights the phase ends with: the best validated, or the start's where none was better;
    or the last, whatever validation says. `last` is for comparing recipes: a choice on some
    validation queries adds noise to every figure."""

    @field_validator("measure")
    @classmethod
    def _known_measure(cls, spelling: str) -> str:
        """Found out while the recipe is read, not when earlier phases have trained for hours."""
        from secondlook.evaluate.measures import parse_measure

        parse_measure(spelling)
        return spelling

    @classmethod
    def name(cls) -> str:
        """What the registry knows it by: its phase, and its loss where the phase has several."""
        loss = cls.model_fields.get("loss")
        phase = str(cls.model_fields["phase"].default)
        return phase if loss is None else f"{phase}.{loss.default}"

    @abstractmethod
    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """How wrong the scores of one query's documents are, as one number that has a gradient.

        All are [documents]: `scores` in float32, `grades` whole numbers of which those above 0 are
        relevant, `teacher` a teacher's scores where the group file holds some.
        """


class AdaptPhase(PhaseSettings):
    """BERT's own training goes on with the user's corpus: hidden words and next sentences."""

    phase: Literal["adapt"] = "adapt"

    module: ClassVar[str] = "secondlook.train.adapt"

    corpus: str
    """A file or folder of documents as `secondlook index` reads them, beside the group files."""
    leave_out: tuple[str, ...] = ()
    """Files of judgments whose documents are not read, such as the test set's: so that nothing of
    what a ranker is tested on was seen before, as monoBERT has it for TREC CAR."""
    fresh: bool = False
    """Whether the encoder begins with random weights in the base's shape: pre-training from
    scratch, for a base that must not have seen the test documents. It takes a large corpus."""
    epochs: float = Field(5.0, gt=0)
    """Times every document is seen, each time with other words hidden."""
    max_steps: int | None = Field(None, ge=1)
    """Instead of `epochs`."""
    batch: int = Field(128, ge=1)
    """Documents per step and device."""
    at_once: int = Field(32, ge=1)
    """Of them, in one forward; the rest is accumulated."""
    max_length: int = Field(128, ge=8)
    hidden_share: float = Field(0.15, gt=0, lt=1)
    whole_words: bool = False
    """Hide all pieces of a word together."""
    learning_rate: float = Field(1e-6, gt=0)
    head_steps: int = Field(500, ge=0)
    """Heads that find words and next sentences start untrained unless the base brings its own: so
    many steps are theirs alone, with the encoder as it was, so that their first errors do not
    spoil it."""
    head_learning_rate: float = Field(1e-3, gt=0)
    warmup: float = Field(0.1, ge=0, lt=1)
    weight_decay: float = Field(0.01, ge=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    freeze_embeddings: bool = False
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    held_out: int = Field(500, ge=1)
    """So many documents (a tenth of the corpus at most) are kept out, to measure perplexity."""
    save_every: int | None = Field(None, ge=1)
    """Steps; None is ten times in the whole phase."""


class CourseSettings(Settings):
    """What the trainings that make no ranker have in common: of weighers and of expanders."""

    epochs: float = Field(default=3.0, gt=0)
    max_steps: int | None = Field(default=None, ge=1)
    """Instead of `epochs`."""
    batch: int = Field(default=16, ge=1)
    """Passages per step and device."""
    at_once: int = Field(default=16, ge=1)
    """Of them, in one forward; the rest is accumulated."""
    learning_rate: float = Field(default=2e-5, gt=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    held_out: int = Field(default=500, ge=1)
    """So many passages (a tenth of them at most) are kept out, to measure what was learnt."""
    save_every: int | None = Field(default=None, ge=1)
    """Steps; None is ten times in all."""


class WeigherTraining(CourseSettings):
    """DeepCT: the paper's learning rate is 2e-5, its batch 16."""

    max_length: int = Field(default=256, ge=16)
    """Tokens read at once; a longer passage is read in parts."""
    analyzer: str = DEFAULT
    """How words become the terms that are weighed: the one of the index to be made."""


class ExpanderTraining(CourseSettings):
    """doc2query: docTTTTTquery's learning rate for a T5 is 1e-4, its batch 128."""

    learning_rate: float = Field(default=1e-4, gt=0)
    max_length: int = Field(default=256, ge=16)
    """Tokens of a passage that are read."""
    max_query_length: int = Field(default=32, ge=4)


class DenoisePhase(PhaseSettings):
    """Unlabelled candidates that score like positives are taken out of the training groups."""

    phase: Literal["denoise"] = "denoise"

    module: ClassVar[str] = "secondlook.train.denoise"

    threshold: float | None = None
    """The raw score above which an unlabelled candidate is taken for a positive that nobody
    marked; 0 is a probability of one half, after `pointwise`."""
    positives_above: float | None = Field(None, gt=0, lt=1)
    """Instead: the threshold is put so that this share of the known positives lies above it."""
    found: Literal["drop", "positive"] = "drop"
    """What becomes of them; `positive` gives them the grade 1."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if (self.threshold is None) == (self.positives_above is None):
            raise ValueError("say either `threshold` or `positives_above`")
        return self
