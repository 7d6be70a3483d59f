"""The commands: what each asks of the compiler, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..base.errors import CheckFailed, Problem, WrongUse
from ..base.writing import cannot_write
from .colours import coloured
from .help import Command, format_commands
from .jobs import held_of, is_project, jobs_of, project_jobs, refuse_several
from .learning import learning_options
from .options import (
    board_options,
    executor_option,
    force_flag,
    json_flag,
    model_argument,
    model_options,
    output_option,
    samples_option,
)
from .pages import page_of, refuse_names_of_files, refuse_to_overwrite
from .told import tell
from .usage import refuse_verb

if TYPE_CHECKING:
    from ..driver import Options
    from ..emit.package import Package
    from ..passes.learn.phase_graphs import Learning
    from ..plan.ir import Plan
    from ..toolchain.serial_line import Port


class _Commands(click.Group):
    """`mccompile model.onnx ...` means `mccompile compile model.onnx ...`."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        format_commands(self, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] == "help" and not Path("help").exists():
            args = [*args[1:2], "--help"]
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h", "--version"):
            refuse_verb(args, self.commands)
            args = ["compile", *args]
        return super().parse_args(ctx, args)


_TOLERANCE = click.FloatRange(0)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@click.group(cls=_Commands, context_settings=_SETTINGS, no_args_is_help=True)
@click.version_option(__version__, prog_name="mccompile")
def commands() -> None:
    """Compiles trained ONNX networks into plain C99: `mccompile model.onnx -o out/` does; see `mccompile compile
    --help`.
    """


@commands.command()
@click.argument("models", metavar="MODEL...", type=click.Path(path_type=Path), nargs=-1, required=True)
@output_option
@click.option(
    "--package", "layout", default="", metavar="ECOSYSTEM", help="Arrange files for zephyr, arduino, cargo, npm ..."
)
@force_flag
@click.option("--explain", is_flag=True, help="Show the kernels considered for each call, and why others were refused.")
@click.option("--html", "pages", is_flag=True, help="Write report.html beside the C files: the page of `studio`.")
@json_flag
@model_options
def compile(  # noqa: A001 - what users type
    models: tuple[Path, ...],
    output: Path,
    layout: str,
    force: bool,
    explain: bool,
    pages: bool,
    as_json: bool,
    options: Options,
) -> None:
    """Compile a model into a folder of C files.

    MODEL may be - for standard input, so that a model that is decrypted by a pipe never lies on a disk. Several models
    share the runtime and equal kernels; --name then names what they share. A project file (TOML or
    JSON) in place of models lists them with their options.
    """
    from ..driver import apportion, arrange, compile_jobs, neighbours, pass_manager
    from ..emit.folder import write_folder
    from ..emit.summary import explanation, summary, tuned_line
    from ..frontend.load import name_of

    refuse_names_of_files(output)
    name = options.name or "models"
    if any(is_project(model) for model in models):
        jobs, name, arranged_for = project_jobs(models, options)
        layout, options = layout or arranged_for, jobs[0][1]
    else:
        each = zip(models, apportion(models, options), strict=True)
        jobs = [(model, own if len(models) == 1 else replace(own, name="")) for model, own in each]
    jobs = [(model, _wrapped(own, layout)) for model, own in jobs]
    packages, files = compile_jobs(jobs, name)
    name = (jobs[0][1].name or name_of(jobs[0][0])) if len(jobs) == 1 else name
    held = held_of(jobs)
    files = arrange(files, layout, name, options) if layout else files
    files = _with_pages(files, packages) if pages else files
    write_folder(output, files, force)
    if as_json:
        tell(
            "compile", {"folder": str(output), "models": [_as_dict(each) for each in packages], "files": sorted(files)}
        )
        return
    targets = options.target.split(",")
    for number, package in enumerate(packages):  # of all models for the first target, then for the next one
        plan, own = package.plan, replace(jobs[number % len(jobs)][1], target=targets[number // len(jobs)])
        click.echo(f"{output}: {plan.name} for {plan.target}")
        click.echo(summary(plan, package.weights_bytes))
        if len(jobs) == len(packages) == 1:
            for line in neighbours(*jobs[0], package):
                click.echo(line)
        if own.tuned is not None:
            click.echo(tuned_line(package.explanations, pass_manager(own).context.registry.stale()))
        if options.name and len(packages) == 1 and plan.prefix != options.name:
            click.echo(f"name     {plan.prefix}: C has no names such as {options.name!r}")
        for line in package.quality.lines() if package.quality else ():
            click.echo(line)
        for assumed in package.assumed:
            click.echo(f"assumed  {assumed}")
        for failed in package.left_out:
            click.echo(failed.show())
        hint = _native_hint(plan, options)
        if hint:
            click.echo(hint)
        if explain:
            click.echo("\n" + explanation(package.explanations))
    if held:
        click.echo("\n".join(held))
    if len({package.plan.target for package in packages}) > 1 and "," in jobs[0][1].target:
        picked = "picked" in json.loads(files["report.json"])
        how = "by init, at run time" if picked else "by the compiler's flags, when C is compiled; not at run time"
        click.echo(f"target   is picked {how}")


def _as_dict(package: Package) -> dict[str, Any]:
    plan = package.plan
    return {
        "model": plan.name,
        "prefix": plan.prefix,
        "target": plan.target,
        "arena_bytes": plan.arena_bytes,
        "arena_bound_bytes": plan.arena_bound,
        "weights_bytes": package.weights_bytes,
        "macs": sum(step.macs for step in plan.steps()),
        "steps": len(list(plan.steps())),
        "assumed": list(package.assumed),
        "left_out": [failed.show() for failed in package.left_out],
        **({"quality": package.quality.as_dict()} if package.quality else {}),
    }


def _wrapped(options: Options, layout: str) -> Options:
    """With what an arrangement for another language needs."""
    from ..emit.layouts import layouts

    wrapper = layouts()[layout].wrapper if layout in layouts() else ""
    return replace(options, wrappers=tuple(dict.fromkeys([*options.wrappers, *filter(None, [wrapper])])))


def _with_pages(files: Mapping[str, bytes], packages: Sequence[Package]) -> Mapping[str, bytes]:
    """A page for each model, which report.json lists."""
    from ..emit.analysis import analysis_of
    from ..emit.folder import MARK, with_report

    pages = {}
    for package in packages:
        plan = package.plan
        name = f"report_{plan.prefix}_{plan.target}.html" if len(packages) > 1 else "report.html"
        pages[name] = page_of(package, analysis_of(package)).encode()
    return with_report({**files, **pages}, json.loads(files[MARK]))


def _native_hint(plan: Plan, options: Options) -> str:
    """What compiling for this very machine would bring, where it may be what is meant."""
    from ..kernels.registry import Registry
    from ..targets import api

    if plan.target != "generic" or options.board:
        return ""
    native = api.load("native")
    registry = Registry.load(options.kernels)
    steps = list(plan.steps())
    faster = {isa for isa in native.isas if isa != "c"}
    gain = sum(any(k.isa in faster for k in registry.of_kind(step.function.call.kind)) for step in steps)
    built = " ".join(flag for flag in native.cflags if flag.startswith("-m"))
    what = f"has faster kernels for {gain} of {len(steps)} steps" if gain else f"prefers speed to memory ({built})"
    return f"hint     --target native {what}"


@commands.command()
@model_argument
@samples_option
@json_flag
@click.option("--seed", default=0, show_default=True, help="Seed of the random inputs.")
@click.option(
    "--runs", default=3, show_default=True, type=click.IntRange(1), help="Sets of random inputs, or samples of --data."
)
@click.option("--rtol", default=1e-3, show_default=True, type=_TOLERANCE, help="Relative tolerance of floats.")
@click.option("--atol", default=1e-7, show_default=True, type=_TOLERANCE, help="Absolute tolerance of floats.")
@click.option("--cc", help="The C compiler; default: $CC, or cc.")
@click.option(
    "--golden",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Compare outputs and files with those in DIR; written there the first time, where they are right.",
)
@click.option("--update-golden", is_flag=True, help="Write what is in DIR anew.")
@click.option("--bitwise", is_flag=True, help="Compare bits of results between compilers, flags and the targets named.")
@board_options
@executor_option
@learning_options("Check training with this loss, as `mccompile train` compiles it.", required=False)
@model_options
def check(
    model: Path,
    data: Path | None,
    as_json: bool,
    seed: int,
    runs: int,
    rtol: float,
    atol: float,
    cc: str | None,
    golden: Path | None,
    update_golden: bool,
    bitwise: bool,
    port: Port | None,
    executor: str,
    learning: Learning | None,
    options: Options,
) -> int:
    """Build and run a model, and compare with a reference.

    --target takes several (a,b). MODEL may be a project file (TOML or JSON).
    """
    from ..measure.verdict import Tolerance
    from .checks import Check, Checked, CheckSettings, all_checked, bit_equal
    from .progress import is_watched
    from .verdicts import lines_of_groups

    if update_golden and golden is None:
        raise WrongUse(
            Problem("--update-golden needs the folder of the golden outputs", "--update-golden", "", "add --golden DIR")
        )
    if learning is not None and (golden is not None or port is not None):
        flag = "--golden" if golden is not None else "--serial"
        fix = f"leave out {flag}, or --loss"
        raise WrongUse(Problem(f"{flag} does not go with --loss", flag, "it checks runs without learning", fix))
    if bitwise and (port is not None or learning is not None):
        flag = "--loss" if learning is not None else "--serial"
        why = "it compares the runs of builds that are made here"
        raise WrongUse(Problem(f"{flag} does not go with --bitwise", flag, why, f"leave out {flag}"))
    how = CheckSettings(data, seed, runs, Tolerance(rtol, atol), cc, golden, update_golden, port, learning, bitwise)
    jobs = [Check(file, own, how) for file, own in jobs_of(model, options)]
    refuse_several(jobs, port)
    if port is not None and (executor or golden is not None):
        fix = "leave out --executor and --golden"
        raise WrongUse(Problem("--serial does not go with --executor or --golden", "--serial", "", fix))

    def show(one: Checked) -> None:
        if len(jobs) > 1 and not as_json:
            click.echo(one.name)
        if one.failures and not one.lines and len(jobs) == 1:
            raise one.failures[0]
        if not as_json:
            click.echo(coloured("".join(f"{line}\n" for line in one.lines)), nl=False)
        click.echo("".join(f"{line}\n" for line in one.held), nl=False, err=as_json)
        if one.error is not None:
            raise one.error

    is_told = bool(executor) or is_watched()
    done = all_checked(jobs, executor, show, lambda line: click.echo(line, err=True) if is_told else None)
    found, failures = [one.found for one in done], [failed for one in done for failed in one.failures]
    groups = bit_equal(zip(jobs, done, strict=True))
    if as_json:
        told = {"ok": not failures, "checks": found} | ({"bit_equal": groups} if groups else {})
        tell("check", found[0] if len(jobs) == 1 else told)
        return CheckFailed.exit_code if failures else 0
    for file, each in groups.items():
        click.echo("".join(f"{line}\n" for line in lines_of_groups(file, each)), nl=False)
    if failures:
        raise CheckFailed(*(problem for failed in failures for problem in failed.problems))
    return 0


@commands.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--passes", default="", metavar="A,B", help="Passes to run, in this order; `lower` goes from graph to program."
)
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="Write the IR there, constants beside it."
)
@click.option(
    "--constants", type=click.Path(path_type=Path), metavar="FILE", help="Default: constants.zip beside FILE."
)
@model_options
def opt(file: Path, passes: str, output: Path | None, constants: Path | None, options: Options) -> None:
    """Run single passes on an ONNX file, or on the text of a graph or a program, and print the result."""
    from ..passes.constants_file import write_constants
    from ..single_passes import run_passes

    if output is not None:
        refuse_to_overwrite(output, file)
    names = [name.strip() for name in passes.split(",") if name.strip()]
    text, contents = run_passes(file, names, options, constants)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
        write_constants(output.with_name("constants.zip"), contents)
    except OSError as error:
        raise cannot_write("the result", output, error) from None
