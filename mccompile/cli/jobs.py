"""What a command is to do: each model for each target, with its options.

Invariant: a project file, several targets and a single model lead to the same list; JSON of one job is that job's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.errors import CheckFailed, Problem, WrongUse, raise_all
from .options import model_options
from .told import tell

if TYPE_CHECKING:
    from ..driver import Options
    from ..toolchain.serial_line import Port

    Jobs = Sequence[tuple[Path, Options]]


def is_project(model: Path) -> bool:
    return model.suffix == ".toml" or (model.suffix == ".json" and not _is_of_a_tool(model))


def _is_of_a_tool(path: Path) -> bool:
    """Other tools save models as JSON too."""
    from ..frontend.foreign import recognised
    from ..importers.api import Source
    from ..importers.registry import importer_of

    try:
        data = path.read_bytes()
    except OSError:
        return False
    return importer_of(Source(path, data)) is not None or recognised(path, data) is not None


def jobs_of(model: Path, options: Options) -> list[tuple[Path, Options]]:
    """A model or a project file, with a job for each target."""
    jobs = project_jobs((model,), options)[0] if is_project(model) else [(model, options)]
    return [(file, replace(own, target=target)) for file, own in jobs for target in own.target.split(",")]


def refuse_several(jobs: Sequence[Any], port: Port | None) -> None:
    """Without a command that flashes, a board has what it has."""
    if port is not None and len(jobs) > 1 and not port.flash:
        fix = "name one model and one target, or say how each is flashed: --flash './flash.sh {}'"
        raise WrongUse(Problem("a board runs one model", "--serial", "it runs the one that was flashed", fix))


def held_of(jobs: Jobs, seen: Any = None) -> list[str]:
    """What budgets are compared with that a compiler or an emulator has to measure; `seen`: what has been."""
    if not any(what not in ("ram", "weights") for _, options in jobs for what in options.budget):
        return []
    from ..measure.budgets import hold
    from ..measure.cost import Cost

    cost = seen if isinstance(seen, Cost) else None
    return [line for model, options in jobs for line in hold(model, options, cost)]


def show_each(
    command: str, jobs: Jobs, as_json: bool, measured: Callable[[Path, Options], Any], hold: bool = False
) -> None:
    """Prints what is measured of each job: in words as soon as it is known, or as one JSON object. With `hold` budgets
    are compared with it, after all has been printed."""
    found, seen = [], []
    for number, (file, own) in enumerate(jobs):
        figures = measured(file, own)
        found.append(figures.as_dict())
        seen.append(figures)
        if not as_json:
            click.echo(("\n" if number else "") + figures.show())
    if as_json:
        tell(command, found[0] if len(jobs) == 1 else {"models": found})
    problems: list[Problem] = []
    for job, figures in zip(jobs, seen, strict=True) if hold else ():
        try:
            click.echo("".join(f"{line}\n" for line in held_of([job], figures)), nl=False, err=as_json)
        except CheckFailed as failed:
            problems += failed.problems
    raise_all(CheckFailed, problems)


def project_jobs(models: tuple[Path, ...], options: Options) -> tuple[list[tuple[Path, Options]], str, str]:
    """What a project file asks for: models with their options, the name of what they share, and how files lie."""
    from ..driver import Options, apportioned
    from ..project import read

    if len(models) > 1 or options != Options(trust=options.trust):
        fix = "leave out all options of models, or name models"
        why = "the file lists models and their options"
        raise WrongUse(Problem("a project file does not go with other models or options", str(models[0]), why, fix))
    one = click.command()(model_options(lambda options: options))
    flags = {opt.lstrip("-"): (opt, isinstance(param.type, click.Path)) for param in one.params for opt in param.opts}
    del flags["trust"]  # a file does not say whom its reader trusts
    project = read(models[0], flags)
    fields = {opt.lstrip("-"): param.name or "" for param in one.params for opt in param.opts}
    jobs = []
    for job in project.jobs:
        try:
            own = one.main(list(job.arguments), standalone_mode=False)
            jobs.append((job.file, replace(own, trust=options.trust), {fields.get(key, "") for key in job.shared}))
        except click.ClickException as error:
            raise WrongUse(
                Problem("an option of the project file is wrong", job.where, error.format_message())
            ) from None
    files = [file for file, _, _ in jobs]
    return list(zip(files, apportioned(jobs), strict=True)), project.name, project.package
