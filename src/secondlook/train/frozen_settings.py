from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from secondlook.errors import UnknownName
from secondlook.model.settings import FrozenSettings
from secondlook.train.losses import LOSSES, variants
from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    from torch import Tensor


class FrozenPhase(RankingPhase):
    """CCNU's ranker: the encoder stays as it is, and a network over its features learns.

    The ranker takes the frozen form here. Of the settings above, `freeze_embeddings` says nothing.
    """

    phase: Literal["frozen"] = "frozen"
    learning_rate: float = Field(1e-3, gt=0)
    warmup: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    dropout: float = Field(0.4, ge=0, lt=1)
    loss: str = "hinge"
    """One of those of the phase `pairwise`."""
    margin: float = Field(1.0, gt=0)
    """Of the hinge."""
    form: FrozenSettings = FrozenSettings()

    module: ClassVar[str] = "secondlook.train.frozen"

    @field_validator("loss")
    @classmethod
    def _check_loss(cls, given: str) -> str:
        if given not in (known := variants("pairwise")):
            raise UnknownName("pairwise loss", given, known)
        return given

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """The pairwise loss of this name."""
        pairwise = LOSSES[f"pairwise.{self.loss}"]  # every step comes here: no list of all names
        own = {"margin": self.margin} if "margin" in pairwise.model_fields else {}
        return pairwise.model_validate(own).cost(scores, grades, teacher)
