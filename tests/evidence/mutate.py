"""Broken certificates: `python -m tests.evidence.mutate model.onnx --count 1000`.

Each change makes a certificate wrong, alone: a checker that accepts one fails.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.evidence import check_calls, check_memory, check_owners, check_ranges, check_stack, check_trace
from mccompile.evidence.check_memory import calls_in
from mccompile.evidence.folder import checked_ranges
from mccompile.evidence.memory import memory_certificate
from mccompile.evidence.stack import stack_certificate
from mccompile.evidence.trace import trace
from mccompile.frontend.listed import Listed, listed
from mccompile.targets.api import load
from tests.evidence.range_changes import OF_RANGES
from tests.evidence.stack_changes import OF_STACKS

Certificate = dict[str, Any]
Code = tuple[str, str]
Change = Callable[[Certificate, random.Random], bool]  # False: there is nothing of that kind in it


def certificate(package: Package) -> tuple[Certificate, Code]:
    """As a checker reads it, and the C and the header that it is about."""
    assert package.witness is not None
    found = json.loads(json.dumps(memory_certificate(package.plan, package.witness)))
    code, header = (package.files[f"{package.plan.prefix}{end}"].decode() for end in (".c", ".h"))
    return found, (code, header)


def problems(found: Certificate, code: Code) -> list[str]:
    return [*check_memory.check(found), *check_owners.check(found), *check_calls.check(found, *code)]


def _used(found: Certificate) -> list[dict[str, Any]]:
    """Buffers of the arenas that calls touch."""
    touched = {a["buffer"] for call in calls_in(found["program"]) for a in call["arguments"] if a["high"] > a["low"]}
    return [found["buffers"][number] for number in sorted(touched - {None})]


def _arguments(found: Certificate, passed: bool = False) -> list[dict[str, Any]]:
    arguments = [a for call in calls_in(found["program"]) for a in call["arguments"] if a["high"] > a["low"]]
    return [a for a in arguments if not passed or (a["c"] and a["at"] is not None)]


def move(found: Certificate, chance: random.Random) -> bool:
    buffer = chance.choice(_used(found))
    buffer["begin"] += chance.choice([-1, 1]) * 16 * chance.randint(1, 64)
    return True


def move_all_of_it(found: Certificate, chance: random.Random) -> bool:
    """A buffer with all of its arguments, which only the C speaks against."""
    number = chance.choice(sorted({a["buffer"] for a in _arguments(found, True)} - {None}))
    by = 16 * chance.randint(1, 64)
    found["buffers"][number]["begin"] += by
    for argument in _arguments(found):
        if argument["buffer"] == number and argument["at"] is not None:
            argument.update({key: argument[key] + by for key in ("at", "low", "high")})
    return True


def shrink(found: Certificate, chance: random.Random) -> bool:
    buffer = chance.choice([b for b in _used(found) if b["bytes"] > b["over_read"]])
    buffer["bytes"] -= buffer["over_read"] + chance.randint(1, buffer["bytes"] - buffer["over_read"])
    return True


def live_late(found: Certificate, chance: random.Random) -> bool:
    buffer = chance.choice(_used(found))
    buffer["life"] = [buffer["life"][1], buffer["life"][1] + 1]
    return True


def shrink_arena(found: Certificate, chance: random.Random) -> bool:
    arena = chance.choice(found["arenas"])
    arena["bytes"] -= chance.randint(1, max(1, arena["bytes"]))
    return True


def other_alignment(found: Certificate, chance: random.Random) -> bool:
    chance.choice(found["arenas"])["align"] *= 2
    return True


def more_room(found: Certificate, chance: random.Random) -> bool:
    """Weights or a tensor of the program, larger than they are."""
    rooms = found["rooms"]
    rooms[chance.choice([name for name in rooms if name.startswith(("blob", "input_", "output_"))])] += 64
    return True


def other_bound(found: Certificate, chance: random.Random) -> bool:
    arena = chance.choice(found["arenas"])
    key = chance.choice(["live_bytes", "lower_bound"])
    arena[key] = arena["bytes"] + chance.randint(1, 99) if key == "lower_bound" else arena[key] + chance.randint(1, 99)
    return True


def leave_buffer(found: Certificate, chance: random.Random) -> bool:
    accesses = [v for c in calls_in(found["program"]) for v in (*c["reads"], *c["writes"]) if v is not None and v[3]]
    access = chance.choice(accesses)
    access[1] += found["buffers"][access[0]]["bytes"] * chance.choice([-1, 1])
    return True


def other_address(found: Certificate, chance: random.Random) -> bool:
    argument = chance.choice(_arguments(found, True))
    argument["at"] += chance.choice([-4, -1, 1, 4, 64])
    return True


def other_base(found: Certificate, chance: random.Random) -> bool:
    argument = chance.choice(_arguments(found, True))
    argument["base"] = "blob" if argument["base"] != "blob" else found["arenas"][0]["base"]
    return True


def touch_more(found: Certificate, chance: random.Random) -> bool:
    argument = chance.choice([a for a in _arguments(found) if a["base"] in ("blob", "arena")])
    room = found["rooms"]["blob"] if argument["base"] == "blob" else found["arenas"][0]["bytes"]
    argument["high"] = room + chance.randint(1, 1000)
    return True


def write_operand(found: Certificate, chance: random.Random) -> bool:
    argument = chance.choice(_arguments(found))
    argument["written"] = not argument["written"]
    return True


def other_operand(found: Certificate, chance: random.Random) -> bool:
    call = chance.choice([c for c in calls_in(found["program"]) if any(view for view in c["reads"])])
    view = chance.choice([view for view in call["reads"] if view])
    view[0] = chance.choice([n for n in range(len(found["buffers"])) if n != view[0]])
    return True


def _bodies(items: list[Any]) -> Iterator[list[Any]]:
    yield items
    for item in items:
        for inner in item.values():
            for name in ("then", "else", "body") if isinstance(inner, dict) else ():
                yield from _bodies(inner.get(name, []))


def drop_call(found: Certificate, chance: random.Random) -> bool:
    items = chance.choice([body for body in _bodies(found["program"]) if any("call" in i or "rows" in i for i in body)])
    items.remove(chance.choice([item for item in items if "call" in item or "rows" in item]))
    return True


def repeat_call(found: Certificate, chance: random.Random) -> bool:
    items = chance.choice([body for body in _bodies(found["program"]) if any("call" in item for item in body)])
    place = chance.choice([place for place, item in enumerate(items) if "call" in item])
    items.insert(place, copy.deepcopy(items[place]))
    return True


def swap_calls(found: Certificate, chance: random.Random) -> bool:
    bodies = [b for b in _bodies(found["program"]) if sum("call" in i and not i["call"]["phases"] for i in b) > 1]
    if not bodies:
        return False
    items = chance.choice(bodies)
    a, b = chance.sample([p for p, item in enumerate(items) if "call" in item and not item["call"]["phases"]], 2)
    items[a], items[b] = items[b], items[a]
    return True


def part_ways(found: Certificate, chance: random.Random) -> bool:
    """A buffer that lies over another one does no longer say so."""
    over = [
        b
        for b in found["buffers"]
        if b["in"] is not None and b["life"] and b["bytes"] and _meets(b, found["buffers"][b["in"][0]])
    ]
    if not over:
        return False
    chance.choice(over)["in"] = None
    return True


def _meets(b: dict[str, Any], other: dict[str, Any]) -> bool:
    lives = other["life"] is not None and b["life"][0] < other["life"][1] and other["life"][0] < b["life"][1]
    return lives and b["begin"] < other["begin"] + other["bytes"] and other["begin"] < b["begin"] + b["bytes"]


def dead_output(found: Certificate, chance: random.Random) -> bool:
    last = max(b["life"][1] for b in found["buffers"] if b["life"])
    dead = [n for n, b in enumerate(found["buffers"]) if b["life"] and b["life"][1] < last and b["bytes"]]
    if not dead or not any(found["outputs"]):
        return False
    output = chance.choice([view for view in found["outputs"] if view])
    output[:] = [chance.choice(dead), 0, [], 1]
    return True


def part_of_an_output(found: Certificate, chance: random.Random) -> bool:
    outputs = [view for view in found["outputs"] if view and view[3] > 1]
    if outputs:
        chance.choice(outputs)[3] -= 1
    return bool(outputs)


def other_phases(found: Certificate, chance: random.Random) -> bool:
    chance.choice([*calls_in(found["program"])])["phases"] += chance.choice([-1, 1])
    return True


def drop_buffer(found: Certificate, chance: random.Random) -> bool:
    found["buffers"].remove(chance.choice(_used(found)))
    return True


def other_function(found: Certificate, chance: random.Random) -> bool:
    chance.choice([*calls_in(found["program"])])["function"] += "x"
    return True


CHANGES: tuple[Change, ...] = (
    move,
    move_all_of_it,
    shrink,
    live_late,
    shrink_arena,
    other_alignment,
    more_room,
    other_bound,
    leave_buffer,
    other_address,
    other_base,
    touch_more,
    write_operand,
    other_operand,
    drop_call,
    repeat_call,
    swap_calls,
    part_ways,
    dead_output,
    part_of_an_output,
    other_phases,
    drop_buffer,
    other_function,
)


def trace_of(package: Package, nodes: Sequence[Listed]) -> Certificate:
    found: Certificate = json.loads(json.dumps(trace(package, nodes)))
    return found


def no_disposition(found: Certificate, chance: random.Random) -> bool:
    chance.choice(found["nodes"])["disposition"] = chance.choice(["", "gone"])
    return True


def node_twice(found: Certificate, chance: random.Random) -> bool:
    found["nodes"].append(copy.deepcopy(chance.choice(found["nodes"])))
    return True


def drop_node(found: Certificate, chance: random.Random) -> bool:
    found["nodes"].remove(chance.choice([node for node in found["nodes"] if node.get("steps")]))
    return True


def other_steps(found: Certificate, chance: random.Random) -> bool:
    node = chance.choice([node for node in found["nodes"] if node["disposition"] == "computed"])
    node["steps"].append(max(step["step"] for step in found["steps"]) + chance.randint(1, 9))
    return True


def not_computed(found: Certificate, chance: random.Random) -> bool:
    chance.choice([node for node in found["nodes"] if node["disposition"] == "computed"])["steps"] = []
    return True


def no_place(found: Certificate, chance: random.Random) -> bool:
    nodes = [node for node in found["nodes"] if node.get("into")]
    if nodes:
        chance.choice(nodes)["into"] = []
    return bool(nodes)


def step_of_nothing(found: Certificate, chance: random.Random) -> bool:
    chance.choice(found["steps"])["nodes"] = []
    return True


def other_provenance(found: Certificate, chance: random.Random) -> bool:
    chance.choice(found["steps"])["provenance"].append("another")
    return True


def drop_step(found: Certificate, chance: random.Random) -> bool:
    found["steps"].remove(chance.choice(found["steps"]))
    return True


def _segments(found: Certificate, *what: str) -> list[dict[str, Any]]:
    return [s for parts in found["files"].values() for s in parts if not what or s["what"] in what]


def drop_segment(found: Certificate, chance: random.Random) -> bool:
    parts = chance.choice([parts for parts in found["files"].values() if parts])
    parts.remove(chance.choice(parts))
    return True


def move_segment(found: Certificate, chance: random.Random) -> bool:
    segment = chance.choice(_segments(found))
    segment["lines"][chance.randint(0, 1)] += chance.choice([-2, -1, 1, 2])
    return True


def other_segment(found: Certificate, chance: random.Random) -> bool:
    chance.choice(_segments(found))["what"] = "untraced"
    return True


def control_of_nothing(found: Certificate, chance: random.Random) -> bool:
    if segments := _segments(found, "control"):
        chance.choice(segments).update(what=chance.choice(["interface", "frame", "table"]), steps=[])
    return bool(segments)


def call_without_step(found: Certificate, chance: random.Random) -> bool:
    segment = chance.choice(_segments(found, "step", "function"))
    segment["steps"] = []
    return True


def call_of_another(found: Certificate, chance: random.Random) -> bool:
    functions = {step["step"]: step["function"] for step in found["steps"]}
    segment = chance.choice(_segments(found, "step"))
    others = [step for step, name in functions.items() if name != functions[segment["steps"][0]]]
    if others:
        segment["steps"] = [chance.choice(others)]
    return bool(others)


def drop_file(found: Certificate, chance: random.Random) -> bool:
    del found["files"][chance.choice(sorted(found["files"]))]
    return True


def drop_bytes(found: Certificate, chance: random.Random) -> bool:
    found["blob"].remove(chance.choice(found["blob"]))
    return True


def move_bytes(found: Certificate, chance: random.Random) -> bool:
    chance.choice(found["blob"])[chance.choice(["begin", "end"])] += chance.choice([-4, -1, 1, 4])
    return True


def other_bytes(found: Certificate, chance: random.Random) -> bool:
    chance.choice(found["blob"])["what"] = "untraced"
    return True


OF_TRACES: tuple[Change, ...] = (
    no_disposition,
    node_twice,
    drop_node,
    other_steps,
    not_computed,
    no_place,
    step_of_nothing,
    other_provenance,
    drop_step,
    drop_segment,
    move_segment,
    other_segment,
    control_of_nothing,
    call_without_step,
    call_of_another,
    drop_file,
    drop_bytes,
    move_bytes,
    other_bytes,
)


def broken(
    good: Certificate, count: int, seed: int = 0, changes: Sequence[Change] = CHANGES
) -> Iterator[tuple[str, Certificate]]:
    """Certificates with one change each, by turns."""
    chance, made, turn = random.Random(seed), 0, 0
    while made < count:
        change, bad = changes[turn % len(changes)], copy.deepcopy(good)
        turn += 1
        if change(bad, chance):
            made += 1
            yield change.__name__, bad


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="generic")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    missed = Counter[str]()
    for model in arguments.models:
        for what, good, changes, check in _kinds(compile(model, Options(target=arguments.target)), listed(model)):
            if found := check(good):
                print(f"{model}: the true {what} is refused: {found[0]}")
                missed["true"] += 1
            bad = [*broken(good, arguments.count, arguments.seed, changes)]
            accepted = [name for name, each in bad if not check(each)]
            missed.update(accepted)
            print(f"{model}: {len(bad) - len(accepted)} of {len(bad)} broken {what} rejected", flush=True)
    for name, times in missed.items():
        print(f"accepted: {name}, {times} times")
    return int(bool(missed))


def _kinds(
    package: Package, nodes: Sequence[Listed]
) -> Iterator[tuple[str, Certificate, Sequence[Change], Callable[[Certificate], list[str]]]]:
    """What there is of a package, how it is broken, and what its checker says."""
    memory, code = certificate(package)
    prefix = package.plan.prefix
    yield "certificates", memory, CHANGES, lambda bad: problems(bad, code)
    yield "traces", trace_of(package, nodes), OF_TRACES, lambda bad: check_trace.check(bad, memory, package.files)
    ranges, blob = checked_ranges(package, memory), package.files[f"{prefix}.mcb"]
    if ranges["steps"]:
        yield "ranges of integers", ranges, OF_RANGES, lambda bad: check_ranges.check(bad, memory, blob)
    stack = stack_certificate(package, load(package.plan.target))
    if not isinstance(stack, str):
        yield "bounds of stacks", stack, OF_STACKS, lambda bad: check_stack.check(bad, memory, code[1], {})


if __name__ == "__main__":
    sys.exit(main())
