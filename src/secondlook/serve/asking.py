"""What the routes share: from a request's texts to a SecondLook."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from fastapi import Header, Request, Response

from secondlook.serve.outcome import SecondLook
from secondlook.serve.problems import Refused
from secondlook.serve.serving import Serving, unless_gone
from secondlook.types import Document, Query

Deadline = Annotated[
    float | None,
    Header(
        alias="X-Deadline-Seconds",
        ge=0.1,
        le=3600,
        allow_inf_nan=False,
        description="Answer within so many seconds, with what is scored by then. The server's own "
        "deadline holds where it is shorter.",
    ),
]


def serving_of(request: Request) -> Serving:
    """What this server serves."""
    serving: Serving = request.app.state.serving
    return serving


async def reranked(
    request: Request,
    model: str | None,
    query: str,
    texts: Sequence[str],
    seconds: float | None,
    first: Sequence[float] | None = None,
) -> SecondLook:
    """The texts scored, the first stage's best first where its scores (`first`) are known.

    Raises Refused for what is beyond the limits, and for such scores that are not one for each
    text.
    """
    serving = serving_of(request)
    until = serving.until(seconds)
    serving.limits.check(query, texts)
    if first is not None and len(first) != len(texts):
        raise Refused(
            422,
            f"first_stage_scores: {len(first):,} scores for {len(texts):,} documents; give one for "
            "each, in their order",
        )
    documents = [Document("", text) for text in texts]
    best_first = [] if first is None else np.argsort(-np.asarray(first), kind="stable").tolist()
    scoring = serving.second_stage.score(
        serving.name_of(model), Query("", query), documents, until, order=best_first
    )
    look = await unless_gone(request.receive, scoring)
    jot(request, query, look)
    return look


def jot(request: Request, query: str, look: SecondLook) -> None:
    """Add to the request's line in the log."""
    facts = request.state.visit.facts
    facts |= {
        "ranker": look.name,
        "documents": len(look.outcome.scored),
        "scored": int(look.outcome.scored.sum()),
    }
    if serving_of(request).log_texts:
        facts["query"] = query


def mark_partial(response: Response, look: SecondLook) -> None:
    """For APIs whose body has no place to say so."""
    if look.outcome.partial:
        response.headers["X-Secondlook-Partial"] = "true"
