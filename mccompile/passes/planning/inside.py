"""The tensors that steps leave in memory, for programs that look inside of a run (`--dump-values`): tensors of the
model's file under their names, all others under generated names.

Invariant: a tensor stands at the step after which all of it is there, or at the one that makes it row by row. What is
fused or folded is nowhere in memory, and `unseen` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ...base.dims import static
from ...base.dtypes import string
from ...base.provenance import Provenance
from ...base.records import dataclass
from ...base.tensor import TensorType
from ...graph.ir import Graph, Origin
from ...plan.ir import Plan, Step, with_steps
from ...program.ir import STREAM, Buffer, Call, If, Item, Loop, Program, Rows, View


@dataclass(frozen=True)
class FileTensor:
    """A tensor that nodes of the model's file make."""

    nodes: Provenance
    type: TensorType


def name_tensors(graph: Graph) -> dict[str, FileTensor]:
    """Has all values know which tensor of the file they are; gives these by their names."""
    found: dict[str, FileTensor] = {}
    for value in graph.values():
        if value.constant is None:
            value.origin = Origin(value.name, tuple(range(value.type.rank)), value.type)
            if value.producer is not None:
                found[value.name] = FileTensor(value.producer.provenance, value.type)
    return found


@dataclass(frozen=True)
class FilledMemory:
    """Memory that a call has filled."""

    name: str
    is_value: bool
    view: View
    also: tuple[str, ...] = ()
    axis: int | None = None  # of the rows of which only the newest are there


@dataclass
class _Writers:
    """Who writes a buffer, or parts of it: per straight line of the program."""

    lines: dict[int, list[Call]] = field(default_factory=dict)
    looped: bool = False
    rows: bool = False  # not all of it is there at any time


def shown(program: Program) -> Mapping[int, tuple[FilledMemory, ...]]:
    """What to show after each call, by its id."""
    calls = list(_calls(program.body))
    writers = _writers(calls)
    named: dict[int, list[FilledMemory]] = {}
    done: set[tuple[int, Buffer]] = set()
    for buffer, views in _by_buffer(program).items():
        entry = writers.get(buffer)
        if entry is None or entry.looped or entry.rows or (len(entry.lines) > 1 and not _by_one_each(entry, buffer)):
            continue
        (name, view), *others = sorted(views, key=lambda pair: pair[1].type.count != buffer.type.count)
        same = tuple(other for other, seen in others if seen.type.count == view.type.count)
        for line in entry.lines.values():
            named.setdefault(id(line[-1]), []).append(FilledMemory(name, True, view, same))
            done.add((id(line[-1]), buffer))
    found: dict[int, tuple[FilledMemory, ...]] = {}
    for call, _, looped, rows in calls:
        parts = [] if looped else program.values
        own = [_part(view, parts) for view in call.outs if (id(call), view.buffer) not in done]
        own = [replace(each, axis=call.rows) for each in own] if rows else own
        everything = (*own, *named.get(id(call), ()))
        found[id(call)] = tuple(each for each in everything if _can_be_shown(each.view))
    return found


def _writers(calls: list[tuple[Call, int, bool, bool]]) -> dict[Buffer, _Writers]:
    found: dict[Buffer, _Writers] = {}
    for call, line, looped, rows in calls:
        for buffer in {whole for view in call.outs for whole in _wholes(view.buffer)}:
            entry = found.setdefault(buffer, _Writers())
            entry.lines.setdefault(line, []).append(call)
            entry.looped, entry.rows = entry.looped or looped, entry.rows or rows
    return found


def _part(out: View, values: list[tuple[str, View]]) -> FilledMemory:
    """What a call makes of a buffer: a tensor of the file, if one lies just there."""
    for name, view in values:
        if view.buffer is out.buffer and view.offset == out.offset and _steps(view) == _steps(out):
            return FilledMemory(name, True, out if view.shape == out.shape else view)
    return FilledMemory(out.buffer.name, False, out)


def _steps(view: View) -> list[tuple[str, str]]:
    """Strides and sizes, in whatever order of axes."""
    pairs = zip(view.strides, view.shape, strict=True)
    return sorted((str(stride), str(dim)) for stride, dim in pairs if dim != 1)


def _calls(body: list[Item], looped: bool = False) -> Iterator[tuple[Call, int, bool, bool]]:
    """Calls with the straight line that they stand in; whether that runs more than once; and whether others of its
    region take what they make row by row."""
    for item in body:
        match item:
            case Call():
                yield item, id(body), looped, False
            case Rows():
                last = item.stages[-1].call
                yield from ((stage.call, id(body), looped, stage.call is not last) for stage in item.stages)
            case If():
                yield from _calls(item.then, looped)
                yield from _calls(item.otherwise, looped)
            case Loop():
                yield from _calls(item.body, True)


def _wholes(buffer: Buffer) -> Iterator[Buffer]:
    """The buffer, and those that it is a part of."""
    yield buffer
    while buffer.overlap is not None and buffer.overlap.part:
        buffer = buffer.overlap.base
        yield buffer


def _by_buffer(program: Program) -> dict[Buffer, list[tuple[str, View]]]:
    given = {buffer for _, buffer in program.inputs}
    found: dict[Buffer, list[tuple[str, View]]] = {}
    for name, view in program.values:
        if view.buffer not in given:
            found.setdefault(view.buffer, []).append((name, view))
    return found


def _by_one_each(entry: _Writers, buffer: Buffer) -> bool:
    """Is it made as a whole by one call of each branch?"""
    calls = [calls[0] for calls in entry.lines.values() if len(calls) == 1]
    outs = [view for call in calls for view in call.outs if view.buffer is buffer]
    return len(outs) == len(entry.lines) and all(view.type.count == buffer.type.count for view in outs)


def _can_be_shown(view: View) -> bool:
    """Not strings, which are pointers; of elements that share bytes only what is dense."""
    if view.buffer.role == STREAM or view.buffer.dtype is string or 0 in view.shape:
        return False
    if view.buffer.dtype.is_packed and not (view.is_dense and view.is_static and static(view.offset) == 0):
        return False
    return all(not isinstance(stride, int) or stride >= 0 for stride in view.strides)


@dataclass(frozen=True)
class Looks:
    """What a run shows of its steps: how long each takes, and what it makes."""

    profile: bool = False
    dump: bool = False

    @property
    def flags(self) -> Mapping[str, bool]:
        """Which flags asked for them."""
        return {"--profile": self.profile, "--dump-values": self.dump}


def look_inside(plan: Plan, looks: Looks, tensors: Mapping[str, FileTensor]) -> Plan:
    """The plan of a run that shows this."""
    items = with_steps(plan.items, lambda step: replace(step, timed=True)) if looks.profile else plan.items
    hidden = unseen(plan, tensors) if looks.dump else ()
    return replace(plan, items=items, profiled=looks.profile, dumped=looks.dump, unseen=hidden)


def unseen(plan: Plan, tensors: Mapping[str, FileTensor]) -> tuple[tuple[str, str], ...]:
    """Tensors of the file that no step leaves in memory, and why."""
    seen = {name for step in plan.steps() for made in step.made if made.is_value for name in (made.name, *made.also)}
    makers: dict[str, Step] = {name: step for step in plan.steps() for name in step.provenance}
    found = []
    for name, tensor in tensors.items():
        if name in seen:
            continue
        steps = [makers[node].number for node in tensor.nodes if node in makers]
        if tensor.type.dtype is string:
            why = "strings are pointers, and are not shown"
        elif 0 in tensor.type.shape:
            why = "it has no elements"
        elif not steps:
            why = "it is made of constants, or is a part of another tensor or a view of it"
        else:
            why = f"it is fused into step {max(steps)}"
        found.append((name, why))
    return tuple(found)
