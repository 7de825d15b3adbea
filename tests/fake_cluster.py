"""A server that answers as a cluster with one index would, and remembers who asked what."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from secondlook.retrieve.folder import IndexCard, write_card

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "things"
MADE_AS = {"name": NAME, "shards": 1, "replicas": 0, "k1": 0.9, "b": 0.4, "analyzer": "english"}
_IMPRINT = {"made_as": MADE_AS, "documents": 3, "fingerprint": "sha256:0", "layout": 2}


@dataclass
class Node:
    """One server of it."""

    url: str
    cluster: str = "this cluster"
    publishes: list[str] = field(default_factory=list)
    """host:port of every node, as the cluster tells them."""
    needs_credentials: bool = False
    answer: tuple[str, bytes] | None = None
    """Content type and body of every answer, instead of a cluster's."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and credentials of every request."""

    @property
    def credentials(self) -> set[str | None]:
        return {credentials for _, credentials in self.asked}

    @property
    def address(self) -> str:
        return self.url.partition("//")[2]

    def reply(self, path: str) -> dict[str, Any]:
        if path.startswith("/_nodes/http"):
            nodes = {address: {"http": {"publish_address": address}} for address in self.publishes}
            return {"nodes": nodes}
        if path.startswith(f"/{NAME}/_mapping"):
            return {f"{NAME}-1": {"mappings": {"_meta": {"secondlook": _IMPRINT}}}}
        if path.startswith(f"/{NAME},"):  # the indices that loads of this name have made
            return {}
        if "/_count" in path:
            return {"count": 3, "_shards": {"total": 1, "successful": 1}}
        if "/_bulk" in path:
            return {"errors": False}
        if path == "/":
            return {"cluster_uuid": self.cluster, "version": {"number": "2.5.0"}}
        return {"status": "green", "number_of_data_nodes": 1, "timed_out": False}


@contextmanager
def listening(
    tls: tuple[Path, Path] | None = None, host: str = "127.0.0.1", **settings: Any
) -> Iterator[Node]:
    """A node on a free port of loopback, by TLS if a certificate and its key are given."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers["Content-Length"] or 0))  # or the answer may be lost
            credentials = self.headers["Authorization"]
            node.asked.append((self.path, credentials))
            kind, body = node.answer or (
                "application/json",
                json.dumps(node.reply(self.path)).encode(),
            )
            self.send_response(401 if node.needs_credentials and not credentials else 200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_GET  # noqa: N815 - names of the standard library

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):  # a client that does not trust the certificate hangs up
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https" if tls else "http"
        node = Node(f"{scheme}://{host}:{server.server_port}", **settings)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()


def folder_of(folder: Path, *urls: str, **settings: Any) -> Path:
    """An index folder as somebody may have sent it."""
    card = IndexCard(
        engine="opensearch",
        settings={**MADE_AS, "urls": urls, **settings},
        documents=3,
        fingerprint="sha256:0",
    )
    write_card(folder, card)
    return folder
