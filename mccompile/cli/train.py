"""`mccompile train`: a model that learns, in C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .commands import commands
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
@click.option(
    "--package", "layout", default="", metavar="ECOSYSTEM", help="Arrange files for zephyr, arduino, platformio ..."
)
@click.option(
    "--loss",
    required=True,
    metavar="KIND:OUTPUT",
    help="cross_entropy, nll, mse, huber or bce of an output, or the name of an output of one number.",
)
@click.option(
    "--learn", default="last:1", show_default=True, metavar="WHAT", help="all, last:N layers, or names of weights."
)
@click.option(
    "--optimizer",
    default="sgd",
    show_default=True,
    metavar="NAME,KEY=N",
    help="sgd, momentum, adam, adamw or adagrad, with lr=, weight_decay= ...",
)
@click.option("--accumulate", default=1, metavar="N", help="Batches between two steps, whose gradients are added up.")
@click.option("--clip", type=float, metavar="NORM", help="The largest norm of all gradients together.")
@click.option("--at-once", is_flag=True, help="Weights move in <model>_learn; no gradient is kept.")
@click.option(
    "--batch-norm",
    type=click.Choice(["frozen", "train"]),
    default="frozen",
    show_default=True,
    help="Does BatchNormalization learn, with the statistics of the batch?",
)
@model_options
def train(
    model: Path,
    output: Path,
    force: bool,
    layout: str,
    loss: str,
    learn: str,
    optimizer: str,
    accumulate: int,
    clip: float | None,
    at_once: bool,
    batch_norm: str,
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
    from ..passes.learn.batch_norm import BatchNorm
    from ..passes.learn.optimizers import optimizer as optimizer_of
    from ..passes.learn.phase_graphs import Learning

    asked = Learning(loss, learn, optimizer_of(optimizer), at_once, clip, accumulate, BatchNorm(batch_norm))
    package = trained(model, asked, options)
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
