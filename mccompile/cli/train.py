"""`mccompile train`: a model that learns, in C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .commands import commands
from .learning import learning_options
from .options import (
    force_flag,
    model_argument,
    model_options,
    output_option,
)

if TYPE_CHECKING:
    from ..driver import Options
    from ..passes.learn.phase_graphs import Learning


@commands.command()
@model_argument
@output_option
@force_flag
@click.option(
    "--package", "layout", default="", metavar="ECOSYSTEM", help="Arrange files for zephyr, arduino, platformio ..."
)
@learning_options()
@model_options
def train(
    model: Path,
    output: Path,
    force: bool,
    layout: str,
    learning: Learning,
    options: Options,
) -> None:
    """Compile a model into C that also learns.

    <model>_run infers with what was learned, <model>_learn computes the loss of a batch and its gradients, <model>_step
    moves the weights by their mean, <model>_forget goes back to those of the file.
    """
    from ..driver import arrange
    from ..driver.training import train as trained
    from ..emit.folder import write_folder
    from ..emit.summary import summary
    from ..frontend.load import name_of

    package = trained(model, learning, options)
    files = arrange(package.files, layout, options.name or name_of(model), options) if layout else package.files
    write_folder(output, files, force)
    plan = package.plan
    learned = [state.tensor for state in plan.states if state.initial is not None]
    click.echo(f"{output}: {plan.name} for {plan.target}")
    click.echo(summary(plan, package.weights_bytes))
    click.echo(f"learns   {', '.join(f'{tensor.name} {tensor.type}' for tensor in learned)}")
    for assumed in package.assumed:
        click.echo(f"assumed  {assumed}")
    for failed in package.left_out:
        click.echo(failed.show())
