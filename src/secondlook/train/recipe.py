"""The recipe of a training: a base, data and a list of phases, in one strict TOML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, get_args

from pydantic import Field, field_validator, model_validator

from secondlook.encode.settings import EncodeSettings
from secondlook.recipe import Settings, read_toml
from secondlook.train.phases import Phase  # noqa: TC001 - pydantic reads it
from secondlook.train.settings import WarmPhase
from secondlook.train.triples_settings import TriplesSettings  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from pathlib import Path

NAME = "recipe.toml"
"""How the resolved copy in a finished ranker is called."""
_MAY_BE_NONE = frozenset(
    name
    for name, field in EncodeSettings.model_fields.items()
    if type(None) in get_args(field.annotation)
)
"""Settings of `[encode]` for which `false` stands for None, since TOML has no null."""


class DataSettings(Settings):
    """The files to learn from; relative ones lie beside the recipe, or in `--data`."""

    train: tuple[str, ...] = ()
    """Group files, as `secondlook mine` writes them."""
    triples: TriplesSettings | None = None
    """A file of triples to learn from as well, or instead."""
    validation: str | None = None
    """A group file too, with every candidate that is to be re-ranked. Never the test set."""


class Recipe(Settings):
    """All that makes a ranker, but the weights and data it names."""

    base: str
    """A folder or a hub id; `--base` overrides it."""
    seed: int = Field(7, ge=0)
    encode: dict[str, Any] = Field(default_factory=dict)
    """The encoder's settings that differ from what the base says. For one that can be None,
    TOML's spelling is `false`: `max_query_length = false`."""
    data: DataSettings = DataSettings()
    phases: tuple[Phase, ...] = Field(min_length=1)

    @field_validator("encode")
    @classmethod
    def _check_encode(cls, given: dict[str, Any]) -> dict[str, Any]:
        read = {
            name: None if value is False and name in _MAY_BE_NONE else value
            for name, value in given.items()
        }
        EncodeSettings.model_validate(read)
        return read

    @model_validator(mode="after")
    def _check_phases(self) -> Self:
        if any(isinstance(phase, WarmPhase) for phase in self.phases[1:]):
            raise ValueError("`warm` makes a ranker of the base, so it can only be the first phase")
        return self


def read_recipe(path: Path) -> Recipe:
    """Read a recipe; raises MalformedInput, which says what is wrong with it."""
    return read_toml(path, Recipe)


def resolved(recipe: Recipe, encode: EncodeSettings | None = None) -> str:
    """The recipe as TOML with every default written out; `encode` as the base completed it.

    TOML has no null: what is not set is left out, or under `[encode]` is `false` where leaving it
    out would mean something else.
    """
    import tomlkit

    whole = recipe.model_dump(mode="json", exclude_none=True)
    told = whole["encode"] if encode is None else encode.model_dump(mode="json")
    whole["encode"] = {
        name: False if value is None else value
        for name, value in told.items()
        if value is not None or name in recipe.encode or _default(name) is not None
    }
    return tomlkit.dumps(whole)


def _default(name: str) -> object:
    """Of a setting of `[encode]`."""
    return EncodeSettings.model_fields[name].default
