"""Who does what the project's own programs do: the arguments that those share which are many jobs."""

from __future__ import annotations

import argparse
import sys

from mccompile.measure.workers import FORM, Open, opener


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=2, help="processes of this machine")
    parser.add_argument("--executor", default="", metavar=FORM, help="workers of dask do it, not this machine")


def opened(arguments: argparse.Namespace) -> Open:
    return opener(arguments.executor, arguments.jobs)


def told(line: str) -> None:
    """Where nobody looks at what is printed."""
    print(line, file=sys.stderr, flush=True)
