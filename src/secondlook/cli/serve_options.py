"""The options of `secondlook serve`."""

from pathlib import Path
from typing import Annotated

import typer

_ACCESS, _LIMITS, _OUTPUT = "Access", "Limits", "Log and warnings"

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME=RANKER",
        help="Another re-ranker and the name that clients request it by.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        help="Worker processes. One uses all cores; use more on machines with several sockets.",
        min=1,
    ),
]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on; any but loopback needs --keys or --no-keys.",
        rich_help_panel=_ACCESS,
    ),
]
Port = Annotated[
    int,
    typer.Option(
        help="Port to listen on; 0: any free port.", min=0, max=65535, rich_help_panel=_ACCESS
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option(help="File of API keys; see `secondlook key --help`.", rich_help_panel=_ACCESS),
]
NoKeys = Annotated[
    bool,
    typer.Option(
        "--no-keys",
        help="Accept requests without a key, from other machines, too.",
        rich_help_panel=_ACCESS,
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Host name to answer to, without port. Default: any; on loopback its own only.",
        rich_help_panel=_ACCESS,
    ),
]
Proxies = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy",
        metavar="ADDRESS",
        help="Trusted proxy: its X-Forwarded-For header gives the client's address.",
        rich_help_panel=_ACCESS,
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="Seconds until a request is answered with the scores computed so far.",
        min=0.01,
        rich_help_panel=_LIMITS,
    ),
]
Queue = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Documents that may be queued; beyond this, requests get status 429.",
        min=1,
        rich_help_panel=_LIMITS,
    ),
]
Rate = Annotated[
    float,
    typer.Option(
        metavar="N",
        help="Requests per second per key, or per address without keys; 0: no limit.",
        min=0,
        rich_help_panel=_LIMITS,
    ),
]
MaxConnections = Annotated[
    int, typer.Option(metavar="N", help="Open connections at most.", min=1, rich_help_panel=_LIMITS)
]
MaxDocuments = Annotated[
    int,
    typer.Option(
        metavar="N", help="Documents per request at most.", min=1, rich_help_panel=_LIMITS
    ),
]
MaxCharacters = Annotated[
    int,
    typer.Option(
        metavar="N", help="Characters per document at most.", min=1, rich_help_panel=_LIMITS
    ),
]
MaxMegabytes = Annotated[
    float,
    typer.Option(
        metavar="MB", help="Megabytes per request at most.", min=0.001, rich_help_panel=_LIMITS
    ),
]
MaxMegabytesInFlight = Annotated[
    float,
    typer.Option(
        metavar="MB",
        help="Megabytes of all open requests; beyond this, requests get status 429.",
        min=0.001,
        rich_help_panel=_LIMITS,
    ),
]
LogTexts = Annotated[
    bool,
    typer.Option("--log-texts", help="Also log the texts of queries.", rich_help_panel=_OUTPUT),
]
ScoreWarnings = Annotated[
    bool,
    typer.Option(
        help="Add warnings to responses: scores not calibrated on judgments, an order without the "
        "first-stage scores that the ranker was tuned to add.",
        rich_help_panel=_OUTPUT,
    ),
]
