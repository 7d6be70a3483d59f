"""The options of commands about models that learn, as one argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]
_PLAIN = {
    "learn": "last:1",
    "optimizer": "sgd",
    "accumulate": 1,
    "clip": None,
    "at_once": False,
    "batch_norm": "frozen",
    "save": "weights",
    "learn_dtype": "f32",
}
_LOSS = "Loss of an output, of a kind: cross_entropy, nll, mse, huber or bce. Or the name of an output of one number."
_OPTIONS = (
    click.option(
        "--learn",
        default="last:1",
        show_default=True,
        metavar="WHAT",
        help="all, last:N layers, names of weights, or auto.",
    ),
    click.option(
        "--optimizer",
        default="sgd",
        show_default=True,
        metavar="NAME,KEY=N",
        help="sgd, momentum, adam, adamw or adagrad, with lr=, weight_decay= ...",
    ),
    click.option(
        "--accumulate", default=1, metavar="N", help="Batches between two steps, whose gradients are added up."
    ),
    click.option("--clip", type=float, metavar="NORM", help="The largest norm of all gradients together."),
    click.option("--at-once", is_flag=True, help="Weights move in <model>_learn; no gradient is kept."),
    click.option(
        "--batch-norm",
        type=click.Choice(["frozen", "train"]),
        default="frozen",
        show_default=True,
        help="Whether BatchNormalization learns, with batch statistics.",
    ),
    click.option(
        "--save",
        type=click.Choice(["weights", "optimizer"]),
        default="weights",
        show_default=True,
        help="What <model>_save stores: weights alone, or also what the optimizer keeps.",
    ),
    click.option(
        "--learn-dtype",
        type=click.Choice(["f32", "int8"]),
        default="f32",
        show_default=True,
        help="Whether int8 weights learn as floats, or stay int8 and the model infers in integers.",
    ),
)


def learning_options(
    help_of_loss: str = _LOSS, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The command gets them as `learning`, which is None where no loss is given."""

    def decorated(command: Command) -> Command:
        def collected(loss: str | None, **values: Any) -> Any:
            given = {name: values.pop(name) for name in _PLAIN}
            return command(learning=_learning(loss, given), **values)

        collected.__doc__, collected.__name__ = command.__doc__, command.__name__
        collected.__dict__.update(command.__dict__)
        for option in reversed(_OPTIONS):
            collected = option(collected)
        return click.option("--loss", required=required, metavar="KIND:OUTPUT", help=help_of_loss)(collected)

    return decorated


def _learning(loss: str | None, given: dict[str, Any]) -> Any:
    from ..base.errors import Problem, WrongUse
    from ..passes.learn.batch_norm import BatchNorm
    from ..passes.learn.integer_weights import LearnDtype
    from ..passes.learn.optimizers import optimizer
    from ..passes.learn.phase_graphs import Learning, Saved

    if loss is None:
        strange = next((name for name, plain in _PLAIN.items() if given[name] != plain), None)
        if strange is not None:
            flag = f"--{strange.replace('_', '-')}"
            fix = f"say what it learns by, such as --loss mse:OUTPUT, or leave out {flag}"
            raise WrongUse(Problem(f"{flag} does not go without --loss", flag, "it is about learning", fix))
        return None
    return Learning(
        loss,
        given["learn"],
        optimizer(given["optimizer"]),
        given["at_once"],
        given["clip"],
        given["accumulate"],
        BatchNorm(given["batch_norm"]),
        Saved(given["save"]),
        LearnDtype(given["learn_dtype"]),
    )
