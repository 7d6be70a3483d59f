"""The commands that write networks: quantized, or read from other formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.writing import cannot_write
from .commands import commands
from .options import (
    destination_option,
    json_flag,
    model_argument,
    quantizing_options,
    reading_options,
    samples_option,
)
from .pages import page_file, refuse_other_formats, refuse_to_overwrite, write_page
from .told import tell

if TYPE_CHECKING:
    from ..driver import Options
    from ..importers.api import Reading


@commands.command()
@model_argument
@samples_option
@destination_option
@click.option(
    "--test", type=click.Path(path_type=Path), metavar="SAMPLES", help="Samples to measure with; default: --data."
)
@click.option("--dynamic", is_flag=True, help="Quantize weights now, activations in every run.")
@click.option("--weights-only", default=0, metavar="8|4", help="Bits of weights; activations stay floats.")
@click.option(
    "--weights",
    default="int8",
    metavar="int8|int4|ternary|palette4",
    help="Store weights as int8, int4, ternary or palette4 (16 values in a layer), beside int8 activations.",
)
@click.option("--auto", default=0, metavar="COUNT", help="Keep this many layers in float: those that gain most.")
@click.option(
    "--sensitivity",
    default=0.0,
    metavar="DB",
    help="Keep layers in float until outputs reach this SNR, as few as possible, those that cost most first.",
)
@click.option("--samples", default=128, show_default=True, metavar="COUNT", help="Samples to calibrate with, at most.")
@click.option("--symmetric", is_flag=True, help="Quantize activations without zero points.")
@click.option(
    "--html",
    type=click.Path(),
    callback=page_file("report.html"),
    metavar="FILE",
    help="Write the page of `studio` for the compiled result, with the noise of each tensor.",
)
@json_flag
@quantizing_options
def quantize(
    model: Path,
    data: Path | None,
    destination: Path,
    test: Path | None,
    html: Path | None,
    as_json: bool,
    options: Options,
    **how: Any,
) -> None:
    """Quantize a model to int8, and report the loss of accuracy and the memory saved."""

    from ..emit.analysis import analysis_of
    from ..measure import quantization

    refuse_other_formats(destination)
    refuse_to_overwrite(destination, model, data, test)
    refuse_to_overwrite(html, model, data, test, option="--html")
    recipe = replace(options.recipe, **how)
    report = quantization.quantize(model, destination, data, options, recipe, test)
    if html:
        write_page(html, report.compiled, analysis_of(report.compiled, quantized=report.as_dict()))
    if as_json:
        tell("quantize", report.as_dict())
        return
    click.echo(f"{destination}\n{report.show()}")


@commands.command()
@model_argument
@destination_option
@reading_options
def convert(model: Path, destination: Path, reading: Reading) -> None:
    """Write a file of another format as ONNX: what the other commands compile.

    Inputs and outputs keep names, types and layouts; integers stand between QuantizeLinear and DequantizeLinear.
    """
    from ..frontend.load import read_proto
    from ..frontend.written import checked_bytes
    from ..importers.defaults import settle

    refuse_other_formats(destination)
    refuse_to_overwrite(destination, model)
    proto = settle(read_proto(model, reading), reading.dims)
    source = read_proto(model, reading) if model.suffix == ".onnx" else None
    try:
        destination.write_bytes(checked_bytes(proto, model.parent, source))
        click.echo(f"{destination}: {len(proto.graph.node)} nodes")
    except OSError as error:
        raise cannot_write("the result", destination, error) from None
