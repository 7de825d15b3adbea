"""The app: the routes, the middleware before them, and what goes wrong in the words of each API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException

import secondlook
from secondlook.serve.api_shapes import ErrorAnswers, all_shapes
from secondlook.serve.middleware import RequestMiddleware
from secondlook.serve.problems import Refused, malformed

if TYPE_CHECKING:
    from starlette.responses import Response

    from secondlook.serve.serving import Serving

PAGE = Path(__file__).parent / "page"
"""The search page: plain files, given out as they are."""


def build_app(serving: Serving) -> FastAPI:
    """An ASGI app that answers for `serving`."""
    app = FastAPI(
        title="secondlook",
        version=secondlook.__version__,
        summary="Rerank and search with your own ranker.",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a path with a slash behind it is another
    )
    shapes = all_shapes()
    app.state.serving = serving
    app.state.answers = answers = ErrorAnswers(shapes)
    secured = [Depends(HTTPBearer(auto_error=False))] if serving.keys is not None else []
    for shape in shapes:
        app.include_router(shape.router, dependencies=secured)
    _add_page(app)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_middleware(
        RequestMiddleware,
        serving=serving,
        paths=frozenset(app.openapi()["paths"]),
        answers=answers,
    )
    return app


def _add_page(app: FastAPI) -> None:
    """The search page at `/`, a route that takes no other path or method, and its files."""
    files = StaticFiles(directory=PAGE)

    async def search_page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    app.add_route("/", search_page, include_in_schema=False)
    app.mount("/page", files)


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Refused)
    return _answer(request, problem)


async def _malformed(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    return _answer(request, malformed(problem))


async def _http(request: Request, problem: Exception) -> Response:
    """What FastAPI and the limits say, in our shape."""
    assert isinstance(problem, StarletteHTTPException)
    told = _answer(request, Refused(problem.status_code, str(problem.detail)))
    told.headers.update(problem.headers or {})
    return told


def _answer(request: Request, problem: Refused) -> Response:
    answers: ErrorAnswers = request.app.state.answers
    return answers(request.scope["path"], problem)
