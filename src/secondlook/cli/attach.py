"""`secondlook attach`: use an index that exists on a cluster, as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import ClusterUrls, Parameters  # noqa: TC001 - typer reads them


def attach(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder to create.")],
    index: Annotated[str, typer.Option(help="Index, alias or data stream of the cluster.")],
    url: ClusterUrls = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="What a re-ranker reads of a document, as '{{name}}. {{description}}'; default: "
            "the text fields of the mapping."
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Its title, as '{{name}}'; default: the field named so.")
    ] = None,
    query: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Your search body (JSON) with "{{query}}" where the words go; default: '
            "multi_match over the text fields.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Stored search template to search with, instead."),
    ] = None,
    param: Parameters = None,
    id_: Annotated[
        str, typer.Option("--id", help="What identifies a document: _id, or a field.")
    ] = "_id",
    signal: Annotated[
        list[str] | None,
        typer.Option(help="Numeric or date field to use as a signal; default: all of them."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Language by which matched words are highlighted.", metavar="NAME"),
    ] = None,
    try_: Annotated[
        str | None, typer.Option("--try", metavar="WORDS", help="Query to try at once.")
    ] = None,
    discover: Annotated[
        bool, typer.Option(help="Discover the other nodes of the cluster, for failover.")
    ] = True,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite INDEX.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attach an existing OpenSearch or Elasticsearch index; nothing is written to the cluster.

    Looks at the mapping and some documents, proposes how queries and documents are read, shows
    three documents as a re-ranker would read them and what is unusual, and tries a query. INDEX is
    a folder that every other command takes.

    The user needs no right but to read the index. Credentials come from the environment or from
    the file OPENSEARCH_CREDENTIALS_FILE (OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD,
    OPENSEARCH_API_KEY, OPENSEARCH_TOKEN, or OPENSEARCH_AWS_REGION).

    [bold]Examples[/bold]

      secondlook attach my.index --url https://localhost:9200 --index products
      secondlook attach my.index --index products --query body.json --title '{{name}}' --replace
    """
    from secondlook.retrieve.search_options import read_parameters
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.attach import attach_index

    attached = attach_index(
        folder,
        index=index,
        url=url,
        query=query,
        template=template,
        parameters=read_parameters(param or ()),
        text=text,
        title=title,
        id=id_,
        signals=signal,
        language=language,
        try_query=try_,
        discover=discover,
        replace=replace,
        progress=Bars(),
    )
    typer.echo(json.dumps(attached.to_dict()) if as_json else attached.summary())
