"""Regions of rows as C: nested loops, one counter per stage, each function called at one place. What comes first and
last follows from the limits of the loops."""

from __future__ import annotations

from collections.abc import Callable

from ..base.marked import listed
from ..plan.ir import RowRegion, Step


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
        rows = _least(f"{made} + {stage.step}", stage.height, stage.height % stage.step != 0)
        lines.append(f"{inside}const mcc_index {end} = {rows};")
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
    for number, asked in enumerate(_asked(region)):
        if stages[number].run.may_end and asked < stages[number].height:  # rows that nobody reads are fetched as well
            loop(number, str(stages[number].height), inner)
    return [*lines, f"{indent}}}"]


def _asked(region: RowRegion) -> list[int]:
    """How many rows of each stage the others want."""
    stages = region.stages
    found = [0] * (len(stages) - 1) + [stages[-1].height]

    def ask(number: int) -> None:
        for pull in stages[number].pulls:
            found[pull.stage] = min(stages[pull.stage].height, pull.wanted(found[number]))
            ask(pull.stage)

    ask(len(stages) - 1)
    return found


def _least(text: str, limit: int, may_exceed: bool) -> str:
    return f"{text} < {limit} ? {text} : {limit}" if may_exceed else text
