"""`secondlook mine`: training groups with hard negatives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import QueriesSource, Ray  # noqa: TC001 - typer reads it
from secondlook.errors import WrongArgument


def mine(
    corpus: Annotated[
        str,
        typer.Argument(
            help="Documents: an index folder, or a corpus as `secondlook index` reads it."
        ),
    ],
    queries: QueriesSource,
    qrels: Annotated[str, typer.Argument(help="Relevance judgments: a file, or irds:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Group file to write (Parquet).")],
    run: Annotated[
        str | None,
        typer.Option(
            help="Run to draw candidates from, in any run format or as lists (query id, tab, "
            "document ids). Default: retrieve them from the index, as `retrieve` does."
        ),
    ] = None,
    negatives: Annotated[
        int, typer.Option(help="Hard negatives drawn per query from the candidates.", min=0)
    ] = 20,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Keep all candidates instead, duplicates included: for validation."
        ),
    ] = False,
    ranks: Annotated[
        str, typer.Option(help="First-stage ranks to draw candidates from, FROM-TO.")
    ] = "1-100",
    random: Annotated[
        int,
        typer.Option(help="Additional random negatives per query, from the whole corpus.", min=0),
    ] = 0,
    judged: Annotated[
        bool,
        typer.Option("--judged", help="Also use all documents judged not relevant as negatives."),
    ] = False,
    positive_grade: Annotated[
        int, typer.Option(help="Lowest grade that makes a document a positive.", min=1)
    ] = 1,
    add_positives: Annotated[
        bool | None,
        typer.Option(
            "--add-positives/--found-only",
            help="Whether to add positives that are not among the candidates; default: yes, except "
            "with --all.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sampling.")] = 7,
    ray: Ray = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Mine training groups: queries with positives and hard negatives, texts included.

    Negatives are drawn from the first-stage candidates. Judged positives, near-duplicates of them
    (equal but for case and punctuation, or sharing .8 of their word trigrams) and repeated texts
    are never drawn. With --all the candidates are kept as they are, for validation.

    With --ray, single-core workers mine parts of the queries from the same index folder; finished
    parts survive the loss of workers and of this program.

    [bold]Examples[/bold]

      secondlook mine my.index queries.jsonl qrels/train.tsv -o train.parquet
      secondlook mine my.index queries.jsonl qrels/dev.tsv --run bm25.trec --all -o dev.parquet
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.mine import mine as run_mine

    counts = run_mine(
        corpus,
        queries,
        qrels,
        output,
        run=run,
        negatives=negatives,
        ranks=_ranks(ranks),
        keep_all=all_,
        random=random,
        judged=judged,
        positive_grade=positive_grade,
        add_positives=add_positives,
        seed=seed,
        ray=ray,
        progress=Bars(),
    )
    if as_json:
        typer.echo(json.dumps(counts.to_dict()))
    else:
        typer.echo(f"{output}: {counts.summary()}")


def _ranks(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise WrongArgument(f"--ranks {text!r} must be two ranks, FROM-TO, as in 1-100")
    return int(first), int(last)
