"""`mccompile bench`: what a model costs on its target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.errors import Problem, WrongUse
from .commands import commands
from .jobs import jobs_of, refuse_several, show_each
from .options import board_options, json_flag, model_argument, model_options, samples_option

if TYPE_CHECKING:
    from ..driver import Options
    from ..toolchain.serial_line import Port


@commands.command()
@model_argument
@json_flag
@click.option("--seed", default=0, show_default=True, help="Seed of the random input.")
@click.option("--cc", help="The C compiler; default: the target's.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A project of deploy --mlperf-tiny, whose board --serial asks and whose results page is filled.",
)
@click.option("--seconds", default=10.0, show_default=True, help="Length of each measurement, with --results.")
@samples_option
@board_options
@model_options
def bench(
    model: Path,
    as_json: bool,
    seed: int,
    cc: str | None,
    results: Path | None,
    seconds: float,
    data: Path | None,
    port: Port | None,
    options: Options,
) -> None:
    """Measure what a model costs on its target: under emulation instructions, flash, RAM and stack; on this machine the
    time of a run and of each step; with --serial the ticks of both on a board, and its stack.

    --target may name several, with commas between. A project file (TOML or JSON) in place of the model lists
    several models with their options. --data is for --results: its labels say how many answers are right.
    """
    jobs = jobs_of(model, options)
    refuse_several(jobs, port)
    if results is not None or data is not None:
        _fill_results(jobs, as_json, port, results, data, seconds, seed)
        return
    show_each("bench", jobs, as_json, lambda file, own: figures_of(file, own, cc, seed, port, as_json), hold=True)


def _fill_results(
    jobs: Sequence[tuple[Path, Options]],
    as_json: bool,
    port: Port | None,
    results: Path | None,
    data: Path | None,
    seconds: float,
    seed: int,
) -> None:
    from ..measure.mlperf import MlperfOptions, mlperf

    if results is None:
        fix = "name the project of deploy --mlperf-tiny: --results DIR; or leave out --data"
        raise WrongUse(Problem("--data does not go without --results", "--data", "", fix))
    if port is None or port.flash or len(jobs) > 1:
        why = "it has the figures of one model, which the board was flashed with"
        fix = "name one model and say where the board answers: --serial /dev/ttyACM0"
        raise WrongUse(Problem("the results page needs one model on one flashed board", "--results", why, fix))
    asked = MlperfOptions(results, data, seconds)
    show_each("bench", jobs, as_json, lambda file, own: mlperf(file, own, port, asked, seed))


def figures_of(
    model: Path,
    options: Options,
    cc: str | None = None,
    seed: int = 0,
    port: Port | None = None,
    by_step: bool = False,
) -> Any:
    """`by_step`: under emulation, which takes a second run for it, the instructions of each step as well."""
    from ..measure.cost import cost
    from ..measure.speed import speed
    from ..measure.ticks import ticks

    if port is not None:
        return ticks(model, options, port, seed)
    if options.resolved_target().run:
        return cost(model, options, cc, seed, by_step)
    return speed(model, options, cc, seed)
