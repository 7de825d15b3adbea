"""A rerank service in memory that speaks every API, and can be slow, full, rude or broken."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass, field

import httpx

from secondlook.remote.address import RemoteAddress
from secondlook.remote.client import RemoteClient
from secondlook.remote.score_cache import ScoreCache
from secondlook.score.remote_ranker import RemoteRanker


def overlap(query, text):
    """A raw score: how many of the query's words the text holds, and a little for its length."""
    wanted, words = set(query.lower().split()), text.lower().split()
    return len(wanted & set(words)) - 1.5 + 0.01 * math.log1p(len(words))


def probability(raw):
    return 1 / (1 + math.exp(-raw))


@dataclass
class Service:
    """Answers requests for httpx; `script` are answers that come before the right ones."""

    score: object = overlap
    script: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    """(path, headers, body) of each request."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request):
        body = json.loads(request.content)
        with self._lock:
            self.asked.append((request.url.path, dict(request.headers), body))
            step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        return step if step is not None else self.answer(request.url.path, body)

    def answer(self, path, body):
        if path == "/rerank":
            scores = [self.score(body["query"], text) for text in body["texts"]]
            rows = [{"index": at, "score": raw} for at, raw in enumerate(scores)]
            return httpx.Response(200, json=sorted(rows, key=lambda row: -row["score"]))
        if path.endswith("/score"):
            scores = [probability(self.score(body["text_1"], text)) for text in body["text_2"]]
            rows = [{"index": at, "score": raw} for at, raw in enumerate(scores)]
            return httpx.Response(200, json={"data": rows})
        scores = [probability(self.score(body["query"], text)) for text in body["documents"]]
        rows = [{"index": at, "relevance_score": one} for at, one in enumerate(scores)]
        rows.sort(key=lambda row: -row["relevance_score"])
        billed = {"billed_units": {"search_units": 1.0}}
        return httpx.Response(200, json={"results": rows[: body["top_n"]], "meta": billed})

    @property
    def sizes(self):
        """How many documents each request had."""
        bodies = (body for _, _, body in self.asked)
        return [
            len(body.get("documents", body.get("texts", body.get("text_2")))) for body in bodies
        ]


def client(service, folder, address="https://rank.example/v2/rerank", waits=None, **more):
    """A client of the service; it does not wait, but notes for how long it would have."""

    def pause(seconds):
        if waits is not None:
            waits.append(seconds)
        return False

    return RemoteClient(
        RemoteAddress.parse(address),
        cache=ScoreCache(folder / "scores.sqlite") if folder is not None else None,
        transport=httpx.MockTransport(service),
        pause=pause,
        **more,
    )


def ranker(service, folder, address="https://rank.example/v2/rerank", **more):
    return RemoteRanker(client(service, folder, address, **more))
