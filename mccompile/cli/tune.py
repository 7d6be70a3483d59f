"""`mccompile tune`: kernels measured on the target, for choices that are not guesses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.errors import Problem, WrongUse
from .commands import commands
from .options import board_options, executor_option, json_flag, model_options
from .told import tell

if TYPE_CHECKING:
    from ..driver import Options
    from ..toolchain.serial_line import Port

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@commands.command()
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--time", "limit", default="10m", show_default=True, metavar="TIME", help="At most: 90s, 10m, 2h.")
@click.option(
    "--database", type=click.Path(path_type=Path), metavar="FILE", help="Where measurements are kept; default: a cache."
)
@click.option(
    "--merge",
    "others",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add this file's measurements.",
)
@executor_option
@click.option(
    "--runner",
    default="",
    metavar="'COMMAND {}'",
    help="Command to measure on a board: gets the program, prints a figure.",
)
@board_options
@click.option("--cc", help="The C compiler; default: the target's.")
@json_flag
@model_options
def tune(
    model: Path | None,
    limit: str,
    database: Path | None,
    others: tuple[Path, ...],
    executor: str,
    runner: str,
    port: Port | None,
    cc: str | None,
    as_json: bool,
    options: Options,
) -> None:
    """Time the kernels that a model may use on its target; --tuned FILE chooses by these times.

    On this machine they are timed, under emulation their instructions counted, with --serial and --flash the ticks of a
    board. Existing measurements are kept, so an interrupted run continues. Without a model, --merge only
    adds files to the database.
    """
    from ..kernels.measurements import Database
    from ..measure.tuning.tune import at_once, default_database
    from ..measure.tuning.tune import tune as tuned
    from ..measure.workers import opener

    if port is not None and (executor or runner):
        fix = "leave out --executor and --runner"
        raise WrongUse(Problem("--serial does not go with --executor or --runner", "--serial", "", fix))
    path = database or default_database()
    for other in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        added = Database(path, make=True).add(Database(other).rows())
        click.echo(f"merged       {added} measurements of {other} are new", err=as_json)
    if model is None:
        if not others:
            fix = "name a model, or files of measurements: --merge other.sqlite"
            raise WrongUse(Problem("there is nothing to do", "", "neither a model nor --merge is given", fix))
        return
    found = tuned(
        model,
        options,
        path,
        _seconds(limit),
        opener(executor, at_once(options.resolved_target(), bool(runner or port))),
        cc,
        runner,
        port,
        lambda line: click.echo(line, err=True),
    )
    if as_json:
        tell("tune", found.as_dict())
        return
    click.echo(found.show())


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a time such as 90s, 10m or 2h", param_hint="--time")
    return float(match[1]) * _UNITS[match[2]]
