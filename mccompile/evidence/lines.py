"""Where each line of generated files comes from: segments of lines, one after the other, that leave none out.

Generated C is regular: what begins in the first column ends with a line that does. What is not known to be written by
a template is `untraced`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..emit.package import Package
from ..plan.ir import Step
from .check_calls import passed
from .memory import passed_by

_INTERFACE = (
    "init|reset|save_state|load_state|seed|resize|begin|run_steps|advance|push|step_ticks|put_profile|set_parallel|set_dump|"
    r"set_\w+|input_\w+|output_\w+|state_\w+"
)
_STATIC = ("share", "dump_given", "dump_end")


def segments(path: str, package: Package) -> Iterator[dict[str, Any]]:
    """Of one file. `lines` are the first and the last."""
    prefix = package.plan.prefix
    if path.startswith("runtime/"):
        yield _whole("runtime", package.files[path])
    elif path in (f"{prefix}.c", f"{prefix}_kernels.c", f"{prefix}_kernels.h"):
        lines = package.files[path].decode().split("\n")[:-1]
        yield from _c(lines, package, _calls(lines, package) if path == f"{prefix}.c" else ())
    elif path.endswith((".mcb", "_weights.c")):
        yield _whole("blob", package.files[path])
    elif path == f"{prefix}.h":
        yield _whole("interface", package.files[path])
    else:
        yield _whole("around", package.files[path])  # the report, build files, an example, other languages


def _whole(what: str, contents: bytes) -> dict[str, Any]:
    return {"lines": [1, contents.count(b"\n") + (not contents.endswith(b"\n"))], "what": what, "steps": []}


def _c(lines: Sequence[str], package: Package, calls: Sequence[tuple[int, int, int]]) -> Iterator[dict[str, Any]]:
    """Declarations with what stands in front of each."""
    plan = package.plan
    steps: dict[str, list[int]] = {}
    for step in plan.steps():
        steps.setdefault(step.function.name, []).append(step.number)
    steps |= _shared(lines, steps)
    at, begin = 0, 0
    while at < len(lines):
        end = _end(lines, at)
        text = lines[at]
        if text and not text.startswith(("/*", "#", " *")):
            yield from _declared(lines, begin, at, end, steps, calls, plan.prefix)
            begin = end + 1
        at = end + 1
    if begin < len(lines):
        yield {"lines": [begin + 1, len(lines)], "what": "frame", "steps": []}


def _shared(lines: Sequence[str], steps: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Functions that functions of several steps call, and the steps of these."""
    called: dict[str, set[str]] = {}
    name = ""
    for line in lines:
        if line[:1].isalpha() and (opened := re.search(r"(\w+)\(", line.removeprefix("MCC_PART "))):
            name = opened[1]
            called.setdefault(name, set())
        elif line.startswith(" "):
            called.setdefault(name, set()).update(re.findall(r"\b(\w+)\(", line))
    found: dict[str, set[int]] = {}
    for name in reversed(called):  # what is called stands in front of what calls it
        of = found.get(name, set()).union(steps.get(_kernel(name, steps), ()))
        for each in called[name] & called.keys():
            found.setdefault(each, set()).update(of)
    return {each: sorted(of) for each, of in found.items() if of and not _kernel(each, steps)}


def _kernel(name: str, steps: Collection[str]) -> str:
    """The function of steps that a function is, or is a part of."""
    return max((each for each in steps if name == each or name.startswith(f"{each}_")), key=len, default="")


def _end(lines: Sequence[str], at: int) -> int:
    """The last line of what begins in the first column there."""
    text = lines[at]
    if text.startswith("/*"):
        return next(n for n in range(at, len(lines)) if "*/" in lines[n])
    if text.startswith("#"):
        return next(n for n in range(at, len(lines)) if not lines[n].endswith("\\"))
    if not text or text.startswith('extern "C"'):
        return at
    for n in range(at, len(lines)):
        closes = lines[n].startswith("}")
        if closes or (lines[n].split("/*")[0].rstrip().endswith(";") and not any("{" in x for x in lines[at : n + 1])):
            return n
        if lines[n].rstrip().endswith("};") and n == at:
            return n
    return len(lines) - 1


def _declared(
    lines: Sequence[str],
    begin: int,
    at: int,
    end: int,
    steps: Mapping[str, Sequence[int]],
    calls: Sequence[tuple[int, int, int]],
    prefix: str,
) -> Iterator[dict[str, Any]]:
    found = re.search(r"(\w+)\(", lines[at])
    name = found[1] if found else ""
    place = {"lines": [begin + 1, end + 1]}
    if name.startswith("MCC_"):  # a macro that writes a function, whose name it is told first
        name = next(iter(re.findall(r"\((\w+)", lines[at])), "") if name != "MCC_PART" else name
    kernel = _kernel(name, steps)
    if kernel:
        yield place | {"what": "function", "name": name, "steps": steps[kernel]}
    elif re.fullmatch(rf"{prefix}_run|run_part_\d+|run_step|(?:piece|rows)_of_\d+", name):
        yield from _run(lines, begin, end, name, calls)
    elif re.fullmatch(rf"{prefix}_(?:{_INTERFACE})", name) or name in (*_STATIC, "mcc_host_tick"):
        yield place | {"what": "interface", "name": name, "steps": []}
    elif lines[at].startswith(("enum ", "static const ", "extern ", "typedef ", "}")):
        yield place | {"what": "table", "steps": []}
    else:
        yield place | {"what": "untraced", "name": name, "steps": []}


def _calls(lines: Sequence[str], package: Package) -> list[tuple[int, int, int]]:
    """First line, last line and step of every call that a run makes, with its comment, in the order of the lines."""
    text = "\n".join(lines)
    bare = re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)
    names = {step.function.name for step in package.plan.steps()}
    sites = {
        name: [(m.start(), passed(bare, m.end())) for m in re.finditer(rf"(?<!\w){re.escape(name)}\(", bare)]
        for name in names
    }
    found = []

    def made_at(site: tuple[int, Sequence[str]], step: Step) -> None:
        first = bare.count("\n", 0, site[0])
        last = bare.count("\n", 0, bare.index(";", site[0]))
        while lines[first - 1].lstrip().startswith(("/*", "* ")):
            first -= 1
        found.append((first, last, step.number))

    for step in package.plan.steps():
        wanted, there = passed_by(step), sites[step.function.name]
        for _ in range(len(step.shared.phases) if step.shared else 1):
            site = next((each for each in there if each[1][: len(wanted)] == wanted), None)
            if site is not None:
                there.remove(site)
                made_at(site, step)
    for step in package.plan.steps():  # what is called in two places, such as for rows that nothing reads
        wanted, there = passed_by(step), sites[step.function.name]
        for site in [each for each in there if each[1][: len(wanted)] == wanted]:
            there.remove(site)
            made_at(site, step)
    return sorted(found)


def _run(
    lines: Sequence[str], begin: int, end: int, name: str, calls: Sequence[tuple[int, int, int]]
) -> Iterator[dict[str, Any]]:
    """Calls of steps with their comments, and the lines between: control flow of the steps around them. What calls no
    step is like the other functions of the interface."""
    own = [call for call in calls if begin <= call[0] and call[1] <= end]
    if not own:
        yield {"lines": [begin + 1, end + 1], "what": "interface", "name": name, "steps": []}
        return
    at = begin
    for number, (first, last, step) in enumerate(own):
        if first > at:
            around = sorted({own[max(0, number - 1)][2], step})
            yield {"lines": [at + 1, first], "what": "control", "name": name, "steps": around}
        if last >= at:
            yield {"lines": [max(first, at) + 1, last + 1], "what": "step", "name": name, "steps": [step]}
        at = max(at, last + 1)
    if at <= end:
        yield {"lines": [at + 1, end + 1], "what": "control", "name": name, "steps": [own[-1][2]]}
