"""`mccompile frontend`: its flags are the settings of a recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from ..base.errors import Problem, WrongUse
from ..base.writing import cannot_write
from ..importers.audio.recipe import STYLES, Recipe
from .commands import commands
from .options import (
    destination_option,
    understood,
)


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each field; what is not given is as the style has it."""
    types = {"int": int, "float": float, "str": str}
    for field in reversed(fields(Recipe)):
        flag = f"--{field.name.replace('_', '-')}"
        default = f"{field.default:g}" if isinstance(field.default, float) else field.default
        text = f"{field.metadata['help']}  [plain: {default}]"
        command = click.option(flag, field.name, type=types[str(field.type)], help=text)(command)
    return command


@commands.command()
@destination_option
@click.option(
    "--style",
    default="plain",
    show_default=True,
    metavar="|".join(STYLES),
    help="The library whose definitions and defaults are taken.",
)
@click.option("--mfcc", is_flag=True, help="Add the cosine transform; as many coefficients as the style has.")
@click.option(
    "--for",
    "network",
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="A network that takes the features: its input says frames, layout and quantization.",
)
@click.option("--input-name", default="", metavar="NAME", help="Its input, if the network has several.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE,...", help="Sizes that the network leaves open.")
@click.option(
    "--quantized", metavar="SCALE,ZERO_POINT[,uint8]", help="Features as int8; default: as the network of --for does."
)
@click.option(
    "--features-first/--frames-first",
    default=None,
    help="Order axes as features, frames, as librosa and Keras have them; default: as the network of --for has them.",
)
@_settings
def frontend(
    destination: Path,
    style: str,
    mfcc: bool,
    network: Path | None,
    input_name: str,
    dims: tuple[str, ...],
    quantized: str | None,
    features_first: bool | None,
    **settings: Any,
) -> None:
    """Write an ONNX model that computes audio features: log-mel energies or MFCC, in the form that networks expect.

    Compile it alone, or in front of a network: `mccompile kws.onnx -o out --prepend features.onnx`; frame by frame with
    `--stream samples=1,hop=320`.
    """
    from .. import option_texts
    from ..driver import Options, read
    from ..frontend.audio_front_end import front_end
    from ..frontend.written import checked_bytes

    asked = {name: value for name, value in settings.items() if value is not None}
    sizes = understood("--dim", option_texts.dims, dims)
    graph = read(network, Options(dims=sizes)) if network else None
    made = front_end(style, mfcc, graph, input_name, _quantized(quantized), features_first, **asked)
    if network is not None and destination.exists() and network.exists() and destination.samefile(network):
        fix = f"did you mean -o {destination.with_name(f'{destination.stem}.features.onnx')}?"
        raise WrongUse(
            Problem("cannot write the result", str(destination), "it is the file of the network itself", fix)
        )
    try:
        destination.write_bytes(checked_bytes(made, destination.parent))
    except OSError as error:
        raise cannot_write("the result", destination, error) from None
    (given,), (features,) = made.graph.input, made.graph.output
    click.echo(f"{destination}: {_sizes(given)} -> {_sizes(features)}")


def _sizes(entry: Any) -> str:
    return f"{entry.name} [{', '.join(str(dim.dim_value) for dim in entry.type.tensor_type.shape.dim)}]"


def _quantized(text: str | None) -> tuple[float, int, str] | None:
    if text is None:
        return None
    scale, _, rest = text.partition(",")
    zero, _, dtype = rest.partition(",")
    try:
        return float(scale), int(zero), dtype or "int8"
    except ValueError:
        raise click.BadParameter(f"{text!r} is not SCALE,ZERO_POINT or SCALE,ZERO_POINT,uint8") from None
