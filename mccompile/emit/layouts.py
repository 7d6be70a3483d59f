"""The same C files, arranged as an ecosystem wants them: one folder in layouts/ is one arrangement.

A layout's `layout.toml` says where sources, headers and examples go ("" is the top; no `main` leaves examples out);
every template below the folder becomes a file at its place there, with NAME in its path replaced.
Invariant: the texts of the C files are not changed, so blob and identity are those of any other arrangement.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.near import meant
from ..base.records import dataclass
from ..targets.api import Build
from .blob import Carrier
from .building import build_name, cmake_tools, flags_text, from_report, make_tools
from .files import Files
from .folder import MARK, with_report
from .render import render
from .wrappers.registry import LANGUAGES
from .wrappers.rust import name_in_rust

LAYOUTS = Path(__file__).parent / "layouts"
_BUILD_FILES = frozenset({"Makefile", "CMakeLists.txt"})


@dataclass(frozen=True)
class Layout:
    name: str
    about: str
    sources: str
    headers: str
    main: str = ""
    flags_per_file: bool = False
    one_build: bool = False  # all is compiled with the same flags
    wrapper: str = ""  # the language that it is for, where that is not C
    # patterns of the flags or compilers of targets whose code it can hold, "" for those of any machine; none: all
    cores: tuple[str, ...] = ()
    target: str = ""  # one of them
    architectures: Mapping[str, list[str]] = field(default_factory=dict)  # by target: what the ecosystem calls it

    def runs_on(self, builds: Sequence[Build]) -> list[str]:
        """Where all of the code does what it is made for, in the ecosystem's words; none: everywhere. A target that has
        none there is named as it is."""
        names = [self.architectures.get(build.target, [build.target]) for build in builds]
        anywhere = any(not build.needs for build in builds)
        return [] if anywhere else list(dict.fromkeys(name for each in names for name in each))

    def holds(self, build: Build) -> bool:
        """Does the ecosystem know such a core?"""
        of_machine = [flag for flag in build.flags if flag.startswith(("-m", "--target="))]
        words = [*of_machine, PurePosixPath(build.compiler).name] if of_machine else [""]
        return not self.cores or any(re.fullmatch(core, word) for core in self.cores for word in words)

    @property
    def templates(self) -> list[Path]:
        return sorted((LAYOUTS / self.name).rglob("*.j2"))


@cache
def layouts() -> Mapping[str, Layout]:
    """All there are, by name."""
    found = sorted(LAYOUTS.glob("*/layout.toml"))
    return {path.parent.name: Layout(path.parent.name, **tomllib.loads(path.read_text("utf-8"))) for path in found}


def layout_of(name: str, carrier: str, single_file: bool, module: bool = False) -> Layout:
    """The arrangement called so, for files that it can hold."""
    if name not in layouts():
        why = f"it can be {', '.join(layouts())}"
        fix = meant(name, layouts(), "--package") or f"name one of them, such as --package {next(iter(layouts()))}"
        raise WrongUse(Problem(f"unknown package {name!r}", "--package", why, fix))
    if single_file:
        raise WrongUse(Problem("--single-file does not go with --package", "", "", "leave out --single-file"))
    if module:
        why = "a module is built by its own Makefile, not as a library"
        raise WrongUse(Problem("a module does not go with --package", "--module", why, "leave out --package"))
    if carrier == Carrier.INCBIN:
        why = "each of these builds has its own way of telling the assembler where files are"
        raise WrongUse(Problem("the blob cannot be brought in by the assembler", "--package", why, "leave out --blob"))
    return layouts()[name]


def arranged(files: Mapping[str, bytes], layout: Layout, name: str, version: str, external: bool) -> Files:
    """`files` are those of a package, or of several models; `name` is what a build knows the whole by."""
    report = json.loads(files[MARK])
    models = report.get("models", [report])
    prefixes = [model["prefix"] for model in models]
    builds = _builds(report)
    if "picked" in report and not layout.flags_per_file:
        why = "a program that picks at run time needs flags for each file, which it does not know"
        where = f"--package {layout.name} --target {','.join(part['target'] for part in report['targets'])}"
        raise WrongUse(Problem(f"{layout.name} cannot build for several processors", where, why, "name one target"))
    if layout.one_build and len(builds) > 1:
        where = f"--package {layout.name}"
        why = f"{', '.join(build.target for build in builds)} need flags of their own, and it has the same for all"
        raise WrongUse(Problem(f"{layout.name} cannot build for several targets", where, why, "name one target"))
    foreign = [build.target for build in builds if not layout.holds(build)]
    if foreign:
        why = f"its code is for {', '.join(foreign)}, and no core of that ecosystem runs it"
        where, fix = f"--package {layout.name}", f"did you mean --target {layout.target}?"
        raise WrongUse(Problem(f"{layout.name} cannot package code for other processors", where, why, fix))
    if layout.wrapper and not all(path in files for p in prefixes for path in LANGUAGES[layout.wrapper].files(p)):
        why = f"it is for programs in another language than C, and needs what --wrapper {layout.wrapper} writes"
        fix = f"--wrapper {layout.wrapper}"
        raise WrongUse(Problem(f"{layout.name} lacks its wrapper", f"--package {layout.name}", why, fix))
    own_flags = "targets" not in report and len(builds) > 1  # of each model
    tools = [replace(builds[0], flags=(), needs="")] if own_flags else builds
    places = {path: place for path in files if (place := _place(path, layout))}
    made = Files.of(files).moved(places)
    programs = [
        {"path": place, "name": PurePosixPath(path).stem if len(prefixes) > 1 else f"{name}_main"}
        for path, place in places.items()
        if _is_program(path)
    ]
    context: dict[str, Any] = {
        "name": name,
        "version": version,
        "library": build_name(name),
        "modules": {prefix: name_in_rust(prefix) for prefix in prefixes},
        "crate": name_in_rust(build_name(name)),
        "builds": builds,
        "make_tools": make_tools(tools),
        "cmake_tools": cmake_tools(tools, name),
        "targets": ", ".join(build.target for build in builds),
        "flags": "; or ".join(flags_text(build) for build in builds if build.flags),
        "own_flags": list(builds[0].flags) if len(builds) == 1 and builds[0].hosted else [],
        "file_flags": [
            {"files": [places[f"{m['prefix']}{part}.c"] for part in ("", "_kernels")], "flags": m["flags"]}
            for m in models
            if own_flags
        ]
        + [
            {"files": [places[path] for path in own["files"]], "flags": own["flags"]}
            for own in report.get("file_flags", [])
        ],
        "runs_on": layout.runs_on(builds),
        "arena": max(model["arena_bytes"] for model in models),
        "prefixes": prefixes,
        "carried": not external,
        "sources": [place for path, place in places.items() if path.endswith(".c") and not _is_program(path)],
        "modules_in_c": [place for path, place in places.items() if path.endswith("_micropython.c")],
        "module_sources": {prefix: _of_module(places, prefix) for prefix in prefixes},
        "headers": [f"{prefix}.h" for prefix in prefixes],
        "programs": programs,
        "pools": {model["prefix"]: [f"_{pool['name']}" for pool in model.get("pools", [])] or [""] for model in models},
        "outside": {
            model["prefix"]: [
                {"field": f"{way}_{t['symbol']}", **t["external"]}
                for way in ("input", "output")
                for t in model[f"{way}s"]
                if "external" in t
            ]
            for model in models
        },
        "fetched": {model["prefix"]: [t["symbol"] for t in model["inputs"] if "rows" in t] for model in models},
    }
    for template in layout.templates:
        path = template.relative_to(LAYOUTS / layout.name).as_posix().removesuffix(".j2").replace("NAME", name)
        made |= {path: render(template, context).encode()}
    return with_report(made, report)


def _builds(report: Mapping[str, Any]) -> list[Build]:
    """Of all that is in a folder, each once."""
    parts = None if "picked" in report else report.get("targets") or report.get("models")
    return list(dict.fromkeys(build for part in parts for build in _builds(part))) if parts else [from_report(report)]


def _of_module(places: Mapping[str, str], prefix: str) -> list[str]:
    """What is compiled for one model alone: all but programs and the entry points of other models."""
    sources = [(path, place) for path, place in places.items() if path.endswith(".c") and not _is_program(path)]
    return [place for path, place in sources if not path.endswith("_module.c") or path.endswith(f"/{prefix}_module.c")]


def _is_program(path: str) -> bool:
    return path == "main.c" or path.endswith("_main.c")


def _place(path: str, layout: Layout) -> str:
    """Where a file of a package goes; "" where it is left out."""
    name = PurePosixPath(path).name
    if path == MARK or path in _BUILD_FILES:
        return ""
    if _is_program(path):
        return str(PurePosixPath(layout.main).with_name(name)) if layout.main else ""
    if name.endswith(".mcb"):
        return name
    if name.endswith(".rs"):
        return f"src/{name}"
    if name.endswith((".js", ".d.ts")):
        return name
    if name.endswith((".c", "_kernels.h")):
        return str(PurePosixPath(layout.sources, name))
    return str(PurePosixPath(layout.headers, name))
