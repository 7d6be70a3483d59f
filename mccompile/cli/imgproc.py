"""`mccompile imgproc`: image functions, for what stands in front of a network."""

from __future__ import annotations

from pathlib import Path

import click

from .commands import commands
from .options import force_flag, output_option


@commands.command()
@click.argument("functions", metavar="FUNCTION[=VARIANT],...")
@click.option("--size", metavar="320x240", help="Width and height of the source; default: arguments of the functions.")
@click.option("--to", metavar="96x96", help="Width and height of the result, if it has its own.")
@click.option("--channels", type=int, metavar="N", help="Channels of a pixel; default: an argument.")
@click.option("--dtype", default="u8", show_default=True, metavar="u8|f32", help="Elements.")
@click.option("--strided", is_flag=True, help="Pass strides as arguments even if sizes are known.")
@click.option("--fraction", type=int, metavar="10|5", help="Fractional bits of positions (warp_affine of bytes).")
@output_option
@click.option("--target", default="generic", show_default=True, help="A target's name or TOML file.")
@click.option("--name", default="imgproc", show_default=True, help="Prefix in C.")
@force_flag
def imgproc(
    functions: str,
    size: str | None,
    to: str | None,
    channels: int | None,
    dtype: str,
    strided: bool,
    fraction: int | None,
    output: Path,
    target: str,
    name: str,
    force: bool,
) -> None:
    """Write image functions as a small library of C: header, source, a test and a benchmark.

    FUNCTION is cvt_color, flip, gaussian, resize, roi, rotate or warp_affine, with all of its variants or one of them,
    such as resize=bilinear,cvt_color=yuv2rgb_nv21. Definitions are those of OpenCV. Given sizes become constants.
    """
    from ..imgproc.package import library
    from ..imgproc.requests import asked_for, chosen, read_size

    pairs = [None if text is None else read_size(text, flag) for text, flag in ((size, "--size"), (to, "--to"))]
    asked = asked_for(dtype, pairs[0], pairs[1], channels, strided, fraction)
    made = library(chosen(functions.split(","), asked), target, name)
    made.write(output, force)
    for each in made.report["image_functions"]:
        scratch = each["scratch_bytes"]
        click.echo(f"{output}: {each['name']}" + (f", scratch of {scratch} bytes" if scratch else ""))
