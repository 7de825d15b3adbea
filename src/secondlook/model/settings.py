"""What a checkpoint says of itself in `secondlook.json`: everything that is not a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from secondlook.encode.settings import EncodeSettings  # noqa: TC001 - pydantic reads it
from secondlook.recipe import Settings

if TYPE_CHECKING:
    from secondlook.encode.settings import Form


class WarmSettings(Settings):
    """The warm form: what it took over from its bi-encoder, and where the parts stay separate."""

    pooling: Literal["mean", "cls"] = "mean"
    separate_layers: int = Field(default=0, ge=0)
    """In this many lowest layers the parts do not see each other, so a document's states there
    can be kept for the next query. In all layers: the bi-encoder itself."""


class FrozenSettings(Settings):
    """The frozen form: the sizes of what stands on the encoder's features."""

    hidden: int = Field(default=125, ge=1)
    """Of each direction of the contextual layers; SDNet's."""
    top: int = Field(default=10, ge=1)
    """How many of the document's best matching tokens the score is made of."""
    mlp: int = Field(default=32, ge=1)
    """Of the hidden layer between these and the score."""


ScoreSource = Literal["reference pairs", "corpus", "training data", "positives only", "judgments"]
"""What the map from raw scores to relevance scores was fitted on."""

JUDGED: tuple[ScoreSource, ...] = ("judgments", "positives only")
"""The sources that make relevance scores estimates of probabilities."""


class FittedOn(Settings):
    """What a calibration was fitted on."""

    source: ScoreSource
    pairs: int = Field(ge=0)
    relevant: int = Field(ge=0)
    """How many of the pairs counted as relevant, or as related where nobody judged them."""
    assumed: str = ""
    """What the fit takes for granted, in a sentence."""
    data: str = ""
    """The fingerprint of the judgments and the run, or of the texts."""
    queries: str = ""
    """Short hashes of the query ids, separated by spaces: `report` finds by them which queries the
    fit has seen."""


class _Calibration(Settings):
    fitted_on: FittedOn | None = None
    """None in checkpoints of versions that did not record it, and fitted to judgments only."""

    @property
    def source(self) -> ScoreSource:
        """What it was fitted on."""
        return "judgments" if self.fitted_on is None else self.fitted_on.source


class PlattCalibration(_Calibration):
    """relevance score = sigmoid(slope · raw score + intercept)."""

    kind: Literal["platt"] = "platt"
    slope: float
    intercept: float


class IsotonicCalibration(_Calibration):
    """The line through the points (raw scores, probabilities), level beyond its ends."""

    kind: Literal["isotonic"] = "isotonic"
    scores: tuple[float, ...] = Field(min_length=1)
    """Ascending."""
    probabilities: tuple[float, ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.scores) != len(self.probabilities):
            raise ValueError("an isotonic calibration has one probability for each of its scores")
        return self


class FusionSettings(Settings):
    """score = weight · first stage + (1 - weight) · ranker, each on a scale made for the query."""

    weight: float = Field(ge=0, le=1)
    scale: Literal["min-max", "z", "ranks", "raw"] = "min-max"
    """`raw` takes both scores as they are."""


class Phase(Settings):
    """A step of training that made this checkpoint from the one before."""

    name: str
    data: dict[str, str] = Field(default_factory=dict)
    """What it learned from: name → fingerprint."""
    labels: str = ""
    """Where its judgments came from, if not from people: clicks, generated queries."""
    metrics: dict[str, float] = Field(default_factory=dict)

    @property
    def figures(self) -> str:
        """The metrics in one line."""
        return ", ".join(f"{name} {value:g}" for name, value in self.metrics.items())


class Lineage(Settings):
    """Where the weights come from."""

    base: str
    """The hub id, or the name of the folder."""
    phases: tuple[Phase, ...] = ()
    """Oldest first."""

    def then(self, phase: Phase) -> Self:
        """The lineage of what this phase made of them."""
        return self.model_copy(update={"phases": (*self.phases, phase)})


class RankerSettings(Settings):
    """The contents of `secondlook.json`."""

    version: Literal[1] = 1
    encode: EncodeSettings
    warm: WarmSettings | None = None
    frozen: FrozenSettings | None = None
    trained: bool = True
    """Whether scores mean anything; a new joint ranker has a random head until it is trained."""
    activation: Literal["identity", "sigmoid", "tanh"] = "identity"
    """What sentence-transformers applies to the logit; written back so that it still does."""
    calibration: Annotated[
        PlattCalibration | IsotonicCalibration | None, Field(discriminator="kind")
    ] = None
    """From raw scores to relevance scores; where it is None, a ranker that is loaded fits a scale
    to the reference pairs when it is first asked for one."""
    fusion: FusionSettings | None = None
    """What the first stage's score adds to the ranker's; nothing where it is None."""
    lineage: Lineage

    @property
    def form(self) -> Form:
        """What kind of network it is."""
        if self.frozen is not None:
            return "frozen"
        return "joint" if self.warm is None else "warm"

    @property
    def calibrated(self) -> bool:
        """Whether relevance scores were fitted to judgments."""
        return self.calibration is not None and self.calibration.source in JUDGED

    @property
    def first_stage_alone(self) -> bool:
        """Whether the ranker's own scores have no weight in the final order."""
        return self.fusion is not None and self.fusion.weight == 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.warm is not None and self.frozen is not None:
            raise ValueError("a ranker has `warm` or `frozen` settings, not both")
        if self.encode.form != self.form:
            raise ValueError(
                f"`encode.form` is {self.encode.form!r}, and the settings are those of the "
                f"{self.form} form"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _frozen_once_called_warm(cls, given: Any) -> Any:  # noqa: ANN401 - whatever was passed
        """Frozen rankers of older versions say `encode.form = "warm"`."""
        if not isinstance(given, dict) or given.get("frozen") is None or given.get("warm"):
            return given
        encode = given.get("encode")
        if isinstance(encode, dict) and encode.get("form") == "warm":
            return given | {"encode": encode | {"form": "frozen"}}
        return given
