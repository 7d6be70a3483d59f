"""State: values that a run leaves for the next run, in an output that replaces an input.

Invariant: the input of a state keeps its memory for good, and nothing else is laid over it. At the end of a run the
output is brought there, unless it was written there already: that is where all that reads the old state has run before.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from ...base.dims import Dim
from ...base.errors import Problem, WrongUse, raise_all
from ...base.near import near
from ...base.tensor import Shape
from ...graph.ir import Graph
from ...kernels.api import Needs
from ...kernels.registry import Registry
from ...program.ir import TEMPORARY, Buffer, Call, Item, Overlap, Program, View, reads, root, walk, writes
from ...program.spans import loop_spans
from ...targets.api import Target
from ..api import CacheDtype
from .growing_states import freed, grow_states, growth
from .narrow_caches import narrow_caches


def declare_states(graph: Graph, states: Mapping[str, str], cache: CacheDtype = CacheDtype.OWN) -> None:
    """Notes pairs of an output and the input that it becomes; refuses what does not go together."""
    inputs, outputs = ({v.name: v for v in values} for values in (graph.inputs, graph.outputs))
    problems: list[Problem] = []
    for after, before in states.items():
        where = f"--state {after}={before}"
        problems += _strangers(states, (after, before), outputs, inputs)
        if before in graph.states:
            why = f"output {graph.states[before]!r} becomes it already"
            problems.append(Problem(f"input {before!r} is the state of two outputs", where, why, "leave one out"))
        if after not in outputs or before not in inputs:
            continue
        made, taken = outputs[after].type, inputs[before].type
        if made != taken and growth(taken, made) is None:
            why = f"output {after!r} is {made}, input {before!r} is {taken}"
            fix = freed(before, taken, made) or "a state has one type and shape: give sizes that agree"
            problems.append(Problem("output and input of a state differ in type or shape", where, why, fix))
        elif made.dtype.kind == "string":
            why, fix = "they point into memory that a run uses anew", "hand it over in your program"
            problems.append(Problem("strings cannot be a state", where, why, fix))
        graph.states[before] = after
    raise_all(WrongUse, problems)
    narrow_caches(graph, cache)
    grow_states(graph)


def _strangers(
    states: Mapping[str, str], pair: tuple[str, str], outputs: Collection[str], inputs: Collection[str]
) -> list[Problem]:
    """Names of a pair that are not there; the fix is the whole option, where they resemble names that are."""
    after, before = pair
    where = f"--state {after}={before}"
    if after in outputs and before in inputs:
        return []
    if after in inputs and before in outputs:
        what, why = f"{after!r} is an input and {before!r} an output", "the output comes first: OUTPUT=INPUT"
        return [Problem(what, where, why, f"did you mean {_flag(before, after)}?")]
    cut = where.removeprefix("--state ").split("=")
    if any("=".join(cut[:at]) in outputs and "=".join(cut[at:]) in inputs for at in range(1, len(cut))):
        why = "the name of an output ends at the first ="
        return [Problem("a name of a state has =", where, why, "rename it in the model, or give the state from Python")]
    likely = [_likely(after, outputs), _likely(before, inputs)]
    guess = f"did you mean {_flag(*likely)}?" if all(likely) else "write --state OUTPUT=INPUT"
    fix = _cut_elsewhere(states, outputs, inputs) or guess
    return [
        Problem(f"there is no {what} {name!r}", where, f"the {what}s are {', '.join(found) or 'none'}", fix)
        for name, found, what in ((after, outputs, "output"), (before, inputs, "input"))
        if name not in found
    ]


def _likely(name: str, known: Collection[str]) -> str:
    return name if name in known else near(name, known) or (next(iter(known)) if len(known) == 1 else "")


def _flag(after: str, before: str) -> str:
    return "--state " + shlex.quote(f"{after}={before}")


def _cut_elsewhere(states: Mapping[str, str], outputs: Collection[str], inputs: Collection[str]) -> str:
    """The same text cut at other commas, where that gives names which are there: those of inputs may have some."""
    first, *middle, last = ",".join("=".join(pair) for pair in states.items()).split("=")
    cuts = [[(part[:at], part[at + 1 :]) for at, c in enumerate(part) if c == ","] for part in middle]
    known = [next(((b, a) for b, a in ways if b in inputs and a in outputs), None) for ways in cuts]
    names = [first, *(name for pair in known if pair for name in pair), last]
    if None in known or first not in outputs or last not in inputs:
        return ""
    pairs = zip(names[::2], names[1::2], strict=True)
    return f"did you mean {' '.join(_flag(*pair) for pair in pairs)}?"


def bind_states(program: Program, registry: Registry, target: Target) -> None:
    """Outputs of states are written straight to where they are kept, if nobody reads the old state after that."""
    buffers, outputs = dict(program.inputs), dict(program.outputs)
    for before, after in program.states.items():
        kept, view = buffers[before], outputs[after]
        made, start = root(view.buffer)  # what was written over something else goes with that
        if made.role != TEMPORARY or start or not view.covers_buffer:
            continue
        if any(other.overlap and other.overlap.base is kept for other in program.buffers()):
            continue
        if made.type.max_bytes == kept.type.max_bytes and _may_replace(program, kept, made, registry, target):
            made.overlap = Overlap(kept)
            kept.storage = made.storage if made.storage.align > kept.storage.align else kept.storage


def _may_replace(program: Program, kept: Buffer, made: Buffer, registry: Registry, target: Target) -> bool:
    items = list(walk(program.body))
    spans = [(span.start, span.end) for span in loop_spans(program)]

    def around(time: int) -> tuple[int, int]:
        """When the item runs: as long as the outermost loop that it is in."""
        found = [span for span in spans if span[0] <= time <= span[1]]
        return min([time, *(start for start, _ in found)]), max([time, *(end for _, end in found)])

    def touches(item: Item, buffer: Buffer) -> bool:
        return any(root(view.buffer)[0] is buffer for view in (*reads(item), *writes(item)))

    last = max((around(time)[1] for time, item in enumerate(items) if touches(item, kept)), default=-1)
    first = min((around(time)[0] for time, item in enumerate(items) if touches(item, made)), default=-1)
    if last != first:
        return last < first
    item = items[first]
    if not isinstance(item, Call) or around(first) != (first, first) or not item.kernel:
        return False
    needs = registry[item.kernel].match(item, target)
    results = [number for number, view in enumerate(item.outs) if view.buffer is made]
    operands = [number for number, view in enumerate(item.ins) if view.buffer is kept]
    return (
        isinstance(needs, Needs)
        and len(results) == 1
        and _lie_alike(item.outs[results[0]], [item.ins[number] for number in operands])
        and all(needs.alias.get((results[0], number)) is not None for number in operands)
    )


def _lie_alike(out: View, operands: list[View]) -> bool:
    """Is each element at one place in all of them? No matter what the step along an axis with one element is."""

    def places(view: View) -> tuple[Shape, list[Dim], Dim]:
        steps = [step for dim, step in zip(view.shape, view.strides, strict=True) if dim != 1]
        return view.shape, steps, view.offset

    return all(places(view) == places(out) for view in operands)
