"""The APIs that the server speaks, by name: each has its routes, and its own shape for errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.errors import SecondlookError
from secondlook.registry import Registry
from secondlook.serve.problems import Refused, answer, message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import APIRouter
    from fastapi.responses import JSONResponse

    from secondlook.serve.problems import ErrorShape


@dataclass(frozen=True, slots=True)
class ApiShape:
    """One API as its clients know it."""

    router: APIRouter
    """Its routes, with their requests and answers; `StrictRoute` reads bodies as ours are read."""
    error: ErrorShape = message
    """Status and body of a request that is refused."""


API_SHAPES: Registry[ApiShape] = Registry(
    "API shape",
    "secondlook.api_shapes",
    {
        "cohere": "secondlook.serve.cohere:SHAPE",
        "cohere-v1": "secondlook.serve.cohere_v1:SHAPE",
        "tei": "secondlook.serve.tei:SHAPE",
        "search": "secondlook.serve.search:SHAPE",
        "operations": "secondlook.serve.health:SHAPE",
    },
)


def all_shapes() -> list[ApiShape]:
    """Every API, ours first; raises SecondlookError where two have a path in common."""
    names = API_SHAPES.names()
    owner: dict[str, str] = {}
    for name in names:
        for path in {getattr(route, "path", "") for route in API_SHAPES[name].router.routes}:
            if path in owner:
                raise SecondlookError(
                    f"the API shapes {owner[path]!r} and {name!r} both answer {path}; uninstall "
                    "the package of one of them"
                )
            owner[path] = name
    return [API_SHAPES[name] for name in names]


class ErrorAnswers:
    """What a refused request is told, in the shape of the API that it asked."""

    def __init__(self, shapes: Sequence[ApiShape]) -> None:
        self._shapes = [
            (getattr(route, "path_regex", None), shape.error)
            for shape in shapes
            for route in shape.router.routes
        ]

    def __call__(self, path: str, problem: Refused) -> JSONResponse:
        """The answer; a path of no API is told in ours."""
        for pattern, error in self._shapes:
            if pattern is not None and pattern.match(path):
                return answer(problem, error)
        return answer(problem, message)
