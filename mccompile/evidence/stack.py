"""The certificate of the stack: frames and calls of the functions that the interface leads to, libraries included.

Invariant: the program that is looked at is the code of the package, built with the flags of its target.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from ..emit.package import Package
from ..measure.building import flags_of
from ..targets.api import Target
from ..toolchain.emulate import Emulated, run_command
from ..toolchain.stack import CallGraph
from ..toolchain.tools import missing, version


def stack_certificate(package: Package, target: Target) -> dict[str, Any] | str:
    """The certificate, or why there is none."""
    compiler = "gcc" if target.compiler == "cc" else target.compiler
    if not compiler.endswith("gcc"):
        return f"{compiler} does not say what functions take"
    if lacking := missing([compiler, *run_command(target)[:1]]):
        return f"{' and '.join(lacking)} is not installed"
    flags = flags_of(package, target)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        graph = Emulated.build(folder, target, compiler, flags).call_graph
    prefix = package.plan.prefix
    names = interface(prefix, package.files[f"{prefix}.h"].decode())
    return {
        "schema": "mccompile-stack-1",
        "compiler": version([compiler]),
        "flags": [*target.cflags, *flags],
        **of_graph(graph, [name for name in names if name in graph.frames]),
    }


def of_graph(graph: CallGraph, names: list[str]) -> dict[str, Any]:
    """Bounds of functions, and the frames that they rest on."""
    found = graph.below(names)
    bounds = {name: graph.bound(name) for name in names}
    return {
        "bounds": {name: {"bytes": b.bytes, "without": list(b.unseen)} for name, b in bounds.items()},
        "functions": {
            name: {"bytes": frame.deepest, "calls": dict(sorted(frame.calls.items()))} for name, frame in found.items()
        },
    }


def shown(stack: dict[str, Any] | str) -> str:
    """For the terminal."""
    if isinstance(stack, str):
        return f"not known: {stack}"
    texts = []
    for name, bound in stack["bounds"].items():
        if name.endswith(("_init", "_run")):
            plus = "".join(f", plus {other} (unknown)" for other in bound["without"])
            texts.append(
                f"{name} " + ("no bound" if bound["bytes"] is None else f"at most {bound['bytes']} bytes{plus}")
            )
    return "; ".join(texts)


def interface(prefix: str, header: str) -> list[str]:
    """The functions that a header declares."""
    return sorted({*re.findall(rf"^\w[\w \*]*?\b({prefix}_\w+)\([^{{}}]*?\);", header, re.MULTILINE)})
