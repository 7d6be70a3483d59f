"""The command line: flags become `Options`, everything else is done below. The only package that imports click.

Invariant: exit codes are those of base/errors.py, and what a user does wrong never shows a traceback. Modules of the
compiler are imported when a command needs them, so that help is quick.

In: words of a command line.
Out: `Options` for the driver, text for the terminal, an exit code.
First: `commands.py`; `options.py` makes flags of the table of options.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback
import warnings
from typing import TextIO

import click

from ..base.errors import DEBUG, Exit, MccError, MccWarning, Problem
from . import (  # they add commands
    bench,
    blob,
    boards,
    deploy,
    doctor,
    evidence,
    frontend,
    imgproc,
    kernel,
    listed,
    llm,
    networks,
    reports,
    serve,
    slots,
    studio,
    tokenizer,
    train,
    tune,
)
from .commands import commands as every_command
from .last_stops import explained, finish, is_closed_pipe, say
from .usage import Line, problems_of

__all__ = [
    "bench",
    "blob",
    "boards",
    "deploy",
    "doctor",
    "evidence",
    "frontend",
    "imgproc",
    "kernel",
    "listed",
    "llm",
    "main",
    "networks",
    "reports",
    "run",
    "serve",
    "slots",
    "studio",
    "tokenizer",
    "train",
    "tune",
]


# New objects, and collections, after which garbage is looked for: modules and graphs live as long as the command.
OBJECTS = (20_000, 20, 50)


def main() -> None:
    """The command `mccompile`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that the locale has no letters for are shown escaped
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(*OBJECTS)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs a command line; gives its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", MccWarning)
        warnings.showwarning = _warn
        return finish(_run(arguments))


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if isinstance(message, MccWarning):
        say(f"warning: {message}")


def _run(arguments: list[str]) -> int:
    try:
        result = every_command.main(arguments or ["--help"], prog_name="mccompile", standalone_mode=False)
        result = result if arguments else Exit.WRONG_USE
    except MccError as error:
        say(str(error))
        return error.exit_code
    except click.ClickException as error:
        problems = problems_of(error, Line(arguments, every_command))
        say("\n".join(problem.render() for problem in problems))
        return Exit.WRONG_USE
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except SystemExit as ended:  # click's answer to a closed pipe, or to a shell that completes
        return Exit.CLOSED if ended.code else Exit.DONE
    except Exception as error:  # the last stop: whatever comes here is a bug, and says so
        if os.environ.get(DEBUG):
            traceback.print_exc()
        if is_closed_pipe(error):
            return Exit.CLOSED
        outside = explained(error)
        if outside is not None:
            say(str(outside))
            return outside.exit_code
        why = f"{type(error).__name__}: {error}"
        fix = f"please report it with the model, if you can share it; {DEBUG}=1 shows where it happened"
        say(Problem("this is a bug in mccompile", "", why, fix).render())
        return Exit.BUG
    return result if isinstance(result, int) else 0
