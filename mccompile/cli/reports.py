"""The commands that show what a compiled model is, and what has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ..base.errors import CheckFailed, Problem, WrongUse
from .bench import figures_of
from .commands import commands
from .jobs import held_of, jobs_of, refuse_several, show_each
from .options import board_options, json_flag, model_argument, model_options, samples_option
from .pages import page_file, refuse_to_overwrite, write_page
from .told import tell

if TYPE_CHECKING:
    from ..driver import Options
    from ..fitting import Point
    from ..toolchain.serial_line import Port


@commands.command()
@model_argument
@click.option("--explain", is_flag=True, help="Show the kernels considered for each call instead.")
@click.option(
    "--frontier",
    "best",
    is_flag=True,
    help="Show the Pareto-optimal plans instead, or on the page as well: RAM, flash (weights and estimated code), time "
    "(estimated, relative to the fastest); of two memories also the fast one, and what is copied.",
)
@click.option(
    "--html",
    type=click.Path(),
    callback=page_file("report.html"),
    metavar="FILE",
    help="Write the page of `studio`; in a folder it is called report.html.",
)
@click.option("--measure", is_flag=True, help="Add what `bench` measures, and what each step takes.")
@board_options
@json_flag
@model_options
def analyze(
    model: Path,
    explain: bool,
    best: bool,
    html: Path | None,
    measure: bool,
    port: Port | None,
    as_json: bool,
    options: Options,
) -> None:
    """Show the memory and work that a model needs: weights, work per step, and the memory map.

    --target may name several, with commas between. A project file (TOML or JSON) in place of the model lists
    several models with their options.
    """
    jobs = jobs_of(model, options)
    if best and not html:
        if len(jobs) > 1:
            why, fix = f"there are {len(jobs)}", "leave out --frontier, or name one model and one target"
            raise WrongUse(Problem("--frontier shows the plans of one model", "--frontier", why, fix))
        _frontier(*jobs[0], as_json)
        return
    if html and len(jobs) > 1:
        why, fix = f"there are {len(jobs)}", "leave out --html, or name one model and one target"
        raise WrongUse(Problem("a page shows one model", "--html", why, fix))
    if port is not None and not measure:
        fix = "add --measure, or leave out --serial"
        raise WrongUse(Problem("--serial does not go without --measure", "--serial", "the board only measures", fix))
    refuse_several(jobs, port)
    refuse_to_overwrite(html, model, option="--html")
    seen: list[_Seen] = []

    def looked_at(file: Path, own: Options) -> _Seen:
        seen.append(_Seen(file, own, explain, measure, best, port))
        return seen[-1]

    if html and not as_json:
        looked_at(*jobs[0]).write(html)
        click.echo("".join(f"{line}\n" for line in held_of(jobs)), nl=False)
        return
    show_each("analyze", jobs, as_json, looked_at, hold=True)
    if html:
        seen[0].write(html)


class _Seen:
    """A model that was compiled to be looked at."""

    def __init__(
        self, model: Path, options: Options, explain: bool, measure: bool, best: bool, port: Port | None
    ) -> None:
        from ..driver import compile as compile_model

        self.model, self.options, self.explain, self.measure, self.best = model, options, explain, measure, best
        self.port = port
        self.package = compile_model(model, options)

    @cached_property
    def found(self) -> dict[str, Any]:
        from ..driver import best_plans
        from ..emit.analysis import analysis_of

        measured = None
        if self.measure:
            measured = figures_of(self.model, self.options, port=self.port, by_step=True).as_dict()
        best = [point.as_dict() for point in best_plans(self.model, self.options)] if self.best else None
        return analysis_of(self.package, measured, frontier=best)

    def as_dict(self) -> dict[str, Any]:
        return self.found

    def write(self, page: Path) -> None:
        write_page(page, self.package, self.found)

    def show(self) -> str:
        from ..emit.summary import analysis, explanation

        if self.explain:
            return explanation(self.package.explanations)
        told = analysis(self.package.plan, self.package.weights_bytes, self.found)
        return "\n".join([told, *(each.show() for each in self.package.left_out)])


def _frontier(model: Path, options: Options, as_json: bool) -> None:
    from ..driver import best_plans
    from ..fitting import told

    points = best_plans(model, options)
    if as_json:
        tell("analyze", {"frontier": [point.as_dict() for point in points]})
        return
    show_plans([(told(point.changes), point) for point in points])


def show_plans(points: Sequence[tuple[str, Point]]) -> None:
    """Plans with the options that lead to them, the fastest first."""
    from ..emit.summary import table

    first = points[0][1]
    fastest = first.time or 1.0
    heads = {"fast_bytes": "fast", "traffic_bytes": "copied", "traffic_us": "in us", "waited_us": "waited us"}
    names = ["ram", *(heads[name] for name in first.copied), "flash", "time", "options"]
    lines = [
        [f"{p.ram}", *map(str, p.copied.values()), f"{p.flash}", f"{p.time / fastest:.2f}", words]
        for words, p in points
    ]
    click.echo("\n".join(table(names, lines, frozenset({len(names) - 1}))))


@commands.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request: the worst three changes first.")
@samples_option
@click.option("--runs", default=3, show_default=True, type=click.IntRange(1), help="Sets of random inputs.")
@json_flag
def diff(before: Path, after: Path, markdown: bool, data: Path | None, runs: int, as_json: bool) -> None:
    """Compare two compiled models: RAM, flash, work, results, and the steps that changed.

    Two folders are both built for this machine and run on the samples of --data, whose labels give the accuracy, or on
    random inputs.

    BEFORE and AFTER are output folders, report.json files, or what bench --json, analyze --json or quantize --json has
    printed.
    """
    from ..measure.difference import difference

    found = difference(before, after, data, runs)
    if as_json:
        tell("diff", found.as_dict())
    else:
        click.echo(found.markdown() if markdown else found.show())


@commands.command()
@click.argument("folder", metavar="OUT", type=click.Path(path_type=Path))
@click.argument("dump", type=click.Path(path_type=Path), required=False)
@click.option(
    "--model", type=click.Path(path_type=Path), metavar="FILE", help="Also compare with results of this model."
)
@click.option("--cc", help="The C compiler of this machine; default: $CC, or cc.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random inputs, with --serial.")
@board_options
@json_flag
def compare(
    folder: Path, dump: Path | None, model: Path | None, cc: str | None, seed: int, port: Port | None, as_json: bool
) -> int:
    """Find the step where a board first differs: its results are compared with those of the same code on this machine.

    OUT is the folder that the board's program was built from, compiled with --dump-values; DUMP is the file that
    mcc_dump.h wrote there; with --serial the board sends it. With --model tensors are compared with the reference too.
    """
    from ..measure.board import compare_dump
    from ..measure.building import dumped

    if (dump is None) == (port is None):
        fix = "name the file of a dump, or the board's port: --serial /dev/ttyACM0"
        why = "a DUMP or --serial says what it has made"
        raise WrongUse(Problem("one board is compared", "mccompile compare", why, fix))
    found = compare_dump(folder, dump or partial(dumped, folder, cast("Port", port), seed), model, cc)
    if as_json:
        tell("compare", found.as_dict())
        return 0 if found.ok else CheckFailed.exit_code
    click.echo(found.show())
    if found.ok:
        return 0
    raise found.failure()
