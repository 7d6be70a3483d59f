"""`mccompile studio`: one page that shows where memory, time and accuracy go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.errors import Problem, WrongUse
from .commands import commands
from .jobs import jobs_of
from .options import model_options, samples_option
from .pages import lines_of, page_file, refuse_to_overwrite, write_text

if TYPE_CHECKING:
    from ..driver import Options
    from ..measure.studio import Build

_MOST = 8  # builds that the page has colours for


@commands.command()
@click.argument("models", metavar="MODEL...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--html",
    "page",
    type=click.Path(),
    callback=page_file("studio.html"),
    default="studio.html",
    show_default=True,
    metavar="FILE",
    help="Where to write the page; in a folder it is called studio.html.",
)
@click.option("--measure/--no-measure", default=True, help="Build and run each model; default: where a compiler is.")
@click.option("--plans", is_flag=True, help="Add the Pareto-optimal plans of the first model.")
@click.option(
    "--float",
    "plain",
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="The float network: say where integers lose accuracy; default: one of the models.",
)
@samples_option
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="An older output folder or report.json: say what changed in the build of that model.",
)
@model_options
def studio(
    models: tuple[Path, ...],
    page: Path,
    measure: bool,
    plans: bool,
    plain: Path | None,
    data: Path | None,
    since: Path | None,
    options: Options,
) -> None:
    """Write one page on a model, or on several side by side: graph, memory, time, flash, accuracy, plans.

    --target may name several, with commas between. A project file (TOML or JSON) in place of the models lists
    several models with their options. The page is one file, and loads nothing else.
    """
    from ..emit.studio.page import studio_page
    from ..emit.studio.view import view
    from ..measure import difference
    from ..measure.studio import add_smallest, are_alike, built, hear, is_quantized, pairs_of, require_alike

    refuse_to_overwrite(page, *models, plain, data, since, option="--html")
    jobs = [job for model in models for job in jobs_of(model, options)]
    if len(jobs) > _MOST:
        fix = f"name at most {_MOST} models, targets and options together"
        raise WrongUse(Problem("there are too many builds for one page", "MODEL", f"there are {len(jobs)}", fix))
    if plain is not None:
        for file, own in jobs:
            require_alike(plain, file, own)
    builds = [built(file, own, measure, plans and number == 0) for number, (file, own) in enumerate(jobs)]
    add_smallest(builds[0])
    integers = [build for build in builds if is_quantized(build)]
    floats = next((build for build in builds if build not in integers), None)
    reference = plain or (floats.path if floats is not None and integers else None)
    if reference is not None:
        reading = floats.options if floats is not None and plain is None else options
        for build in integers if plain is None else [each for each in builds if each.path != plain]:
            if are_alike(reference, build.path, reading, build.options):
                hear(build, reference, reading, data)
    if data is not None and not any(build.heard for build in builds):
        fix = f"name it, as with --float model.onnx, or leave out --data {data}"
        why = "samples compare an int8 network with its float network, and none is given"
        raise WrongUse(Problem("--data has no effect without a float network", f"--data {data}", why, fix))
    more: dict[str, Any] = {"pairs": pairs_of(builds), "without": [line for each in builds for line in each.without]}
    if isinstance(ram := builds[0].options.budget.get("ram"), int):
        more["budget"] = ram
    if since is not None:
        number, found = difference.since(since, [build.analysis for build in builds])
        steps = zip(found.steps, found.now, strict=True)
        said = [{"name": n, "change": c, **({} if now is None else {"step": now})} for (n, c), now in steps]
        before = f"{found.before} in {since.name}"
        more["since"] = {**found.as_dict(), "build": number, "steps": said, "before": before}
    titles = _titles(builds)
    views = [
        view(b.analysis, [*lines_of(b.package)], title) | {"file": b.path.name, "heard": b.heard}
        for b, title in zip(builds, titles, strict=True)
    ]
    write_text(page, studio_page(views, more))
    click.echo(f"{page}: {', '.join(titles)}")
    for line in more["without"]:
        click.echo(line, err=True)


def _titles(builds: list[Build]) -> list[str]:
    """The model and its target; where that does not tell builds apart, the options that do."""
    names = [build.path.absolute().parent.name if build.path.stem == "model" else build.path.stem for build in builds]
    found = [f"{name} for {build.analysis['target']}" for name, build in zip(names, builds, strict=True)]
    if len(set(found)) == len(found):
        return found
    asked = [build.analysis.get("options", {}) for build in builds]
    keys = sorted({key for each in asked for key in each} - {"target"})
    differ = [key for key in keys if len({str(each.get(key)) for each in asked}) > 1]
    told = [", ".join(f"{key} {own[key]}" for key in differ if key in own) for own in asked]
    return [f"{name}, {words or 'as it is'}" for name, words in zip(found, told, strict=True)]
