"""The command line: one file per verb. Verbs import what is heavy when they run, not before."""

from __future__ import annotations

import os
import sys

import typer

from secondlook.cli import (
    ablate,
    add,
    bench,
    calibrate,
    clicks,
    compare,
    convert,
    depth,
    doctor,
    eval_,
    expand,
    explain,
    export,
    fuse,
    gap,
    generate,
    index,
    key,
    mine,
    plan,
    remove,
    report,
    rerank,
    retrieve,
    search,
    serve,
    teach,
    train,
    tune,
    types_,
    warm,
    weigh,
    wire,
)
from secondlook.cli.problems import Verbs, exit_code
from secondlook.errors import SecondlookError

app = typer.Typer(
    name="secondlook",
    cls=Verbs,
    help="Train, measure, explain and serve the BERT re-ranker on top of your search engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(index.index)
app.command()(search.search)
app.command()(retrieve.retrieve)
app.command()(rerank.rerank)
app.command()(add.add)
app.command()(remove.remove)
app.command("eval")(eval_.eval_)
app.command()(depth.depth)
app.command()(compare.compare)
app.command()(explain.explain)
app.command()(gap.gap)
app.command()(report.report)
app.command()(convert.convert)
app.add_typer(types_.app)
app.command()(clicks.clicks)
app.command()(generate.generate)
app.command()(mine.mine)
app.command()(teach.teach)
app.command()(warm.warm)
app.add_typer(weigh.app)
app.add_typer(expand.app)
app.command()(train.train)
app.command()(tune.tune)
app.command()(ablate.ablate)
app.command()(export.export)
app.command()(calibrate.calibrate)
app.add_typer(fuse.app)
app.command()(serve.serve)
app.command()(key.key)
app.command()(wire.wire)
app.command()(bench.bench)
app.command()(plan.plan)
app.command()(doctor.doctor)


def main() -> None:
    """Run the verb; a problem the user can mend is a message and an exit code, not a traceback."""
    try:
        app()
    except SecondlookError as problem:
        sys.stderr.write(f"secondlook: {problem}\n")
        sys.exit(exit_code(problem))
    except BrokenPipeError:  # `secondlook search … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
