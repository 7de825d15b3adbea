"""Measure how fast a re-ranker is on this machine, for a plan of servers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve.engines import Engine as SearchEngine
    from secondlook.scale.bench import Bench, Engine, FirstLook
    from secondlook.scale.remote_bench import RemoteBench
    from secondlook.score.export_folder import Engine as ExportEngine
    from secondlook.score.export_folder import Precision

    BackEnd = tuple[Literal["auto", "torch"] | ExportEngine, Literal["auto"] | Precision]

_DOCUMENTS = 20  # of a request that a server is timed with
_QUERIES = 100  # that first-stage retrieval is timed with


def bench(
    ranker: str | Path,
    output: str | Path | None = None,
    *,
    engine: Sequence[str] = (),
    index: str | Path | None = None,
    queries: str | Path | None = None,
    depth: int = 100,
    url: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> Bench | RemoteBench:
    """Time a re-ranker on this machine; gives the measurements, and writes them to `output`.

    Of a remote re-ranker, requests of 1, 10 and 50 documents are timed, which its service may bill.

    `engine` names back ends and precisions, as in "onnx int8" (default: every export, or torch).
    With `index` and `queries`, retrieval of `depth` candidates by BM25 is timed, too (also where
    the index has vectors: a plan adds the time for these, which grows otherwise with the corpus);
    with the `url` of a running server of this re-ranker, also what HTTP adds (an API key is read
    from SECONDLOOK_API_KEY). Run nothing else on the machine meanwhile.
    """
    from datetime import UTC, datetime

    from secondlook.data.durable import write_at_once
    from secondlook.errors import WrongArgument
    from secondlook.model.checkpoint import base_name, locate
    from secondlook.remote.address import is_remote
    from secondlook.scale.bench import Bench
    from secondlook.scale.machine import cpuinfo, memory, processor
    from secondlook.score.cores import CGROUP, threads

    if (index is None) != (queries is None):
        raise WrongArgument("first-stage retrieval needs both an index and queries, or neither")
    if is_remote(ranker):
        if engine or index is not None or url is not None:
            raise WrongArgument(
                "of a remote re-ranker, only its requests are timed: leave out the "
                "back end, the index and the server"
            )
        remote = _remote(str(ranker), as_progress(progress))
        if output is not None:
            write_at_once(Path(output), remote.to_json())
        return remote
    kinds = {name: back_end_of(name) for name in engine}
    if url is not None:
        _refuse_unusable(url)
    first_stage = _sized(Path(index)) if index is not None else None
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    folder = locate(str(ranker))
    alone, busy = _requests(folder, url) if url else (None, 0.0)
    measured = Bench(
        ranker=base_name(str(ranker)),
        machine=processor(cpuinfo())["name"],
        cores=threads(),
        memory_gb=(memory(CGROUP)["usable"] or 0) / 1e9 or 1.0,
        load=load,
        measured=datetime.now(UTC).date().isoformat(),
        ranker_bytes=_bytes(folder),
        engines=tuple(_engines(folder, kinds or _exports(folder), as_progress(progress))),
        request_seconds=alone,
        busy_request_seconds=busy,
        first_look=_first_look(*first_stage, str(queries), depth) if first_stage else None,
    )
    if output is not None:
        write_at_once(Path(output), measured.to_json())
    return measured


def _remote(address: str, progress: Progress) -> RemoteBench:
    from datetime import UTC, datetime

    from secondlook.scale.machine import cpuinfo, processor
    from secondlook.scale.remote_bench import SIZES, time_remote
    from secondlook.score.remote_ranker import RemoteRanker

    ranker = RemoteRanker.load(address, cached=False)
    today = datetime.now(UTC).date().isoformat()
    with progress.counting(f"timing {ranker.name}", "sizes", len(SIZES)) as advance:
        return time_remote(ranker, processor(cpuinfo())["name"], today, advance=advance)


def back_end_of(name: str) -> BackEnd:
    """Back end and precision of a name such as "openvino bf16"."""
    from secondlook.errors import WrongArgument

    match name.split():
        case [
            ("auto" | "torch" | "onnx" | "openvino") as backend,
            ("auto" | "fp32" | "bf16" | "int8") as precision,
        ]:
            return backend, precision
    raise WrongArgument(f"{name!r} is not a back end and a precision, as in 'openvino bf16'")


def _exports(folder: Path) -> dict[str, BackEnd]:
    """Everything that the re-ranker was exported for, the fastest first; torch without exports."""
    from secondlook.score.export_folder import FASTEST_FIRST, Export

    exports: dict[str, BackEnd] = {
        " ".join(kind): kind for kind in FASTEST_FIRST if Export(folder, *kind).is_there()
    }
    return exports or {"torch fp32": ("torch", "fp32")}


def _engines(folder: Path, kinds: dict[str, BackEnd], progress: Progress) -> Iterator[Engine]:
    from secondlook.scale.bench import LENGTHS, SIZES, time_ranker
    from secondlook.score.ranker import Ranker

    for name, (backend, precision) in kinds.items():
        ranker = Ranker.load(folder, backend=backend, precision=precision)
        with progress.counting(f"timing {name}", "sizes", len(LENGTHS) * len(SIZES)) as advance:
            yield time_ranker(ranker, name, advance=advance)


def _requests(folder: Path, url: str) -> tuple[float, float]:
    """Seconds that HTTP adds to a request of one document, and to each of many at once."""
    import json
    from concurrent.futures import ThreadPoolExecutor
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request

    from secondlook.errors import EngineProblem
    from secondlook.scale.bench import pair_of, time_server
    from secondlook.score.ranker import Ranker

    ranker = Ranker.load(folder)
    query, document = pair_of(ranker, 64)
    key, opener = _key(), _opener()
    headers = {"content-type": "application/json"}
    headers |= {"authorization": f"Bearer {key}"} if key else {}

    def send_one(documents: int) -> None:
        body = {"query": query.text, "documents": [document.text] * documents}
        request = Request(  # noqa: S310 - the user names the server
            url.rstrip("/") + "/v2/rerank",
            json.dumps(body).encode(),
            headers,
        )
        try:
            with opener.open(request, timeout=60) as answer:
                answer.read()
        except HTTPError as refusal:
            refusal.close()
            raise EngineProblem(f"{url} {_refused(refusal)}") from refusal
        except (OSError, HTTPException, ValueError) as error:
            raise EngineProblem(
                f"{url} did not answer: {getattr(error, 'reason', error)}; is the server running, "
                "and is that its address?"
            ) from error

    def send(requests: int, documents: int) -> None:
        with ThreadPoolExecutor(requests) as pool:
            list(pool.map(send_one, [documents] * requests))

    return time_server(send, ranker, (query, document), _DOCUMENTS)


def _refuse_unusable(url: str) -> None:
    """Raise WrongArgument before anything is timed, where no server can have this address."""
    from urllib.parse import urlsplit

    from secondlook.errors import WrongArgument

    try:
        address = urlsplit(url)
        usable = address.scheme in ("http", "https") and address.hostname is not None
    except ValueError:
        usable = False
    if not usable:
        raise WrongArgument(
            f"{url!r} is not the address of a server; give `url` as http://localhost:8000"
        )


def _key() -> str:
    """The API key, without the space around it; empty where none is set."""
    from secondlook.errors import WrongArgument

    key = os.environ.get("SECONDLOOK_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise WrongArgument(
            "the environment variable SECONDLOOK_API_KEY holds no API key: keys are of printable "
            "ASCII characters; copy it anew"
        )
    return key


def _opener() -> OpenerDirector:
    """Sends requests to the host that the user named and no other: they hold the API key."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            """None: the answer is then an HTTPError, as any refusal."""

    return build_opener(NoRedirects)


def _refused(refusal: HTTPError) -> str:
    """What the server did instead of scoring, and what to do."""
    if 300 <= refusal.code < 400:
        return (
            f"redirects to {refusal.headers.get('location')!r}; an API key is not sent to another "
            "address than the one given: if that is your server, give it as `url`"
        )
    return (
        f"refused the request: {refusal}; is it a secondlook server? Its API key is read from "
        "SECONDLOOK_API_KEY"
    )


def _sized(index: Path) -> tuple[SearchEngine, int]:
    """The index, and what it takes on disk, before hours of timing that would need it.

    Raises EngineProblem where the engine does not tell.
    """
    from secondlook.errors import EngineProblem
    from secondlook.retrieve import open_index

    engine = open_index(index)
    size = engine.stored_bytes()
    if size <= 0:
        raise EngineProblem(
            f"{index}: how much its documents take on disk, which a plan needs, is not told to "
            "this user: grant the privilege `monitor` on the index (OpenSearch: "
            "indices:monitor/stats), or measure without an index"
        )
    return engine, size


def _first_look(engine: SearchEngine, size: int, queries: str, depth: int) -> FirstLook:
    from itertools import islice

    from secondlook.data import read_queries
    from secondlook.scale.bench import time_first_look

    return time_first_look(
        engine,
        list(islice(read_queries(queries), _QUERIES)),
        depth,
        name=f"{engine.card.engine}, the best {depth}",
        documents=engine.card.documents,
        size=size,
    )


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
