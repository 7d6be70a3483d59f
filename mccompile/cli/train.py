"""`mccompile train`: a model that learns, in C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.errors import Problem, WrongUse
from .commands import commands
from .learning import learning_options
from .options import (
    force_flag,
    model_argument,
    model_options,
    samples_option,
)
from .reports import show_plans

if TYPE_CHECKING:
    from ..driver import Options
    from ..passes.learn.phase_graphs import Learning


@commands.command()
@model_argument
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR", help="The folder to write.")
@force_flag
@click.option(
    "--package", "layout", default="", metavar="ECOSYSTEM", help="Arrange files for zephyr, arduino, platformio ..."
)
@click.option(
    "--frontier",
    "best",
    is_flag=True,
    help="Show the Pareto-optimal plans instead, by RAM, flash and time of all phases, and what takes less to learn.",
)
@samples_option
@learning_options()
@model_options
def train(
    model: Path,
    output: Path | None,
    force: bool,
    layout: str,
    best: bool,
    data: Path | None,
    learning: Learning,
    options: Options,
) -> None:
    """Compile a model into C that also learns.

    <model>_run infers with the learned weights, <model>_learn computes the loss of a batch and its gradients,
    <model>_step updates the weights by their mean, <model>_forget restores those of the file. With --learn auto,
    samples in --data choose what learns within --budget ram=.
    """
    from ..driver import arrange
    from ..driver.training import best_plans
    from ..driver.training import train as trained
    from ..emit.folder import write_folder
    from ..emit.summary import summary
    from ..frontend.load import name_of
    from ..measure.sparse_update import choose, refuse_samples
    from ..passes.learn.phase_graphs import AUTO

    refuse_samples(learning, data)
    if output is None and not best:
        raise WrongUse(Problem("no output folder is given", "-o", "the C files need a folder", "add -o out/"))
    choice = choose(model, learning, options, data) if learning.learn == AUTO else None
    learning = choice.asked if choice else learning
    if best:
        show_plans(best_plans(model, learning, options))
        return
    assert output is not None
    package = trained(model, learning, options)
    files = arrange(package.files, layout, options.name or name_of(model), options) if layout else package.files
    write_folder(output, files, force)
    plan = package.plan
    learned = [state.tensor for state in plan.states if state.initial is not None]
    click.echo(f"{output}: {plan.name} for {plan.target}")
    click.echo(summary(plan, package.weights_bytes))
    click.echo(f"learns   {', '.join(f'{tensor.name} {tensor.type}' for tensor in learned)}")
    for line in choice.lines() if choice else ():
        click.echo(line)
    for assumed in package.assumed:
        click.echo(f"assumed  {assumed}")
    for failed in package.left_out:
        click.echo(failed.show())
