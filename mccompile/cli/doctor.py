"""The command that says what is installed of what targets and options need."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import __version__
from ..base.errors import Problem, WrongUse
from .commands import commands
from .options import json_flag
from .told import tell

if TYPE_CHECKING:
    from ..targets.api import Target


def _target(name: str) -> Target:
    """Targets stand without an option here."""
    from ..targets import api

    try:
        return api.load(name)
    except WrongUse as error:
        (problem,) = error.problems
        fix = problem.fix.replace("--target ", "mccompile doctor ")
        raise WrongUse(replace(problem, where=f"mccompile doctor {name}", fix=fix)) from None


@commands.command()
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
@json_flag
def doctor(targets: tuple[str, ...], as_json: bool) -> None:
    """Show what can be built and run here, and how to install the rest.

    For each target its compiler and emulator, then Python packages that commands and options need.
    """
    from ..targets import api
    from ..toolchain.doctor import extras, tools_of
    from ..toolchain.tools import install

    if model := next((name for name in targets if Path(name).suffix == ".onnx"), ""):
        why = "what is installed is shown for targets, whatever the model"
        raise WrongUse(Problem("a model is not a target", model, why, f"leave out {model}"))
    found = [tools_of(_target(name)) for name in targets or api.names()]
    wanted = extras()
    apt = install(dict.fromkeys(program for tools in found for program in tools.absent))
    absent = list(dict.fromkeys(package for extra in wanted for package in extra.absent))
    pip = f"pip install {' '.join(absent)}" if absent else ""
    if as_json:
        everything = {
            "version": __version__,
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in ("onnx", "numpy", "jinja2", "click", "cffi")},
            "targets": {tools.target: tools.as_dict() for tools in found},
            "extras": {extra.name: dict(extra.packages) for extra in wanted},
            "install": {"apt": apt, "pip": pip},
        }
        tell("doctor", everything)
        return
    from ..emit.summary import table

    rows = []
    for tools in found:
        builds = tools.cannot_build or tools.compiler
        runs = tools.cannot_run or tools.runner or "this machine"
        rows.append([tools.target, "yes" if not tools.cannot_build else "no", builds])
        rows[-1] += ["no" if tools.cannot_build or tools.cannot_run else "yes", runs]
    click.echo(f"mccompile {__version__}, Python {platform.python_version()}, onnx {metadata.version('onnx')}\n")
    click.echo("\n".join(table(["target", "builds", "with", "runs", "on"], rows, frozenset(range(5)))) + "\n")
    for extra in wanted:
        packages = ", ".join(f"{name} {version or 'is not installed'}" for name, version in extra.packages.items())
        click.echo(f"extra {extra.name}: {packages}")
    for what, how in (("programs (Debian)", apt), ("Python packages", pip)):
        if how:
            click.echo(f"to install {what}: {how}")
