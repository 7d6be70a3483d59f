"""What is wrong with a command line, as a problem like any other: click's own errors, with what was probably meant.

Invariant: a command that comes as a fix can be pasted.
"""

from __future__ import annotations

import click

from ..base.errors import Problem
from ..base.near import meant

_EXAMPLES = {"DIR": "out", "FILE": "result.onnx"}  # of what metavar stands for


def problem_of(error: click.ClickException) -> Problem:
    """A refusal of click's, with a fix."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "mccompile"
    shown = f"`{path} --help` shows how"
    match error:
        case click.NoSuchOption():
            params = context.command.params if context is not None else []
            known = [opt for param in params for opt in (*param.opts, *param.secondary_opts) if opt.startswith("--")]
            fix = meant(error.option_name, known) or f"`{path} --help-all` lists all options"
            return Problem(f"there is no option {error.option_name}", path, "", fix)
        case click.MissingParameter(param=click.Parameter() as param):
            is_option = isinstance(param, click.Option)
            name = param.opts[0] if is_option else str(param.metavar or param.human_readable_name)
            wanted = f"{name} {_EXAMPLES.get(str(param.metavar), param.metavar or '')}" if is_option else name
            return Problem(f"{name} is missing", path, "", f"add {wanted.strip()} ({shown})")
        case click.BadParameter(param=click.Option(type=click.Choice() as choice) as param):
            flag, known = param.opts[0], [str(each) for each in choice.choices]
            given = next((word for word in error.message.split("'")[1:2]), "")
            why = f"it can be {', '.join(known)}"
            return Problem(f"{flag} cannot be {given!r}", path, why, meant(given, known, flag) or shown)
        case click.BadParameter(param=click.Parameter() as param):
            return Problem(f"{param.opts[0]} cannot be as it is", path, error.message, shown)
        case click.BadParameter():
            what, _, close = error.message.partition("; did you mean ")
            return Problem(what, path, "", f"did you mean {close}" if close else shown)
        case _:
            return Problem(error.format_message(), path if context is not None else "", "", shown)
