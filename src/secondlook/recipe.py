"""Settings as frozen, strict models: an unknown key is refused, with the nearest known name."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from secondlook.errors import UnknownName


class Settings(BaseModel):
    """The base of every settings model: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the caller passed
        if isinstance(given, dict):
            for key in given:
                if key not in cls.model_fields:
                    raise UnknownName(f"{cls.__name__} setting", str(key), cls.model_fields)
        return given
