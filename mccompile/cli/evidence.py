"""`mccompile evidence`: a folder that argues for the code in it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..base.errors import Problem, WrongUse
from .commands import commands
from .jobs import is_project
from .options import (
    force_flag,
    model_argument,
    model_options,
    output_option,
)

if TYPE_CHECKING:
    from ..driver import Options


@commands.command()
@model_argument
@output_option
@force_flag
@model_options
def evidence(model: Path, output: Path, force: bool, options: Options) -> None:
    """Write code with certificates, and checkers for them.

    DIR/code is what `compile` writes; DIR/index.html says what is claimed and what is not. `python DIR/check.py` checks
    all of it, where mccompile is not installed. The same model, options and versions give the same bytes.
    """
    from ..driver import compile as compile_model
    from ..emit.folder import write_folder
    from ..evidence import coverage as covering
    from ..evidence import time as times
    from ..evidence import time_bound
    from ..evidence.folder import evidence as folder_of
    from ..evidence.stack import shown, stack_certificate
    from ..frontend.listed import listed
    from ..frontend.load import contents

    _refuse(model, options)
    package = compile_model(model, options)
    nodes = listed(model, options.reading)
    target = options.resolved_target()
    stack = stack_certificate(package, target)
    time = times.time_certificate(package, target) | {"bound": time_bound.time_bound(package, target)}
    coverage = covering.coverage_certificate(package, target)
    files = folder_of(package, model.name, contents(model), _command(model), nodes, stack, time, coverage, target)
    write_folder(output, files, force)
    click.echo(f"{output}: evidence for {package.plan.name} on {package.plan.target}")
    click.echo(f"stack    {shown(stack)}")
    click.echo(f"time     {times.shown(time)}; {time_bound.shown(time['bound'])}")
    click.echo(f"coverage {covering.shown(coverage)}")
    click.echo(f"check    python {shlex.quote(str(output / 'check.py'))}")


def _refuse(model: Path, options: Options) -> None:
    """One model, one target, and code as it is laid out by default."""
    what = "evidence is about one model, one target and code in files of their own"
    if is_project(model):
        raise WrongUse(Problem(what, str(model), "it is a project file", "name the model"))
    if "," in options.target:
        fix = f"--target {options.target.split(',')[0]}"
        raise WrongUse(Problem(what, "--target", "several targets are named", fix))
    for flag, given in (("--single-file", options.single_file), ("--module", options.module)):
        if given:
            raise WrongUse(Problem(what, flag, "it puts code and weights together", f"leave out {flag}"))
    if options.quantize is not None:
        fix = f"mccompile quantize {model} --data {options.quantize} -o {model.stem}_int8.onnx"
        raise WrongUse(
            Problem("evidence needs the network that is deployed", "--quantize", "it changes the network", fix)
        )


def _command(model: Path) -> str:
    """The command line without the folder, as it has been understood."""
    context = click.get_current_context()
    words = ["mccompile", "evidence", model.name, "-o", "DIR"]
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not given or name in ("output", "force") or not isinstance(parameter, click.Option):
            continue
        value = context.params.get(name)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], str(each)]
    return shlex.join(words)
