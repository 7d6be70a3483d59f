"""What a missing option would hide: the rest of the command line may be wrong as well, and is told at once.

Invariant: nothing is compiled or written to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..base.errors import MccError
from .jobs import is_project
from .options import OPTIONS, texts_read

_MODELS = ("model", "models")  # names of arguments


def also_wrong(
    command: click.Command, arguments: Sequence[str], missing: click.Parameter
) -> Iterator[MccError | click.ClickException]:
    """Of options that cannot be read, boards, targets, and models that are not there."""
    try:
        params = command.make_context(command.name, [*arguments, missing.opts[0], "out"]).params
    except click.ClickException as error:
        yield error
        return
    flags = {param.name: param.opts[0] for param in command.params if isinstance(param, click.Option)}
    texts = {name: params[name] for name, flag in flags.items() if name in OPTIONS and OPTIONS[name].flag == flag}
    for check, given in ((_models, params), (_options, texts)):
        try:
            check(given)
        except (MccError, click.ClickException) as error:
            yield error


def _models(params: dict[str, Any]) -> None:
    from ..frontend.load import STANDARD_INPUT, contents

    given = [params[name] for name in _MODELS if name in params]
    for model in (each for one in given for each in (one if isinstance(one, tuple) else (one,))):
        if isinstance(model, Path) and model != STANDARD_INPUT and not model.exists() and not is_project(model):
            contents(model)


def _options(texts: dict[str, Any]) -> None:
    from ..driver import Options

    options = Options(**texts_read(texts))
    for target in options.target.split(","):
        replace(options, target=target).resolved_target()
