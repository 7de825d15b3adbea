"""Parts that are chosen by name: ours, those of installed packages, those a program adds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from secondlook.errors import SecondlookError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


class Registry(Generic[T]):
    """One kind of part by name; a part is imported when it is asked for, and not before.

    A package adds its own by an entry point of the registry's group, which names the part:

        [project.entry-points."secondlook.engines"]
        mine = "my_package.engine:MyEngine"

    A program adds one for as long as it runs with `add`.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, str]) -> None:
        self.kind, self.group = kind, group
        self._own = dict(own)
        """Names of ours, and where each is: "module:attribute"."""
        self._loaded: dict[str, T] = {}
        self._added: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """The part of this name; raises UnknownName with the nearest one."""
        if name in self._added:
            return self._added[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._added or name in self._own or name in self._installed()

    def names(self) -> tuple[str, ...]:
        """Ours first, then those of installed packages, then those added, each once."""
        return tuple(dict.fromkeys([*self._own, *self._installed(), *self._added]))

    def add(self, name: str, part: T) -> None:
        """Add a part, or put a new one in the place of one that was added under this name."""
        if name in self._own:
            raise SecondlookError(
                f"{name!r} is a {self.kind} of secondlook itself; choose another name"
            )
        self._added[name] = part

    def _installed(self) -> dict[str, Any]:
        from importlib.metadata import entry_points  # takes longer than the rest of this module

        return {entry.name: entry for entry in entry_points(group=self.group)}

    def _load(self, name: str) -> T:
        if name in self._own:
            module, attribute = self._own[name].split(":")
            own: T = getattr(import_module(module), attribute)
            return own
        if (entry := self._installed().get(name)) is None:
            raise UnknownName(self.kind, name, self.names())
        try:
            part: T = entry.load()
        except (ImportError, AttributeError) as error:
            raise SecondlookError(
                f"the {self.kind} {name!r} of the package {entry.dist.name} cannot be loaded "
                f"({error}); update or reinstall that package"
            ) from error
        return part
