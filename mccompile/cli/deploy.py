"""`mccompile deploy`: a project for a board that is built and flashed as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from .commands import commands
from .options import force_flag, json_flag, model_argument, model_options, output_option, samples_option
from .told import tell

if TYPE_CHECKING:
    import numpy as np

    from ..driver import Options


@commands.command()
@model_argument
@output_option
@click.option(
    "--for", "ecosystem", default="", metavar="ECOSYSTEM", help="cmake, zephyr, esp-idf ...; default: by the board."
)
@click.option("--main", default="", metavar="PROGRAM", help="serve (for check --serial; the default), or loop.")
@click.option(
    "--mlperf-tiny",
    "benchmark",
    default="",
    metavar="kws|ic|ic02|vww|ad|sww",
    help="The program answers the runner of MLPerf Tiny, as this benchmark.",
)
@click.option(
    "--microphone", type=click.Choice(["i2s", "pdm", "adc"]), help="Run a stream on the samples of a microphone."
)
@click.option(
    "--rate",
    type=click.IntRange(1000, 192000),
    default=16000,
    show_default=True,
    metavar="HZ",
    help="Samples per second of --microphone.",
)
@click.option("--board-id", "called", default="", metavar="NAME", help="What the ecosystem calls the board.")
@samples_option
@force_flag
@json_flag
@model_options
def deploy(
    model: Path,
    output: Path,
    ecosystem: str,
    main: str,
    benchmark: str,
    microphone: str | None,
    rate: int,
    called: str,
    data: Path | None,
    force: bool,
    as_json: bool,
    options: Options,
) -> None:
    """Write a project for a board: the model, a program, its build files, and a README with the commands.

    --for is one of cmake, zephyr, esp-idf, platformio, arduino, pico-sdk, cubeide and keil. --data puts a sample into
    the program of --main loop.
    """
    from ..deploy.projects import ProjectOptions, project
    from ..emit.folder import write_folder
    from ..emit.summary import summary

    sample = (lambda: _first_sample(model, data, options)) if data is not None else None
    folder, hears = quote(str(output)), microphone or ""
    made = project(ProjectOptions(model, options, ecosystem, main, benchmark, hears, rate, called, sample, folder))
    write_folder(output, made.files, force)
    if as_json:
        told = {"folder": str(output), "board": made.board.key, "ecosystem": made.ecosystem.name}
        tell("deploy", {**told, "main": made.main.name, "model": made.package.plan.name, "files": sorted(made.files)})
        return
    plan = made.package.plan
    click.echo(f"{output}: {plan.name} for {made.board.name}, with {made.ecosystem.name}")
    click.echo(summary(plan, made.package.weights_bytes))
    click.echo(f"program  {made.main.about}")
    click.echo(f"next     {output / 'README.md'} has the commands")


def _first_sample(model: Path, data: Path | None, options: Options) -> Mapping[str, np.ndarray]:
    from ..driver import read
    from ..measure.building import input_sets

    return input_sets(read(model, options), data, 0, 1)[0].inputs
