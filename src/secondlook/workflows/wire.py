"""Configuration that lets a search engine call a re-ranker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from secondlook.errors import SecondlookError

SearchEngine = Literal["opensearch", "elasticsearch", "vespa"]


def wire(
    engine: SearchEngine,
    ranker: str | Path,
    output: str | Path,
    *,
    url: str | None = None,
    field: str = "text",
) -> list[str]:
    """Write the configuration into a folder; gives the names of the files.

    `ranker` is the name the re-ranker is served by, for Vespa its folder; `url` is where the engine
    reaches the server; `field` holds the text of a document.
    """
    from shutil import copyfile

    from secondlook.data.durable import replacing_file, write_at_once
    from secondlook.model.checkpoint import base_name
    from secondlook.serve import wiring

    folder = Path(output)
    graph: Path | None = None
    if engine == "vespa":
        files, graph = wiring.vespa(Path(ranker))
    elif url is not None and is_server_url(url):
        configuration = wiring.opensearch if engine == "opensearch" else wiring.elasticsearch
        files = configuration(base_name(str(ranker)), url, field)
    else:
        raise SecondlookError("give the URL of the server, as in http://ranker:8080")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_at_once(folder / name, text)
    if graph is None:
        return list(files)
    with replacing_file(folder / "models" / "ranker.onnx") as half:
        copyfile(graph, half)
    return [*files, "models/ranker.onnx"]


def is_server_url(url: str | None) -> bool:
    """Whether an engine can call it."""
    return url is not None and bool(re.fullmatch(r"https?://[^\s/\"]+(/[^\s\"]*)?", url))
