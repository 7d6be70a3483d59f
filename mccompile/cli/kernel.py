"""`mccompile kernel`: one function, for runtimes of the user's own."""

from __future__ import annotations

from pathlib import Path

import click

from ..base.errors import BadFile, Problem
from .commands import commands
from .options import force_flag, output_option


@commands.command()
@click.argument("kind", type=click.Choice(["conv", "gemm"]))
@click.option("--x", "x", required=True, metavar="1,16,16,8", help="Shape of the input, channels last.")
@click.option("--w", "w", required=True, metavar="8,3,3,8", help="Shape of the weights, the output axis first.")
@click.option("--int8", is_flag=True, help="Compute in int8, with scales; default: floats.")
@click.option("--stride", default=1, show_default=True, help="Stride of a convolution, along both axes.")
@click.option("--pad", type=int, help="Zeros around the image; default: as many as keep their size at stride 1.")
@click.option("--relu", is_flag=True, help="Clamp results at 0.")
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An .npz with w, b and, for int8, x_scale, x_zero, w_scale, y_scale, y_zero; default: some numbers.",
)
@output_option
@click.option("--target", default="generic", show_default=True, help="A target's name or TOML file.")
@click.option("--prefer", default="time", show_default=True, metavar="ram|time|flash|balanced", help="Optimize for.")
@click.option("--name", default="", help="Prefix in C; default: the kind.")
@force_flag
def kernel(
    kind: str,
    x: str,
    w: str,
    int8: bool,
    stride: int,
    pad: int | None,
    relu: bool,
    weights: Path | None,
    output: Path,
    target: str,
    prefer: str,
    name: str,
    force: bool,
) -> None:
    """Write one convolution or product as a C function, with its header, a test and a benchmark.

    Shapes are channels-last: x is [batch, rows, columns, channels], w [channels, rows, columns, channels of x]. The
    function takes pointers to x and y; main.c compares it with numpy and times it.
    """
    import numpy as np

    from ..driver import Options
    from ..frontend.one_layer import Layer
    from ..measure.layer import layer_package
    from ..targets.api import Prefer

    given: dict[str, np.ndarray] = {}
    if weights is not None:
        try:
            given = {each: np.asarray(array) for each, array in np.load(weights).items()}
        except (OSError, ValueError, AttributeError) as error:
            raise BadFile(Problem(f"cannot read {weights}", "--weights", str(error), "np.savez has made it")) from None
    layer = Layer(kind, _shape(x, "--x"), _shape(w, "--w"), int8, (stride, stride), pad, relu)
    package = layer_package(layer, Options(target=target, prefer=Prefer.written(prefer)), given, name or f"{kind}1")
    package.write(output, force)
    plan = package.plan
    kernels = ", ".join(dict.fromkeys(function.kernel.id for function in plan.functions))
    click.echo(f"{output}: {plan.prefix}(m, y, x) by {kernels}; workspace {plan.arena_bytes} bytes")


def _shape(text: str, flag: str) -> tuple[int, ...]:
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise click.BadParameter(f"{text!r} is not sizes such as 1,16,16,8", param_hint=flag)
    return tuple(int(part) for part in text.split(","))
