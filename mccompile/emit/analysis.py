"""Everything there is to say of a compiled model, as one JSON object: what report.json says, and per step what it was
fused from, which steps it reads from, which buffers it touches and when, and what the next kernel would have cost.

`report.schema.json` beside this file is its schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.provenance import Provenance
from ..passes.api import Explanation
from ..plan.ir import Argument, Branch, Item, Plan, Repeat, RowRegion, Step, is_arena
from .package import Package
from .timeline import timeline

_OF_FILES = ("files", "seal")  # report.json says it of the output folder


def analysis_of(package: Package, measured: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The object; `measured` is what `mccompile bench --json` says, where that has been asked for. `more`: `frontier`,
    the best plans, and `quantized`, what quantizing costs."""
    report = json.loads(package.files["report.json"])
    choices = {
        (item.provenance, item.choice.candidates[0].kernel.id): item
        for item in package.explanations
        if item.choice.candidates
    }
    steps = list(package.plan.steps())
    sources, when, buffers = _sources(steps), _moments(package.plan), _numbers(package.plan)
    return {
        **{key: value for key, value in report.items() if key not in _OF_FILES},
        "steps": [
            {
                **said,
                "nodes": list(step.provenance),
                "result": ", ".join(str(a.type) for a in step.arguments if a.written and a.role != "scratch"),
                "ram_bytes": _touched(step),
                "weights_bytes": sum(a.high - a.low for a in step.arguments if a.address.base == "blob"),
                **_measured(measured or {}, number, step.function.name),
                "after": sources[number],
                "moment": when[step.number],
                "touches": [_touch(a, buffers) for a in step.arguments if is_arena(a.address.base)],
                **({"estimated_cycles": step.cycles} if step.function.kernel.copies else {}),
                **_choice(choices, step.provenance, step.function.kernel.id),
            }
            for number, (step, said) in enumerate(zip(steps, report["steps"], strict=True))
        ],
        **({"timeline": told} if (told := timeline(package.plan)) else {}),
        **({"measured": dict(measured)} if measured else {}),
        **{key: value for key, value in more.items() if value is not None},
    }


def _measured(measured: Mapping[str, Any], number: int, function: str) -> dict[str, Any]:
    """What is known of a step, and of its function, which others may share."""
    found = {"stack_bytes": "function_stack_bytes", "code_bytes": "function_code_bytes"}
    made = {key: measured[of][function] for key, of in found.items() if function in measured.get(of, {})}
    if isinstance(measured.get("steps"), list):
        took = measured["steps"][number]
        made |= {f"measured_{unit}": took[unit] for unit in ("us", "ticks", "instructions") if unit in took}
    return made


def _touched(step: Step) -> int:
    """Bytes of arenas, each counted once."""
    total, end = 0, ("", 0)
    for base, low, high in sorted((a.address.base, a.low, a.high) for a in step.arguments if is_arena(a.address.base)):
        begin = max(low, end[1]) if base == end[0] else low
        total += max(0, high - begin)
        end = (base, max(high, begin))
    return total


def _moments(plan: Plan) -> dict[int, int]:
    """When steps run, by their numbers, on the axis of the buffers' lives: a chain row by row is one moment."""
    found: dict[int, int] = {}
    time = 0

    def visit(items: Sequence[Item]) -> None:
        nonlocal time
        for item in items:
            time += 1
            match item:
                case Branch():
                    visit(item.then)
                    visit(item.otherwise)
                case Repeat():
                    visit(item.items)
                case RowRegion():
                    found.update((stage.run.number, time) for stage in item.stages)
                case Step():
                    found[item.number] = time

    visit(plan.items)
    return found


def _numbers(plan: Plan) -> dict[tuple[str, int, str], int]:
    """Of buffers in the report's list, by arena, first byte and name."""
    return {(life.base, life.low, life.name): number for number, life in enumerate(plan.lives)}


def _touch(argument: Argument, buffers: Mapping[tuple[str, int, str], int]) -> dict[str, Any]:
    place = argument.address.place
    number = buffers.get((argument.address.base, place.begin, place.name)) if place is not None else None
    return {
        "role": argument.role,
        "type": str(argument.type),
        "bytes": [argument.low, argument.high],
        **({"buffer": number} if number is not None else {}),
        **({"written": True} if argument.written else {}),
    }


def _sources(steps: Sequence[Step]) -> list[list[int]]:
    """For each step those that wrote last what it reads."""
    writers: list[tuple[str, int, int, int]] = []  # base, from, to, step: the latest last
    found = []
    for number, step in enumerate(steps):
        read = set()
        for a in step.arguments:
            if a.written or not is_arena(a.address.base):
                continue
            missing = [(a.low, a.high)]
            for base, low, high, writer in reversed(writers):
                if base == a.address.base and any(low < end and start < high for start, end in missing):
                    read.add(writer)
                    missing = [piece for span in missing for piece in _without(span, low, high)]
        found.append(sorted(read))
        writers += [(a.address.base, a.low, a.high, number) for a in step.arguments if a.written]
    return found


def _without(span: tuple[int, int], low: int, high: int) -> list[tuple[int, int]]:
    start, end = span
    return [(s, e) for s, e in ((start, min(end, low)), (max(start, high), end)) if s < e]


def _choice(
    choices: Mapping[tuple[Provenance, str], Explanation], provenance: Provenance, kernel: str
) -> dict[str, Any]:
    """What was estimated of the kernel and of the next best; nothing for steps that no choice was kept of."""
    item = choices.get((provenance, kernel))
    if item is None:
        return {}
    rows = [
        {"kernel": c.kernel.id, "cycles": c.cost.time, "code_bytes": c.cost.code, "workspace_bytes": c.needs.scratch}
        for c in item.choice.candidates
    ]
    chosen = rows[0]
    return {
        "estimated_cycles": chosen["cycles"],
        "estimated_code_bytes": chosen["code_bytes"],
        "other_kernels": rows[1:],
    }
