"""The file of kernels: each distinct instance once, and the header that declares them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.marked import Marked, plain, read
from ..base.provenance import show
from ..plan.ir import Function, Step
from ..plan.row_calls import Pieces
from ..targets.api import Build
from . import kernels
from .addresses import passed
from .building import missing_flags
from .kernels import signature
from .render import TEMPLATES, Source, comment, render_c
from .shared_bodies import with_shared_bodies
from .shared_steps import with_shared_steps
from .tokens import tokens


def kernel_files(
    prefix: str,
    build: Build,
    functions: Sequence[Function],
    steps: Iterable[Step],
    pieces: Mapping[str, Pieces],
    also: str = "",
    users: str = "",
) -> dict[str, Source]:
    """`<prefix>_kernels.c` and `.h`: the functions, which the steps use. `pieces`: for which rows some of them
    are called (plan/row_calls.py). `also` is a header with further ones,
    `users` are the files that call them."""
    first: dict[str, Step] = {}
    uses: dict[str, int] = {}
    for step in steps:
        first.setdefault(step.function.name, step)
        uses[step.function.name] = uses.get(step.function.name, 0) + 1
    common, functions = with_shared_steps(functions, prefix)
    shown, headers, own = [], set[str](), set[str]()
    for function in with_shared_bodies(functions, prefix):
        step = first[function.name]
        tensors = ", ".join(f"{a.role} {type}" for a, type in passed(step))
        count = uses[function.name]
        done = kernels.printed(function, pieces.get(function.name, frozenset()))
        headers |= done.headers
        own |= function.kernel.files(function.call).keys() & function.kernel.headers(function.call)
        shown.append(
            {
                "name": function.name,
                "parts": done.parts.strip("\n"),
                "text": done.own.rstrip(),
                "signature": signature(function),
                "kernel": function.kernel.id,
                "tensors": comment(tensors),
                "use": comment(show(step.provenance)) + (f" and {count - 1} more" if count > 1 else ""),
            }
        )
    _name_callers(shown)
    steps_c = called_steps(common, [plain(each["parts"] + each["text"]) for each in shown])
    headers.update(*(each.headers for each in steps_c))
    context = {
        "prefix": prefix,
        "guard": prefix.upper(),
        "missing_flags": missing_flags(build, prefix),
        "also": also,
        "users": users or f"{prefix}.c",
        "shared": [each.text.rstrip() for each in steps_c],
        "functions": shown,
        "asks": any(function.kernel.asks for function in functions),
        "queues": any(function.kernel.queued(function.call) for function in functions),
        "runtime_headers": sorted(h for h in headers if h.startswith("mcc_")),
        "own_headers": sorted(own),
        "headers": sorted(h for h in headers - own if not h.startswith("mcc_")),
    }
    return {
        f"{prefix}_kernels.h": render_c(TEMPLATES / "kernels.h.j2", context),
        f"{prefix}_kernels.c": render_c(TEMPLATES / "kernels.c.j2", context),
    }


def called_steps(common: Sequence[str], texts: Sequence[str]) -> list[Marked]:
    """The shared steps that are called: conditions that turned out to be known took some calls away."""
    found: list[Marked] = []
    for text in reversed(common):  # each calls earlier ones only
        done, name = read(text), text.partition("(")[0].split()[-1]
        if any(f"{name}(" in each for each in (*texts, *(step.text for step in found))):
            found.insert(0, done)
    return found


def _name_callers(functions: Sequence[dict[str, str]]) -> None:
    """Says in front of functions that stand before another one whether more than this one call them."""
    for function in functions:
        heads = [tokens(line) for line in plain(function["parts"]).splitlines() if line.startswith("MCC_PART ")]
        names = [head[2].name for head in heads]  # behind the type
        callers = [each for each in functions if any(f"{name}(" in plain(each["text"]) for name in names)]
        more = len([each for each in callers if each is not function])
        function["callers"] = function["name"] + (f" and {more} more" if more else "")
