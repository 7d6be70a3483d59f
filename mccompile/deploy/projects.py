"""The files of a project: the model as the ecosystem arranges it, the program, what builds it, and a README.

Invariant: the model is what `mccompile check --board` compiles with the same options, so a host that checks the board
finds the network that it expects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import string
from ..base.errors import Problem, WrongUse
from ..base.records import dataclass
from ..driver import Options, arrange, compile_jobs
from ..emit.blob import Carrier
from ..emit.building import build_name, cmake_tools
from ..emit.files import Files
from ..emit.folder import MARK, with_report
from ..emit.package import Package
from ..emit.render import render, render_c
from ..measure.eembc import BENCHMARKS, eembc_files, with_scales
from ..measure.mlperf_page import page_files
from ..measure.serving import server_files
from ..targets.boards.catalogue import Board, find
from ..toolchain.elements import to_bytes
from ..toolchain.model_report import Report, check_inputs, report_of
from .ecosystem import SHARED, Ecosystem, Main, ecosystem_of, main_of, templates
from .machines import emulated, on_chip
from .microphones import heard, refuse_unheard

_PART = 4  # of RAM, at most, that the rest of a program is taken to need
_FLOAT_BYTES = 4  # of the least floats that the loop prints
Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ProjectOptions:
    """What a project is to be."""

    model: Path
    options: Options
    ecosystem: str = ""
    main: str = ""  # serve, where nothing is asked for
    benchmark: str = ""  # of MLPerf Tiny, whose runner the program answers
    microphone: str = ""  # what the program hears with: i2s, pdm or adc
    rate: int = 16000  # of its samples
    called: str = ""  # the board, by the ecosystem
    sample: Callable[[], Inputs] | None = None  # inputs that the program has in it
    folder: str = "project"  # where it goes, as the commands of its README name it


@dataclass(frozen=True)
class Project:
    package: Package
    ecosystem: Ecosystem
    main: Main
    board: Board
    files: Files


@dataclass(frozen=True)
class _Plan:
    """What its files are made from."""

    asked: ProjectOptions
    options: Options  # that the model was compiled with
    board: Board
    ecosystem: Ecosystem
    main: Main
    package: Package
    report: Report

    @property
    def name(self) -> str:
        return self.report.prefix

    @property
    def model_folder(self) -> str:
        return self.ecosystem.model.format(name=self.name)

    @property
    def program_folder(self) -> str:
        return self.ecosystem.sources.format(name=self.name)


def project(asked: ProjectOptions) -> Project:
    options = asked.options
    if not options.board:
        fix = "name it: --board nucleo_f446re; `mccompile boards WORD` looks for one"
        why = "the board decides on target, memories, clock and build files"
        raise WrongUse(Problem("no board is given for the project", "--board", why, fix))
    board = find(options.board)
    ecosystem, main = ecosystem_of(asked.ecosystem, board), _main(asked)
    facts = ecosystem.facts_of(board, asked.called)
    if main.hears:
        ecosystem.refuse_microphone(asked.microphone, board)
    if options.blob == Carrier.EXTERNAL or options.single_file or options.module:
        why = "its program links the C files of the model, weights among them"
        fix = "leave out --blob external, --single-file and --module"
        raise WrongUse(
            Problem("deploy does not go with options that change how weights are linked", "deploy", why, fix)
        )
    if ecosystem.bare and emulated(options.resolved_target(), 0, 0) is None:
        raise ecosystem.refused(board, f"nothing here compiles and emulates programs for a {board.core.name}")
    options, package = _compiled(asked.model, options, board, ecosystem)
    content = json.loads(package.files[MARK])
    plan = _Plan(asked, options, board, ecosystem, main, package, report_of(content))
    _refuse(plan.report, main)
    if main.hears:
        refuse_unheard(content, plan.report)
    arranged = arrange({**package.files, **_server(plan, content)}, ecosystem.layout, plan.name, options)
    made = Files({f"{plan.model_folder}/{path}": arranged[path] for path in arranged if path != MARK})
    made |= {place: text.encode() for place, text in _texts(plan, facts, list(made)).items()}
    if main.server == "eembc":
        made |= page_files(BENCHMARKS[asked.benchmark], asked.model.name, board, package)
    return Project(package, ecosystem, main, board, with_report(made, content))


def _main(asked: ProjectOptions) -> Main:
    """The program: --mlperf-tiny and --microphone have one each."""
    wanted = {"mlperf-tiny": asked.benchmark, "microphone": asked.microphone}
    implied = [name for name, given in wanted.items() if given]
    found = main_of(asked.main or (implied or ["serve"])[0])
    others = [f"--{name}" for name in implied if name != found.name]
    if others:
        why = "each of them is a program of its own"
        raise WrongUse(Problem(f"--main {found.name} does not go with {others[0]}", "--main", why, "leave out one"))
    if found.name in wanted and not implied:
        fix = "name it: " + {"mlperf-tiny": "--mlperf-tiny kws", "microphone": "--microphone i2s"}[found.name]
        raise WrongUse(Problem(f"nothing says which {found.name} that is", f"--main {found.name}", "", fix))
    return found


def _server(plan: _Plan, content: Mapping[str, Any]) -> dict[str, bytes]:
    if plan.main.server == "eembc":
        return eembc_files(plan.report, plan.asked.benchmark, with_scales(content))
    return server_files(plan.report) if plan.main.server else {}


def _compiled(model: Path, options: Options, board: Board, ecosystem: Ecosystem) -> tuple[Options, Package]:
    """With room for the rest of the program, if need be by a plan that takes less; options are those of the plan."""
    (package,), _ = compile_jobs([(model, options)], options.name)
    most = board.ram - min(ecosystem.ram, board.ram // _PART)
    if package.plan.arena_bytes <= most or options.budget["ram"] < board.ram:
        return options, package
    smaller = replace(options, budget={**options.budget, "ram": most})
    (package,), _ = compile_jobs([(model, smaller)], smaller.name)
    return smaller, package


def _texts(plan: _Plan, facts: Mapping[str, str], made: list[str]) -> dict[str, str]:
    """The files around the model, by their places."""
    found = {path.replace("NAME", plan.name): template for path, template in templates(plan.ecosystem.folder).items()}
    shared = templates(SHARED)
    of_program = {**templates(plan.main.folder), **{path: shared[path] for path in shared if path != "README.md"}}
    found |= {f"{plan.program_folder}/{path}": template for path, template in of_program.items()}
    found["README.md"] = shared["README.md"]
    context = {**_of_model(plan), **_of_board(plan, facts)}
    context["model_sources"] = [path for path in made if path.endswith(".c") and "/example" not in path]
    texts = {place: _rendered(place, template, context) for place, template in found.items()}
    return {place: text for place, text in texts.items() if text.strip()}


def _rendered(place: str, template: Path, context: Mapping[str, Any]) -> str:
    return render_c(template, context).text if place.endswith((".c", ".h")) else render(template, context)


def _of_model(plan: _Plan) -> dict[str, Any]:
    report = plan.report
    target = replace(plan.options, board="", budget={}).resolved_target()
    return {
        "name": plan.name,
        "P": plan.name.upper(),
        "library": build_name(plan.name),
        "model_folder": plan.model_folder,
        "program_folder": plan.program_folder,
        "main": plan.main,
        "flags": [flag for flag in target.build.flags if not flag.startswith("-m")],
        "cmake_tools": cmake_tools([target.build], plan.name),
        "machine": emulated(target, plan.package.plan.arena_bytes + plan.ecosystem.ram, plan.package.weights_bytes),
        "arenas": [{"suffix": f"_{arena.pool.upper()}" if arena.pool else ""} for arena in report.arenas],
        "inputs": report.inputs,
        "outputs": [{"symbol": t.symbol, "is_float": t.dtype.is_float} for t in report.outputs],
        "prints_floats": any(t.dtype.is_float for t in report.outputs),
        "prints_integers": any(not t.dtype.is_float for t in report.outputs),
        "samples": _samples(plan),
        "weights_align": plan.package.weights_align,
        "has_room": _has_room(plan),
        "microphone": plan.asked.microphone if plan.main.hears else "",
        **(heard(json.loads(plan.package.files[MARK]), report, plan.asked.rate) if plan.main.hears else {}),
        "program": _program(plan),
    }


def _of_board(plan: _Plan, facts: Mapping[str, str]) -> dict[str, Any]:
    """What is said of the board, and the commands."""
    ecosystem, board = plan.ecosystem, plan.board
    words = {**facts, "name": plan.name, "model": plan.asked.model.name, "board": board.key}
    words |= {"called": facts["board"], "port": ecosystem.port, "folder": plan.asked.folder}
    lines = {"build": ecosystem.build, "flash": ecosystem.flash, "notes": ecosystem.notes, "after": plan.main.after}
    said = {key: [line.format(**words) for line in each] for key, each in lines.items()}
    said["after"] = [f"{line}{_budget(plan)}" for line in said["after"]]
    return {**said, "board": board, "facts": facts, "ecosystem": ecosystem, "chip": on_chip(board)}


def _budget(plan: _Plan) -> str:
    """The flag that says what is not the board's own."""
    own = {what: size for what, size in plan.options.budget.items() if size != plan.board.budget.get(what)}
    return f" --budget {','.join(f'{what}={size}' for what, size in own.items())}" if own else ""


def _program(plan: _Plan) -> list[str]:
    """C files around the model that are the same for all boards, or a microphone's."""
    names = ["app", *(["results"] if plan.main.prints else []), *(["microphone"] if plan.main.hears else [])]
    return [f"{plan.program_folder}/{name}.c" for name in names]


def _has_room(plan: _Plan) -> bool:
    """Does RAM hold other weights beside all else, with as much left as the program is taken to need?"""
    taken = plan.package.plan.arena_bytes + plan.package.weights_bytes
    return taken + 2 * plan.ecosystem.ram <= plan.board.ram


def _samples(plan: _Plan) -> dict[str, str]:
    """The bytes of each input, as C has them."""
    if plan.asked.sample is None:
        return {}
    inputs = plan.asked.sample()
    check_inputs(plan.report, inputs)
    return {t.name: ", ".join(map(str, to_bytes(inputs[t.name], t.dtype))) for t in plan.report.inputs}


def _refuse(report: Report, main: Main) -> None:
    """What a program that only calls init and run cannot do."""
    tensors = (*report.inputs, *report.outputs)
    narrow = [t for t in report.outputs if t.dtype.is_float and t.dtype.nbytes(1) < _FLOAT_BYTES]
    reasons = {
        "it learns": bool(report.phases),
        "sizes are known only at run time": not all(tensor.is_static for tensor in tensors),
        "it has text as input or output": any(tensor.dtype is string for tensor in tensors),
        "inputs or outputs lie outside the arena": any(tensor.room for tensor in tensors),
        "an output has floats of less than 32 bits, which the loop does not print": bool(narrow) and not main.server,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        fix = "write a program of your own around `mccompile model.onnx -o out --package ECOSYSTEM`"
        raise WrongUse(Problem("deploy has no program for this model", report.prefix, why, fix))
