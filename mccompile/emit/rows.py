"""Regions of rows as C. A short chain is nested loops, one counter per stage; in a long one each stage is a function,
which has the stages make what it reads. Each kernel is called at one place. What comes first and last follows from the
limits of the loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ..base.marked import listed
from ..base.names import Names
from ..base.records import dataclass
from ..plan.ir import RowRegion, Stage, Step
from ..plan.places import own_name
from ..plan.row_calls import row_calls, unasked
from ..program.pull import Pull

DEEPEST = 3  # loops of rows in each other

StepC = Callable[[Step, str, tuple[str, str]], list[str]]  # C of a step with further arguments


@dataclass(frozen=True)
class RowFunction:
    """Makes the rows of a stage until `wanted` of them are there; compilers put it back (MCC_PART)."""

    name: str
    about: str
    body: str
    may_end: bool  # the run, where rows cannot be had
    parameters: str = ", mcc_index *made, mcc_index wanted"


def is_deep(region: RowRegion) -> bool:
    """Would nested loops be too deep to be read?"""

    @cache
    def depth(number: int) -> int:
        return 1 + max((depth(pull.stage) for pull in region.stages[number].pulls), default=0)

    return depth(len(region.stages) - 1) > DEEPEST


def row_functions(region: RowRegion, step_c: StepC) -> list[RowFunction]:
    """One for each stage of a long chain, those that it asks first. How many rows each has made lies in a list."""
    found: dict[int, RowFunction] = {}

    def add(number: int) -> None:
        stage, made, inside = region.stages[number], f"made[{number}]", " " * 8
        for pull in stage.pulls:
            if pull.stage not in found:
                add(pull.stage)
        lines = [f"    while ({made} < wanted) {{", f"{inside}const mcc_index end = {_rows_until(stage, made)};"]
        for pull in stage.pulls:
            lines += _ask(region, pull.stage, _pulled(pull, stage, region.stages[pull.stage], "end"), inside)
        lines += [*step_c(stage.run, inside, (made, "end")), f"{inside}{made} = end;", "    }"]
        about = f"Makes rows of step {stage.run.number} until `wanted` of them are there."
        found[number] = RowFunction(_name(stage), about, "\n".join(lines), _may_end(region, number))

    for number in _driven(region):
        if number not in found:
            add(number)
    return [*found.values()]


def long_chain(region: RowRegion, indent: str) -> list[str]:
    """The region as calls of these functions."""
    inner = indent + "    "
    lines = [f"{indent}{{", f"{inner}mcc_index made[{len(region.stages)}] = {{0}};"]
    for number in _driven(region):
        lines += _ask(region, number, str(region.stages[number].height), inner)
    return [*lines, f"{indent}}}"]


def _ask(region: RowRegion, number: int, rows: str, indent: str) -> list[str]:
    """Has a stage make rows."""
    call, status = f"{_name(region.stages[number])}(m, made, {rows})", f"status{number}"
    if not _may_end(region, number):
        return [f"{indent}{call};"]
    return [f"{indent}const mcc_status {status} = {call};", f"{indent}if ({status} != MCC_OK) return {status};"]


def _may_end(region: RowRegion, number: int) -> bool:
    stage = region.stages[number]
    return bool(stage.run.failure) or any(_may_end(region, pull.stage) for pull in stage.pulls)


def _name(stage: Stage) -> str:
    return f"rows_of_{stage.run.number}"


def _driven(region: RowRegion) -> list[int]:
    """The stages that nothing pulls: the last one, and those that fetch rows that nobody reads as well."""
    return [len(region.stages) - 1, *unasked(region)]


def _pulled(pull: Pull, stage: Stage, source: Stage, end: str) -> str:
    """C for how many rows of a source the rows of a stage up to `end` read."""
    rows = end if pull.scale == 1 else f"{end} * {pull.scale}"
    rows += f" + {pull.shift}" if pull.shift > 0 else f" - {-pull.shift}" if pull.shift else ""
    if pull.parts > 1:  # rounding towards zero instead of down changes nothing: below 1, no row is made
        rows = f"({rows}) / {pull.parts}"
    return _least(rows, source.height, pull.wanted(stage.height) > source.height)


def short_chain(region: RowRegion, indent: str, step_c: StepC) -> list[str]:
    """The region as nested loops."""
    stages, names = region.stages, _counters(region)
    lines = [f"{indent}{{"]
    inner = indent + "    "
    lines.append(f"{inner}mcc_index {listed(f'made_{name} = 0' for name in names)};")

    def loop(number: int, wanted: str, indent: str) -> None:
        stage = stages[number]
        made, end = f"made_{names[number]}", f"end_{names[number]}"
        inside = indent + "    "
        lines.append(f"{indent}while ({made} < {wanted}) {{")
        lines.append(f"{inside}const mcc_index {end} = {_rows_until(stage, made)};")
        for pull in stage.pulls:
            rows = _pulled(pull, stage, stages[pull.stage], end)
            if "?" in rows:
                lines.append(f"{inside}const mcc_index wanted_{names[pull.stage]} = {rows};")
                rows = f"wanted_{names[pull.stage]}"
            loop(pull.stage, rows, inside)
        lines.extend(step_c(stage.run, inside, (made, end)))
        lines.append(f"{inside}{made} = {end};")
        lines.append(f"{indent}}}")

    for number in _driven(region):
        loop(number, str(stages[number].height), inner)
    return [*lines, f"{indent}}}"]


def _counters(region: RowRegion) -> list[str]:
    """What counts the rows of stages is called after the buffers that these write, as far as C names them."""
    names = Names()
    results = (
        [a.address.place for a in stage.run.arguments if a.written and a.role != "scratch"] for stage in region.stages
    )
    owns = (next((own_name(place) for place in places if place), f"{n}") for n, places in enumerate(results))
    return [names.take(own) for own in owns]


def row_slices(
    region: RowRegion,
    first: int,
    indent: str,
    step_c: StepC,
    at_end: Sequence[str],
) -> list[str]:
    """The same, one call at a time: `step` is the number of the slice, of which those from `first` on are calls of the
    region. How many rows each stage has made lies in the model's struct. `at_end` comes behind the last one."""
    calls, inner = row_calls(region), indent + "    "
    type = "uint8_t" if len(region.stages) < 256 else "uint16_t"
    lines = [
        f"{indent}static const {type} stages[{len(calls)}] = {{{listed(map(str, calls))}}};",
        f"{indent}if (step == {first}u) memset(m->made, 0, sizeof m->made);",
        f"{indent}switch (stages[step - {first}u]) {{",
    ]
    for number in dict.fromkeys(calls):
        stage = region.stages[number]
        lines += [
            f"{indent}case {number}u: {{",
            f"{inner}const mcc_index made = m->made[{number}];",
            f"{inner}const mcc_index end = {_rows_until(stage, 'made')};",
            *step_c(stage.run, inner, ("made", "end")),
            f"{inner}m->made[{number}] = end;",
            f"{inner}break;",
            f"{indent}}}",
        ]
    lines += [f"{indent}default: break;", f"{indent}}}"]
    if not at_end:
        return lines
    return [*lines, f"{indent}if (step == {first + len(calls) - 1}u) {{", *at_end, f"{indent}}}"]


def _rows_until(stage: Stage, made: str) -> str:
    return _least(f"{made} + {stage.step}", stage.height, stage.height % stage.step != 0)


def _least(text: str, limit: int, may_exceed: bool) -> str:
    return f"{text} < {limit} ? {text} : {limit}" if may_exceed else text
