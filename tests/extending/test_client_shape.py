"""A rerank service of another vendor: one file, one line that registers it."""

from __future__ import annotations

import json

import httpx
import pytest

from secondlook.errors import UnknownName
from secondlook.remote.address import RemoteAddress
from secondlook.remote.client import RemoteClient
from secondlook.remote.client_shapes import CLIENT_SHAPES, ClientShape

SHAPE = ClientShape(
    paths=("/acme/rank",),
    request=lambda query, documents, model: {"q": query, "items": list(documents), "use": model},
    scores=lambda answer: enumerate(answer["values"]),
    batch=2,
)


def test_it_is_asked_by_its_path_and_by_its_name():
    CLIENT_SHAPES.add("acme", SHAPE)
    asked = []

    def answer(request):
        body = json.loads(request.content)
        asked.append(body)
        return httpx.Response(200, json={"values": [len(text) / 10 for text in body["items"]]})

    for address in ("https://acme.example/acme/rank", "acme+https://acme.example/other"):
        parsed = RemoteAddress.parse(f"{address}#model=big,cache=off,concurrent=1")
        client = RemoteClient(parsed, transport=httpx.MockTransport(answer))
        assert client.score([("q", ["a", "bbb", "cc"])]) == [[0.1, 0.3, 0.2]]
    assert asked[:2] == [
        {"q": "q", "items": ["a", "bbb"], "use": "big"},
        {"q": "q", "items": ["cc"], "use": "big"},
    ]


def test_an_unknown_one_is_refused_with_the_nearest():
    CLIENT_SHAPES.add("acme", SHAPE)
    with pytest.raises(UnknownName, match="did you mean 'acme'"):
        RemoteAddress.parse("acmee+https://acme.example/rank")
