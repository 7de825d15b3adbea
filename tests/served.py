"""A real server on a loopback port, in a thread of the test's own process."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn

from secondlook.errors import EngineProblem
from secondlook.retrieve.folder import IndexCard
from secondlook.retrieve.memory import MemoryIndex
from secondlook.serve.app import build_app
from secondlook.serve.index import ServedIndex
from secondlook.serve.protocol import BoundedProtocol
from secondlook.serve.serving import Serving

TEXTS = [
    "the tide of the sea",
    "who is cape fear",
    "a river is deep",
    "fish in the deep sea",
    "bogue is in the river",
]
QUERY = "what is the tide"


@contextmanager
def listening(serving: Serving):
    """The base url of a server that is up."""
    config = uvicorn.Config(
        build_app(serving),
        http=BoundedProtocol,
        limit_concurrency=serving.limits.connections,
        log_config=None,
        access_log=False,
        lifespan="off",
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            for queue in serving.queues.values():
                queue.close()


@dataclass
class Watched:
    """A ranker that can be held back, made slow or broken, and says what it was asked."""

    ranker: object
    seconds_per_pair: float = 0.0
    breaks_on: str | None = None
    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    chunks: list[list[str]] = field(default_factory=list)

    def __post_init__(self):
        self.settings, self.fusion = self.ranker.settings, self.ranker.fusion
        self.go.set()
        self._texts = {}

    def encode(self, pairs):
        if any(self.breaks_on is not None and self.breaks_on in d.text for _, d in pairs):
            raise ValueError("this text breaks the ranker")
        encoded = self.ranker.encode(pairs)
        self._texts |= {
            id(one): document.text for one, (_, document) in zip(encoded, pairs, strict=True)
        }
        return encoded

    def score_encoded(self, encoded):
        self.chunks.append([self._texts[id(one)] for one in encoded])
        self.begun.set()
        assert self.go.wait(30)
        time.sleep(self.seconds_per_pair * len(encoded))
        return self.ranker.score_encoded(encoded)

    def relevance(self, scores):
        return self.ranker.relevance(scores)

    @property
    def scale(self):
        return self.ranker.scale

    @property
    def score_meaning(self):
        return self.ranker.score_meaning


class Engine(MemoryIndex):
    """An engine that can be slow or down."""

    def __init__(self, documents):
        super().__init__(documents)
        self.card = IndexCard(engine="bm25s", settings={}, documents=1, fingerprint="")
        self.asked, self.seconds, self.down = 0, 0.0, False

    def retrieve(self, queries, k):
        self.asked += 1
        time.sleep(self.seconds)
        if self.down:
            raise EngineProblem("cannot reach the cluster at http://secret:9200")
        return super().retrieve(queries, k)


def serving(ranker, index=None, keys=None, **more):
    """A Serving of one ranker that is loaded already."""
    return Serving(
        {"tiny": "tiny"},
        lambda _: ranker,
        index=ServedIndex.of(index) if index is not None else None,
        keys_file=keys,
        **more,
    )
