"""Checks every invariant of a program; run after every pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..base.dims import static, symbols, upper
from ..base.errors import InternalError
from ..base.records import replace
from ..kinds.fetch import Fetch
from ..kinds.transfer import Transfer
from . import ir


def verify(program: ir.Program, after: str = "") -> None:
    """Raises InternalError with everything that is wrong."""
    checker = _Checker(program.verified)
    written = {buffer for _, buffer in program.inputs}
    checker.given |= written
    for _, buffer in program.inputs:
        if buffer.overlap and buffer.overlap.part:
            checker.fill(buffer.whole(), upper(buffer.type.count), written)
    checker.body(program.body, written)
    for name, view in program.outputs:
        checker.read(view, written, f"output {name!r}")
    names: set[str] = set()
    buffers = program.buffers()
    for buffer in buffers:
        if buffer.name in names:
            checker.problems.append(f"two buffers are named {buffer.name!r}")
        names.add(buffer.name)
        if (buffer.role == ir.CONSTANT) != (buffer.constant is not None):
            checker.problems.append(f"{buffer} is {buffer.role} but {'has' if buffer.constant else 'has no'} contents")
        seen = {buffer}
        base = buffer
        while base.overlap:
            base = base.overlap.base
            if base in seen:
                checker.problems.append(f"{buffer} overlaps itself")
                break
            seen.add(base)
    checker.problems += _asked_again(program) + _worked_in(program, buffers)
    if checker.problems:
        place = f" after {after}" if after else ""
        raise InternalError(f"program {program.name!r} is broken{place}:\n  " + "\n  ".join(checker.problems[:20]))


def _worked_in(program: ir.Program, buffers: Sequence[ir.Buffer]) -> list[str]:
    """Far buffers that others than transfers touch."""
    if not any(buffer.far for buffer in buffers):
        return []
    problems = []
    for item in ir.walk(program.body):
        stages: list[ir.Item] = [s.call for s in item.stages] if isinstance(item, ir.Rows) else []
        for one in stages or [item]:
            moves = isinstance(one, ir.Call) and isinstance(one.kind, Transfer)
            far = [view.buffer for view in (*ir.reads(one), *ir.writes(one)) if view.buffer.far]
            problems += [] if moves else [f"{buffer} is far, and no transfer touches it" for buffer in far]
    overlaps = [b for b in buffers if b.overlap and b.overlap.base.far != b.far]
    return problems + [f"{buffer} overlaps one of another memory" for buffer in overlaps]


def _asked_again(program: ir.Program) -> list[str]:
    """Inputs of which the program would not be asked for each row once and in order: by several, or somewhere that does
    not run once."""
    calls = list(program.calls())
    fetches = [call for call in calls if isinstance(call.kind, Fetch)]
    if not fetches:
        return []
    once = [item for item in program.body if isinstance(item, ir.Call)]
    once += [stage.call for item in program.body if isinstance(item, ir.Rows) for stage in item.stages]
    problems = []
    for call in fetches:
        (x,) = call.ins
        readers = sum(view.buffer is x.buffer for other in calls for view in other.ins)
        if call not in once or readers != 1 or not x.covers_buffer or call.workers > 1:
            problems.append(f"rows of {x.buffer} are not fetched once and in order")
        if call.rows not in (None, call.of(Fetch).axis):
            problems.append(f"{x.buffer} is fetched along axis {call.rows}")
    return problems


class _Checker:
    def __init__(self, verified: dict[ir.Call, tuple[object, ...]]) -> None:
        self.verified = verified
        self.problems: list[str] = []
        self.given: set[ir.Buffer] = set()  # inputs: nobody writes them
        self.writer: dict[ir.Buffer, ir.Item] = {}
        self.filled: dict[ir.Buffer, int] = {}  # elements written so far
        # What was written of buffers that are written piece by piece: views, and how many of them a mask shows already.
        self.partly: dict[ir.Buffer, list[ir.View]] = {}
        self.masks: dict[ir.Buffer, tuple[np.ndarray, int]] = {}

    def body(self, body: list[ir.Item], written: set[ir.Buffer]) -> None:
        for item in body:
            if isinstance(item, ir.If):
                self.read(item.condition, written, "if")
                branches = [set(written), set(written)]
                filled = dict(self.filled)
                self.body(item.then, branches[0])
                before = dict(self.writer)
                filled, self.filled = self.filled, filled
                self.body(item.otherwise, branches[1])
                self.filled = {b: max(filled.get(b, 0), self.filled.get(b, 0)) for b in {**filled, **self.filled}}
                # Both branches may write one result: that is its one writer, the region.
                self.writer = {**self.writer, **before}
                ends = [bool(body) and isinstance(body[-1], ir.Stop) for body in (item.then, item.otherwise)]
                written |= branches[ends[0]] if any(ends) else branches[0] & branches[1]
            elif isinstance(item, ir.Loop):
                self.loop(item, written)
            elif isinstance(item, ir.Rows):
                self.rows(item, written)
            elif isinstance(item, ir.Measure):
                self.read(item.source, written, f"size {item.symbol}")
            elif isinstance(item, ir.Copy):
                for part in item.parts:
                    if part.overlap is None or part.overlap.base is not item.to:
                        self.problems.append(f"{part} is copied to {item.to}, which it is not a part of")
            elif isinstance(item, ir.Await):
                written.add(item.copy.to)
            elif isinstance(item, ir.Call):
                self.call(item, written)

    def loop(self, loop: ir.Loop, written: set[ir.Buffer]) -> None:
        what = f"loop {loop.counter}"
        for view in ir.reads(loop):
            self.read(view, written, what)
        self.body(loop.body, written)
        for carry in loop.carries:
            if not carry.now.type == carry.next.type == carry.last.type:
                self.problems.append(f"{what} carries {carry.now.type}, {carry.next.type} and {carry.last.type}")
            self.read(carry.next.whole(), written, what)
            self.fill(carry.last.whole(), upper(carry.last.type.count), written)

    def rows(self, region: ir.Rows, written: set[ir.Buffer]) -> None:
        """A region of rows: stages after those that they pull, each pulled once but the last."""
        pulled: set[int] = set()
        for stage in region.stages:
            what = f"{stage.call.kind.name} from {stage.call.provenance}"
            if stage.call.rows is None:
                self.problems.append(f"{what} does not run row by row")
            for pull in stage.pulls:
                if not 0 <= pull.stage < len(region.stages) - 1 or pull.stage in pulled:
                    self.problems.append(f"{what} pulls stage {pull.stage}")
                pulled.add(pull.stage)
            if stage.over is not None:
                below = stage.call.ins[stage.over].buffer
                steps = {other.step for other in region.stages if other.call.outs[0].buffer is below}
                if steps - {stage.step}:
                    self.problems.append(f"{what} has its rows over those of a stage that makes others at a time")
            self.call(stage.call, written)
        if len(pulled) != len(region.stages) - 1:
            self.problems.append(f"rows from {region.provenance}: a stage is never pulled")

    def call(self, call: ir.Call, written: set[ir.Buffer]) -> None:
        what = f"{call.kind.name} from {call.provenance}"
        self.by_itself(call, what)
        for view in call.ins:
            self.reads_written(view, written, what)
        for view in call.outs:
            buffer = view.buffer
            if buffer.role not in (ir.TEMPORARY, ir.LASTING, ir.STREAM, ir.EXTERNAL) or buffer in self.given:
                self.problems.append(f"{what} writes {buffer}, which is {buffer.role}")
            if self.writer.get(buffer) not in (None, call) and not _in_other_branch(buffer, written):
                self.problems.append(f"{what} writes {buffer}, which has another writer")
            self.writer[buffer] = call
            offset = view.offset
            times = (
                1 if isinstance(offset, int) else prod(s.high - s.low + 1 for s in symbols(offset))
            )  # a slice in each trip of a loop
            self.fill(view, upper(view.type.count) * times, written)

    def by_itself(self, call: ir.Call, what: str) -> None:
        """What neighbours have no part in, so it holds until a pass changes the call."""
        parts = (call.kind, call.ins, call.outs)
        if all(one is other for one, other in zip(parts, self.verified.get(call, (None,)), strict=False)):
            return
        known = len(self.problems)
        for view in (*call.ins, *call.outs):
            self.inside(view, what)
        reason = call.kind.check([v.type for v in call.ins], [v.type for v in call.outs])
        if reason:
            self.problems.append(f"{what}: {reason}")
        if len(self.problems) == known:
            self.verified[call] = parts

    def fill(self, view: ir.View, elements: int, written: set[ir.Buffer]) -> None:
        """A buffer is written once all of its elements are, be it through buffers that are parts of it."""
        buffer = view.buffer
        self.partly.setdefault(buffer, []).append(view)
        self.filled[buffer] = self.filled.get(buffer, 0) + elements
        if self.filled[buffer] >= upper(buffer.type.count):
            written.add(buffer)
        if buffer.overlap and buffer.overlap.part:
            start = buffer.overlap.offset * 8 // buffer.dtype.bits
            whole = replace(view, buffer=buffer.overlap.base, offset=view.offset + start)
            self.fill(whole, elements, written)

    def read(self, view: ir.View, written: set[ir.Buffer], what: str) -> None:
        self.inside(view, what)
        self.reads_written(view, written, what)

    def reads_written(self, view: ir.View, written: set[ir.Buffer], what: str) -> None:
        if view.buffer.role in (ir.TEMPORARY, ir.EXTERNAL) and view.buffer not in written and not self.is_written(view):
            self.problems.append(f"{what} reads {view.buffer} before it is written")
        if view.buffer.role == ir.CONSTANT and view.buffer.overlap and view.buffer.overlap.base not in written:
            self.problems.append(f"{what} reads {view.buffer} before its copy has come")
        if view.buffer.role == ir.INPUT and view.buffer not in written:
            self.problems.append(f"{what} reads {view.buffer}, which is not an input of the program")

    def is_written(self, view: ir.View) -> bool:
        """Of a buffer that is not complete yet: was all written that the view shows?"""
        parts = self.partly.get(view.buffer, [])
        mask, shown = self.masks.get(view.buffer, (None, 0))
        dims = [d for v in (view, *parts[shown:]) for d in (*v.shape, *v.strides, v.offset)]
        if not all(isinstance(d, int) for d in (*dims, *view.buffer.shape)) or 0 in view.shape:
            return False
        if mask is None:
            mask = np.zeros(static(view.buffer.type.count), bool)
        for done in parts[shown:]:
            _elements(mask, done)[...] = True
        self.masks[view.buffer] = mask, len(parts)
        return bool(_elements(mask, view).all())

    def inside(self, view: ir.View, what: str) -> None:
        if len(view.shape) != len(view.strides):
            self.problems.append(f"{what}: view of {view.buffer} has {len(view.strides)} strides for {view.shape}")
        elif view.last_element >= upper(view.buffer.type.count):
            self.problems.append(f"{what}: view {view.shape} by {view.strides} leaves {view.buffer} {view.buffer.type}")


def _elements(flat: np.ndarray, view: ir.View) -> np.ndarray:
    strides = [static(stride) * flat.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(flat[static(view.offset) :], view.type.static_shape, strides)


def _in_other_branch(buffer: ir.Buffer, written: set[ir.Buffer]) -> bool:
    """Written before on another path, but not on this one."""
    return buffer not in written
