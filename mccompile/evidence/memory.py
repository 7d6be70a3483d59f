"""The certificate of the memory plan: the placed program, with every access as bytes.

Invariant: it says what is there, and decides nothing; `check_memory.py`, which knows nothing of mccompile, decides
whether all of it fits together and whether the C passes these addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.dims import Dim, evaluate, symbols
from ..base.errors import Problem, WrongUse
from ..base.marked import plain
from ..emit.addresses import pointer
from ..emit.blob import data_bytes
from ..passes.witness import Witness
from ..plan.ir import BLOB, STREAMS, Argument, Plan, Step, swaps
from ..plan.lives import Life
from ..program import ir
from ..program.offsets import offsets_along

SCHEMA = "mccompile-memory-1"
_MOST_TRIPS = 3  # of a loop that are played: both ways round of what changes places, and what the second finds


def memory_certificate(plan: Plan, witness: Witness) -> dict[str, Any]:
    return _Certificate(plan, witness).whole()


class _Certificate:
    def __init__(self, plan: Plan, witness: Witness) -> None:
        self.plan, self.witness = plan, witness
        self.numbers: dict[ir.Buffer, int] = {}
        self.buffers: list[dict[str, Any]] = []
        self.trips: dict[str, int] = {}  # counters of the loops around, and their last values
        self.steps = iter(plan.steps())
        self.lives = dict(zip(witness.places, plan.lives, strict=True))
        for buffer in witness.places:
            self.number(buffer)

    def whole(self) -> dict[str, Any]:
        program, plan = self.witness.program, self.plan
        inputs, outputs, states = dict(program.inputs), dict(program.outputs), program.states
        body = self.body(program.body)
        lasting = program.lasting_inputs(self.witness.keep_inputs)
        kept = [b for b in lasting if not any(b is inputs[before] for before in states)]
        return {
            "schema": SCHEMA,
            "model": plan.name,
            "prefix": plan.prefix,
            "arenas": [
                {
                    "base": a.base,
                    "bytes": a.bytes,
                    "align": a.align,
                    "lower_bound": a.bound,
                    "live_bytes": self.live_bytes(a.base),
                }
                for a in plan.arenas
            ],
            "rooms": self.rooms(),
            "inputs": [self.view(buffer.whole()) for buffer in inputs.values()],
            "kept_inputs": [self.view(buffer.whole()) for buffer in kept],
            "states": [
                {"before": self.view(inputs[before].whole()), "after": self.view(outputs[after])}
                for before, after in states.items()
            ],
            "outputs": [self.view(view) for name, view in outputs.items() if name not in states.values()],
            "program": body,
            "buffers": self.buffers,
        }

    def rooms(self) -> dict[str, int]:
        """Bytes behind each base that is not an arena."""
        plan = self.plan
        found = {BLOB: data_bytes(plan), STREAMS: 8 * plan.streams}
        found |= {t.address.base: t.room for t in (*plan.inputs, *plan.outputs) if t.is_outside}
        return found | {name: s.bytes for s in swaps(plan.items) for name in (s.now, s.next) if name}

    def live_bytes(self, base: str) -> int:
        """The largest live set, alignment not counted: what blocks use, each byte once."""
        blocks: dict[ir.Buffer, list[Life]] = {}
        for buffer, life in self.lives.items():
            if life.base == base and life.high > life.low:
                blocks.setdefault(ir.root(buffer)[0], []).append(life)
        times = {life.start for lives in blocks.values() for life in lives}
        return max((sum(_covered(lives, time) for lives in blocks.values()) for time in times), default=0)

    def number(self, buffer: ir.Buffer) -> int:
        """A buffer's place in the list, behind those that it lies in."""
        if buffer not in self.numbers:
            overlap = buffer.overlap
            inside = None if overlap is None else [self.number(overlap.base), overlap.offset]
            base, begin = self.witness.places.get(buffer, ("", 0))
            life = self.lives.get(buffer)
            self.numbers[buffer] = len(self.buffers)
            self.buffers.append(
                {
                    "name": buffer.name,
                    "base": base,
                    "begin": begin,
                    "bytes": buffer.max_bytes,
                    "over_read": buffer.storage.slack,
                    "align": buffer.storage.align,
                    "life": None if life is None else [life.start, life.end],
                    "in": inside,
                    "part": overlap is not None and overlap.part,
                }
            )
        return self.numbers[buffer]

    def body(self, items: Sequence[ir.Item]) -> list[dict[str, Any]]:
        return [self.item(item) for item in items]

    def item(self, item: ir.Item) -> dict[str, Any]:
        match item:
            case ir.Call():
                return {"call": self.call(item)}
            case ir.Rows():
                return {"rows": self.rows(item)}
            case ir.If():
                condition, then = self.view(item.condition), self.body(item.then)
                return {"if": {"condition": condition, "then": then, "else": self.body(item.otherwise)}}
            case ir.Loop():
                return {"loop": self.loop(item)}
            case ir.Measure():
                return {"measure": self.view(item.source)}
            case ir.Copy() | ir.Await():
                what, why = "there is no evidence of weights through a window", "its programs know no copies"
                raise WrongUse(Problem(what, "--weights-window", why, "leave out --weights-window"))
        return {"stop": item.status}

    def call(self, call: ir.Call) -> dict[str, Any]:
        needs = self.witness.needs(call)
        allowed = dict(needs.alias) if needs is not None else {}
        return {
            **self.step(next(self.steps), call),
            "reads": [self.view(view) for view in call.ins],
            "writes": [self.view(view) for view in call.outs],
            "workspace": [self.view(scratch.whole()) for scratch in ir.scratches(call)],
            "may_lie_over": [[result, operand, reach] for (result, operand), reach in sorted(allowed.items())],
        }

    def step(self, step: Step, call: ir.Call) -> dict[str, Any]:
        unpassed = step.function.unpassed
        views = [*call.outs, *call.ins, *(scratch.whole() for scratch in ir.scratches(call))]
        pairs = zip(step.arguments, views, strict=True)
        return {
            "step": step.number,
            "kind": step.op,
            "nodes": list(step.provenance),
            "function": step.function.name,
            "phases": len(step.shared.phases) if step.shared else 0,
            "arguments": [self.argument(a, view, a.role not in unpassed, step) for a, view in pairs],
        }

    def argument(self, argument: Argument, view: ir.View, passed: bool, step: Step) -> dict[str, Any]:
        address, (low, high) = argument.address, touched(argument, self.plan)
        return {
            "role": argument.role,
            "c": c_of(argument, step) if passed else None,
            "base": address.base,
            "at": address.offset if isinstance(address.offset, int) else None,
            "low": low,
            "high": high,
            "written": argument.written,
            "buffer": self.number(view.buffer) if self.in_arena(view.buffer) else None,
        }

    def rows(self, region: ir.Rows) -> dict[str, Any]:
        """`after`: what the last result may lie over, because its rows come behind all that is still to be read."""
        calls = [{**self.call(stage.call), "rows": [stage.height, stage.step]} for stage in region.stages]
        last = region.stages[-1].call
        needs = self.witness.needs(last)
        shared = {stage.call.ins[stage.over].buffer for stage in region.stages if stage.over is not None}
        return {
            "calls": calls,
            "over": sorted(self.number(b) for b in {*region.over, *(b for b, _ in region.before)} if self.in_arena(b)),
            "shared": sorted(self.number(buffer) for buffer in shared if self.in_arena(buffer)),
            "at_end": needs is not None and needs.at_end,
        }

    def loop(self, loop: ir.Loop) -> dict[str, Any]:
        starts = [self.view(view) for view in ir.reads(loop)]
        known = loop.trips if isinstance(loop.trips, int) and loop.condition is None else _MOST_TRIPS - 1
        played = known if known <= _MOST_TRIPS else _MOST_TRIPS - 1 + (known - _MOST_TRIPS + 1) % 2
        carries = [[self.number(buffer) for buffer in (c.now, c.next, c.last)] for c in loop.carries]
        wholes = [[self.view(buffer.whole()) for buffer in (c.now, c.next, c.last)] for c in loop.carries]
        self.trips[loop.counter.name] = loop.counter.high
        condition = None if loop.condition is None else self.view(loop.condition)
        body = self.body(loop.body)
        del self.trips[loop.counter.name]
        found = {"counter": loop.counter.name, "played": played, "starts": starts, "condition": condition}
        return found | {"carries": carries, "wholes": wholes, "body": body}

    def in_arena(self, buffer: ir.Buffer) -> bool:
        constant = buffer.role in (ir.CONSTANT, ir.STREAM) or ir.root(buffer)[0].role == ir.EXTERNAL
        return not constant and ir.root(buffer)[0] in self.witness.places

    def view(self, view: ir.View) -> list[Any] | None:
        """The bytes of a buffer that an access may touch, in any trip of the loops around and at the largest sizes:
        the buffer, the first byte, and how many pieces of how many bytes at which distances. None: in no arena."""
        if not self.in_arena(view.buffer):
            return None
        bits, shape = view.buffer.dtype.bits, [self.size(dim) for dim in view.shape]
        number = self.number(view.buffer)
        if any(dim <= 0 for dim in shape):
            return [number, 0, [], 0]
        if view.lines or bits % 8:
            low, high = view.byte_range
            return [number, low, [], high - low]
        width, (first, along_trips) = bits // 8, offsets_along(view.offset, self.trips)
        axes = [(dim, self.size(stride)) for dim, stride in zip(shape, view.strides, strict=True)] + along_trips
        first += sum((dim - 1) * stride for dim, stride in axes if stride < 0)
        return [number, first * width, *_merged([(dim, abs(stride) * width) for dim, stride in axes], width)]

    def size(self, dim: Dim) -> int:
        return evaluate(dim, {s.name: 0 if s.name in self.trips else s.high for s in symbols(dim)})


def touched(argument: Argument, plan: Plan) -> tuple[int, int]:
    """The bytes behind its base that a step may touch: all of what a kernel has packed, perhaps with other numbers."""
    low, high = argument.low, argument.high
    if argument.address.base != BLOB or low == high:
        return low, high
    packed = (entry for entry in plan.entries if entry.packing and entry.offset == low)
    return low, max([high, *(entry.offset + entry.contents.type.max_bytes for entry in packed)])


def c_of(argument: Argument, step: Step) -> str:
    """How the C writes an argument of a step."""
    if step.function.kernel.asks and not argument.written:
        return f"&m->{argument.address.base}"
    return plain(pointer(argument.address, argument.type.dtype.storage_c, not argument.written))


def passed_by(step: Step) -> list[str]:
    """The arguments of a step's call, but for sizes."""
    unpassed = step.function.unpassed
    return [c_of(argument, step) for argument in step.arguments if argument.role not in unpassed]


def _covered(lives: Iterable[Life], time: int) -> int:
    total, end = 0, 0
    for life in sorted((life for life in lives if life.start <= time < life.end), key=lambda life: life.low):
        total += max(0, life.high - max(end, life.low))
        end = max(end, life.high)
    return total


def _merged(axes: Iterable[tuple[int, int]], width: int) -> tuple[list[list[int]], int]:
    """Axes from the outermost, and the bytes in one piece: those next to each other are one."""
    left: list[list[int]] = []
    for dim, stride in sorted(((d, s) for d, s in axes if d > 1 and s), key=lambda axis: axis[1]):
        if not left and stride == width:
            width *= dim
        elif left and stride == left[0][0] * left[0][1]:
            left[0][0] *= dim
        else:
            left.insert(0, [dim, stride])
    return left, width
