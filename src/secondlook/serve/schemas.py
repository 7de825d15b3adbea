"""What the shapes of several APIs have in common."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field

QUERY = "how do cats land on their feet"
TEXTS = ["Cats turn in the air and land on their feet.", "The stock market fell on Monday."]

TopN = Annotated[int, Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[str, Field(max_length=256)]
"""Bounded, as warnings and errors repeat it."""
Texts = Annotated[list[str], FailFast()]
"""The first wrong item is told, not each of a million."""
Unit = Annotated[float, Field(ge=0, le=1)]
FirstStageScores = Annotated[list[Annotated[float, Field(ge=-3e38, le=3e38)]] | None, FailFast()]
"""Within float32, so that no sum of them is infinite."""


def example(**fields: Any) -> ConfigDict:  # noqa: ANN401 - JSON
    """What the API's description shows as an example."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class CohereError(BaseModel):
    """What went wrong."""

    message: str
