"""What stops a command from outside: the streams it prints to, files, and memory. None of it is a bug of mccompile.

Invariant: whatever becomes of the standard streams, the exit code of a command is its own.
"""

from __future__ import annotations

import errno
import os
import sys

import click

from ..base.errors import Exit, MccError, Problem, UnsupportedModel, WrongUse
from ..base.writing import cannot_write, written
from .colours import coloured


def explained(error: Exception) -> MccError | None:
    """What a user can act on, of an error that was raised outside of mccompile; None for any other."""
    if isinstance(error, OSError):
        why = error.strerror or str(error)
        if (file := written(error)) is not None and error.filename is None:
            return cannot_write("a file", file, error)
        if error.filename is None:
            fix = "make room, or send the output somewhere else"
            return WrongUse(Problem("cannot write the output", "standard output", why, fix))
        name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
        return WrongUse(Problem("a file or folder cannot be used", name, why, "check that it is there, and its rights"))
    if isinstance(error, MemoryError):
        fix = "compile on a machine with more memory, or bound the sizes with --dim, --shape or --bound"
        return UnsupportedModel(Problem("there is not enough memory to compile this model", "", str(error), fix))
    if isinstance(error, RecursionError):
        why = "expressions, functions or bodies in it are inside of each other too often"
        return UnsupportedModel(Problem("the model is nested too deep", "", why, "export it with less nesting"))
    return None


def say(text: str) -> None:
    """Prints an error, if anybody can be told."""
    try:
        click.echo(coloured(text), err=True)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        _give_up(sys.stderr)


def finish(code: int) -> int:
    """The exit code, once all that was printed has arrived."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        code = code or Exit.CLOSED
        _give_up(sys.stdout)
    except (OSError, ValueError) as error:
        _give_up(sys.stdout)
        found = explained(error)
        if found is not None:
            say(str(found))
        code = code or Exit.WRONG_USE
    return code


def is_closed_pipe(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _give_up(stream: object) -> None:
    """Lets what is left in a stream go nowhere, so that Python does not try again when it ends."""
    number = 1 if stream is sys.stdout else 2
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    except OSError:
        pass
