"""Settings as frozen, strict models, in code or TOML: an unknown key is refused by name."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from secondlook.errors import MalformedInput, SecondlookError, UnknownName

if TYPE_CHECKING:
    from pathlib import Path


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


S = TypeVar("S", bound=Settings)


def read_toml(path: Path, kind: type[S]) -> S:
    """What a TOML file sets; raises MalformedInput, which says what is wrong."""
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        reason = error.strerror or error
        raise MalformedInput(path, None, f"cannot be read: {reason}") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"]) or kind.__name__.lower()
        raise MalformedInput(path, None, f"{place}: {problem['msg']}") from error
    except (SecondlookError, ValueError) as error:  # an unknown name; no TOML, or no UTF-8
        raise MalformedInput(path, None, str(error)) from error
