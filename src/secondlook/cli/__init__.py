"""The command line: one file per verb. Verbs import what is heavy when they run, not before."""

from __future__ import annotations

import os
import sys

from secondlook.cli import (
    ablate,
    add,
    attach,
    bakeoff,
    bench,
    calibrate,
    clicks,
    compare,
    convert,
    depth,
    distil,
    doctor,
    eval_,
    expand,
    explain,
    export,
    fuse,
    fuse_index,
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
from secondlook.errors import SecondlookError
from secondlook.terminal.help_layout import VerbApp
from secondlook.terminal.problems import exit_code
from secondlook.terminal.version import options_before_a_verb

app = VerbApp(
    name="secondlook",
    callback=options_before_a_verb,
    help="Fine-tune, evaluate, explain and serve BERT re-rankers for your search engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command(rich_help_panel="Search")(index.index)
app.command(rich_help_panel="Search")(attach.attach)
app.command(rich_help_panel="Search")(search.search)
app.command(rich_help_panel="Search")(retrieve.retrieve)
app.command(rich_help_panel="Search")(rerank.rerank)
app.command(rich_help_panel="Search")(add.add)
app.command(rich_help_panel="Search")(remove.remove)
app.command(rich_help_panel="Search")(convert.convert)

app.command(rich_help_panel="Train")(tune.tune)
app.command(rich_help_panel="Train")(warm.warm)
app.command(rich_help_panel="Train")(clicks.clicks)
app.command(rich_help_panel="Train")(generate.generate)
app.command(rich_help_panel="Train")(mine.mine)
app.command(rich_help_panel="Train")(distil.distil)
app.command(rich_help_panel="Train")(teach.teach)
app.command(rich_help_panel="Train")(train.train)
app.command(rich_help_panel="Train")(calibrate.calibrate)
fuse.app.command("index")(fuse_index.index)
app.add_typer(fuse.app, rich_help_panel="Train")
app.add_typer(types_.app, rich_help_panel="Train")
app.command(rich_help_panel="Train")(gap.gap)

app.command("eval", rich_help_panel="Evaluate")(eval_.eval_)
app.command(rich_help_panel="Evaluate")(compare.compare)
app.command(rich_help_panel="Evaluate")(bakeoff.bakeoff)
app.command(rich_help_panel="Evaluate")(report.report)
app.command(rich_help_panel="Evaluate")(depth.depth)
app.command(rich_help_panel="Evaluate")(explain.explain)
app.command(rich_help_panel="Evaluate")(ablate.ablate)

app.command(rich_help_panel="Serve")(serve.serve)
app.command(rich_help_panel="Serve")(key.key)
app.command(rich_help_panel="Serve")(export.export)
app.command(rich_help_panel="Serve")(wire.wire)

app.command(rich_help_panel="Scale")(bench.bench)
app.command(rich_help_panel="Scale")(plan.plan)
app.command(rich_help_panel="Scale")(doctor.doctor)

app.add_typer(weigh.app, rich_help_panel="First stage")
app.add_typer(expand.app, rich_help_panel="First stage")


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
