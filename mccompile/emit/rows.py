"""Regions of rows as C: nested loops, one counter per stage, each function called at one place. What comes first and
last follows from the limits of the loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.marked import listed
from ..plan.ir import RowRegion, Stage, Step
from ..plan.row_calls import row_calls, unasked


def row_region(region: RowRegion, indent: str, step_c: Callable[[Step, str, tuple[str, str]], list[str]]) -> list[str]:
    """`step_c` prints a step with further arguments."""
    stages = region.stages
    lines = [f"{indent}{{"]
    inner = indent + "    "
    lines.append(f"{inner}mcc_index {listed(f'made{number} = 0' for number in range(len(stages)))};")

    def loop(number: int, wanted: str, indent: str) -> None:
        stage = stages[number]
        made, end = f"made{number}", f"end{number}"
        inside = indent + "    "
        lines.append(f"{indent}while ({made} < {wanted}) {{")
        lines.append(f"{inside}const mcc_index {end} = {_rows_until(stage, made)};")
        for pull in stage.pulls:
            source = stages[pull.stage]
            rows = end if pull.scale == 1 else f"{end} * {pull.scale}"
            rows += f" + {pull.shift}" if pull.shift > 0 else f" - {-pull.shift}" if pull.shift else ""
            if pull.parts > 1:  # rounding towards zero instead of down changes nothing: below 1, no row is made
                rows = f"({rows}) / {pull.parts}"
            if pull.wanted(stage.height) > source.height:
                lines.append(f"{inside}const mcc_index wanted{pull.stage} = {_least(rows, source.height, True)};")
                rows = f"wanted{pull.stage}"
            loop(pull.stage, rows, inside)
        lines.extend(step_c(stage.run, inside, (made, end)))
        lines.append(f"{inside}{made} = {end};")
        lines.append(f"{indent}}}")

    loop(len(stages) - 1, str(stages[-1].height), inner)
    for number in unasked(region):  # rows that nobody reads are fetched as well
        loop(number, str(stages[number].height), inner)
    return [*lines, f"{indent}}}"]


def row_slices(
    region: RowRegion,
    first: int,
    indent: str,
    step_c: Callable[[Step, str, tuple[str, str]], list[str]],
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
        made, until = f"made{number}", f"end{number}"
        lines += [
            f"{indent}case {number}u: {{",
            f"{inner}const mcc_index {made} = m->made[{number}];",
            f"{inner}const mcc_index {until} = {_rows_until(stage, made)};",
            *step_c(stage.run, inner, (made, until)),
            f"{inner}m->made[{number}] = {until};",
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
