"""The commands that show what a compiled model is, and what has changed since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.errors import Problem, WrongUse
from .commands import commands, figures_of
from .options import json_flag, model_argument, model_options

if TYPE_CHECKING:
    from ..driver import Options


@commands.command()
@model_argument
@click.option("--explain", is_flag=True, help="Show the kernels considered for each call instead.")
@click.option(
    "--frontier",
    "best",
    is_flag=True,
    help="Show the best plans instead: RAM, flash (weights and, as estimated, code), time (estimated, over the least).",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write it as a page with charts.")
@click.option("--measure", is_flag=True, help="Add what `bench` measures to the page or the JSON.")
@json_flag
@model_options
def analyze(
    model: Path, explain: bool, best: bool, html: Path | None, measure: bool, as_json: bool, options: Options
) -> None:
    """Show what a model needs: memory, weights, work per step, and the memory map."""
    if best:
        _frontier(model, as_json, options)
        return
    from ..driver import compile as compile_model
    from ..emit.analysis import analysis_of
    from ..emit.html_report import html_report
    from ..emit.summary import analysis, explanation

    package = compile_model(model, options)
    if explain:
        click.echo(explanation(package.explanations))
        return
    report = json.loads(package.files["report.json"])
    if html or as_json:
        found = analysis_of(package, figures_of(model, options).as_dict() if measure else None)
        if html:
            _write(html, html_report(found))
        if as_json:
            click.echo(json.dumps(found, indent=1))
        return
    click.echo(analysis(package.plan, package.weights_bytes, report))


def _frontier(model: Path, as_json: bool, options: Options) -> None:
    from ..driver import best_plans
    from ..emit.summary import table
    from ..fitting import told

    points = best_plans(model, options)
    if as_json:
        click.echo(json.dumps([point.as_dict() for point in points], indent=1))
        return
    fastest = points[0].time or 1.0
    lines = [[f"{p.ram}", f"{p.flash}", f"{p.time / fastest:.2f}", told(p.changes)] for p in points]
    click.echo("\n".join(table(["ram", "flash", "time", "options"], lines, frozenset({3}))))


@commands.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")
@json_flag
def diff(before: Path, after: Path, markdown: bool, as_json: bool) -> None:
    """Compare two compiled models: RAM, flash, work, and the steps that changed.

    BEFORE and AFTER are output folders, report.json files, or what bench --json or analyze --json has printed.
    """
    from ..measure.difference import difference

    found = difference(before, after)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=1))
    else:
        click.echo(found.markdown() if markdown else found.show())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUse(Problem("cannot write the page", str(path), error.strerror or str(error))) from None
