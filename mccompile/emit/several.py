"""Several models in one folder: the runtime once, and kernels that models have in common once.

Invariant: a model's blob, its identity and its header are those of the model compiled alone, so weights trained anew
are compiled alone and run on firmware that holds several. Only the names of shared kernels differ in its code.
Models whose constants are the same bytes at the same places have one blob: that of the first of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..base.errors import Problem, WrongUse
from ..base.names import Names
from ..plan.ir import Arena, Function, Plan, with_steps
from ..plan.row_calls import pieces
from .addresses import suffix_of
from .building import build_name, cmake_tools, make_tools
from .files import Files
from .folder import LIST, MARK, SEAL, with_report
from .kernel_files import kernel_files
from .kernels import function_text
from .package import Package
from .render import TEMPLATES, render, render_c


def several(packages: Sequence[Package], name: str) -> Files:
    """The files of all; `name` begins the names of what they share."""
    prefixes = [package.plan.prefix for package in packages]
    for prefix in {prefix for prefix in [*prefixes, name] if [*prefixes, name].count(prefix) > 1}:
        fix = "rename a file: names in C come from it"
        raise WrongUse(Problem(f"two things would be called {prefix!r}", ", ".join(prefixes), "", fix))
    builds = list(dict.fromkeys(package.plan.build for package in packages))
    shared = _shared(packages, name) if len(builds) == 1 else {}
    tools = builds[0] if len(builds) == 1 else replace(builds[0], flags=(), needs="")
    header = f"{name}_kernels.h"
    files = Files({})
    steps = []
    twins = [next(other for other in packages if same_weights(other, package)) for package in packages]
    for package, twin in zip(packages, twins, strict=True):
        plan = package.plan
        own = [function for function in plan.functions if function.name not in shared]
        plain_steps = [step for step in plan.steps() if step.function.name not in shared]
        sources = kernel_files(plan.prefix, plan.build, own, plain_steps, pieces(plan), header if shared else "")
        left_out = {MARK, "main.c", "Makefile", "CMakeLists.txt"}
        model = package.own_files(twin.plan.prefix, twin.identity, _with(plan, shared))
        if twin is not package:
            left_out |= {f"{plan.prefix}.mcb", f"{plan.prefix}_weights.c"}
        sources |= {path: source for path, source in model.items() if path != "main.c"}
        sources |= {f"{plan.prefix}_main.c": model["main.c"]}
        own_files = package.files.only(path for path in package.files if path not in left_out)
        own_files |= {path: source.text.encode() for path, source in sources.items()}
        _refuse_doubles(files, own_files, plan.prefix)
        files |= own_files
        steps += [
            replace(step, function=shared[step.function.name]) for step in plan.steps() if step.function.name in shared
        ]
    functions = list({function.name: function for function in shared.values()}.values())
    users = ", ".join(f"{p}.c" for p in prefixes)
    sources = kernel_files(name, builds[0], functions, steps, {}, users=users) if shared else {}
    context: dict[str, object] = {"name": name, "N": name.upper(), "prefixes": prefixes, "shared": bool(shared)}
    context["arenas"] = _arenas(packages)
    context |= {"library": build_name(name), "programs": {prefix: build_name(prefix) for prefix in prefixes}}
    context["file_flags"] = [
        {"files": [f"{p.plan.prefix}{part}.c" for part in ("", "_kernels", "_main")], "flags": p.plan.build.flags}
        for p in packages
        if len(builds) > 1
    ]
    context["carriers"] = [prefix for prefix in prefixes if f"{prefix}_weights.c" in files]
    sources |= {f"{name}.h": render_c(TEMPLATES / "several.h.j2", context)}
    texts = {path: source.text for path, source in sources.items()}
    makefile = context | {"tools": make_tools([tools])}
    texts |= {"Makefile": render(TEMPLATES / "several.Makefile.j2", makefile)}
    cmake = context | {"tools": cmake_tools([tools], name)}
    texts |= {"CMakeLists.txt": render(TEMPLATES / "several.CMakeLists.txt.j2", cmake)}
    own_files = Files({path: text.encode() for path, text in texts.items()})
    _refuse_doubles(files, own_files, name)
    files |= own_files
    reports = [json.loads(package.files[MARK]) for package in packages]
    for report, twin in zip(reports, twins, strict=True):
        del report[LIST], report[SEAL]
        report["weights_of"] = twin.plan.prefix
    return with_report(files, {"models": reports, "shared_functions": len(functions)})


def _refuse_doubles(files: Mapping[str, bytes], more: Mapping[str, bytes], prefix: str) -> None:
    """Such as of models kws and kws_kernels. What the runtime has is the same for all."""
    for path in sorted(files.keys() & more.keys()):
        if files[path] != more[path]:
            why = f"another one's is called so too, and {prefix} would write it over"
            raise WrongUse(Problem(f"two files would be called {path!r}", prefix, why, "rename a model: --name"))


def same_weights(one: Package, other: Package) -> bool:
    """Do they read the same constants at the same places, and assume the same of them? Such as one network for two
    sizes of its inputs."""
    blobs = [bytearray(package.files[f"{package.plan.prefix}.mcb"]) for package in (one, other)]
    for blob in blobs:
        blob[16:32], blob[60:64] = bytes(16), bytes(4)  # the identity, and the checksum over it
    return blobs[0] == blobs[1] and one.plan.assumptions == other.plan.assumptions


def _arenas(packages: Sequence[Package]) -> list[dict[str, object]]:
    """One in each memory, large enough for every model that has tensors in it."""
    found: dict[str, list[Arena]] = {}
    for package in packages:
        for arena in package.plan.arenas:
            found.setdefault(arena.base, []).append(arena)
    return [
        {"suffix": suffix_of(base), "bytes": max(1, *(a.bytes for a in same)), "align": max(a.align for a in same)}
        for base, same in found.items()
    ]


def _shared(packages: Sequence[Package], name: str) -> dict[str, Function]:
    """Functions that more than one model has, by the names that they have in each."""
    same: dict[str, list[tuple[str, Function]]] = {}
    for package in packages:
        for function in package.plan.functions:
            text = function_text(replace(function, name="a_function"))
            same.setdefault(text, []).append((package.plan.prefix, function))
    names = Names()
    found: dict[str, Function] = {}
    for group in same.values():
        if len({prefix for prefix, _ in group}) > 1:
            prefix, function = group[0]
            common = replace(function, name=names.take(f"{name}_{function.name.removeprefix(prefix + '_')}"))
            found |= {member.name: common for _, member in group}
    return found


def _with(plan: Plan, shared: Mapping[str, Function]) -> Plan:
    """The plan whose steps call shared functions by their common names."""
    return replace(
        plan,
        items=with_steps(
            plan.items, lambda step: replace(step, function=shared.get(step.function.name, step.function))
        ),
    )
