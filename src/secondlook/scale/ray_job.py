"""A job on a Ray cluster: parts of work go through a pool of workers that each open the tools once.

Ray Data grows the pool with what the cluster has, sends a worker its next part while it is at one
(and no more: that is the backpressure), and gives the part of a lost worker to another.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.data.durable import write_at_once
from secondlook.errors import EngineProblem, MissingExtra
from secondlook.scale.parts import result_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Do = Callable[[str], tuple[str, int]]
    """What a part asks for becomes its result, and how many items that was."""


_BLOCKS = 1000  # what Ray Data keeps account of; a block of several parts is done part by part


class _Worker:
    """An actor of the pool."""

    def __init__(self, open_tools: Callable[[], Do]) -> None:
        self._do = open_tools()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        work = Path(row["work"])
        if result_of(work).is_file():  # of a worker that was lost before it could say so
            return {"items": 0}
        result, items = self._do(work.read_text("utf-8"))
        write_at_once(result_of(work), result)
        return {"items": items}


def run(
    address: str,
    missing: Sequence[Path],
    open_tools: Callable[[], Do],
    *,
    cores: float = 1,
    gpus: float = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Do the missing parts on the cluster at `address`; `local` starts one on this machine.

    `open_tools` is called once in every worker, which has `cores` cores and `gpus` GPUs. It is sent
    there by its name: secondlook must be installed on all nodes, and the same folders be there.
    """
    if not missing:
        return
    with connected(address) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        total = int(ray.cluster_resources().get("CPU", 1) // max(cores, 0.01))
        done = ray.data.from_items(
            [{"work": str(path)} for path in missing],
            override_num_blocks=min(len(missing), _BLOCKS),
        ).map(
            _Worker,
            fn_constructor_args=[open_tools],
            compute=ray.data.ActorPoolStrategy(
                min_size=1, max_size=max(1, min(total, len(missing)))
            ),
            num_cpus=cores,
            num_gpus=gpus or None,
        )
        for row in done.iter_rows():
            advance(int(row["items"]))


def reachable(source: str) -> str:
    """A folder by its whole path, for workers that start elsewhere; a hub id as it is."""
    return str(Path(source).absolute()) if Path(source).is_dir() else source


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, joined to the cluster at `address`; of what it says only errors reach the terminal.

    All else is in the files of its session. Raises EngineProblem where there is no such cluster.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtra("ray", "running on a Ray cluster") from error
    for handler in logging.getLogger("ray.data").handlers:
        if isinstance(handler, logging.StreamHandler):  # the other one is a file
            handler.setLevel(logging.ERROR)
    own: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        with _without_its_core():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # Ray raises bare Exceptions, too
        raise EngineProblem(
            f"Ray does not start, or does not answer, at {address!r} ({error}); start a cluster "
            "with `ray start --head`, or take the address local on a machine with a free core; the "
            "parts that are done stay"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _without_its_core() -> Iterator[None]:
    """Nothing on standard error by Ray's core, which is not Python and writes there itself.

    It calls it an error that workers may have to be restarted; what really goes wrong raises, too.
    It reads its level when it starts, and prints a line to say so: until then the file is closed.
    """
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
