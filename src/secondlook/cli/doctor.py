"""`secondlook doctor`: check the installation and the machine."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from secondlook.workflows.doctor import Diagnosis


def doctor(
    url: Annotated[
        str | None,
        typer.Option(help="OpenSearch or Elasticsearch cluster to check.", metavar="URL"),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="Index folder to verify; reads all of it.", metavar="INDEX")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation: versions, CPU, memory, accelerators, extras and engines.

    For each missing package, the command that installs it is shown.

    [bold]Examples[/bold]

      secondlook doctor --url http://localhost:9200
      secondlook doctor --index my.index
    """
    from secondlook.workflows.doctor import doctor as run

    diagnosis = run(url=url, index=index)
    if as_json:
        typer.echo(json.dumps(diagnosis.to_dict(), indent=2))
    else:
        _print(diagnosis)


def _print(diagnosis: "Diagnosis") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    for name, fact in diagnosis.facts().items():
        facts.add_row(Text(name, style="bold"), Text(fact))
    parts = Table("extra", "packages", box=box.SIMPLE_HEAD)
    parts.add_column("state", no_wrap=True)
    for part, versions in diagnosis.packages.items():
        listed = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
        parts.add_row(part, Text(listed), Text(diagnosis.install.get(part, "ready")))
    console = Console()
    console.print(facts)
    console.print(parts)
