"""Prints and reads programs.

    program "net" {
      input %x: f32[1,16]
      const %w: f32[16,4] = #9f86d081884c7d65
      buffer %y: f32[1,4] from "dense/MatMul"
      call Gemm(accumulator=f32) (%x, %w) -> (%y) kernel "f32_any__c" from "dense/MatMul"
      output "y" %y
    }

A view that is not the whole buffer is written `%x[1,4 by 16,1 at 3]`: shape, strides, offset. Constants are content
hashes, the contents are in a side file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ..base import dims
from ..base.constant import Constant
from ..base.provenance import Provenance
from ..base.tensor import TensorType
from ..base.text import Reader, branches, write
from ..expr.text import read as read_expression
from ..kinds.api import registry
from .ir import (
    CONSTANT,
    EXTERNAL,
    INPUT,
    LASTING,
    STREAM,
    TEMPORARY,
    Await,
    Buffer,
    Call,
    Carry,
    Copy,
    If,
    Item,
    Loop,
    Measure,
    Overlap,
    Program,
    Rows,
    Stage,
    Stop,
    Storage,
    View,
    walk,
)
from .pull import Pull


def show(program: Program) -> str:
    lines = [f"program {json.dumps(program.name)} {{"]
    buffers = program.buffers()
    found = {s for b in buffers for dim in b.shape for s in dims.symbols(dim)}
    found |= {item.symbol for item in walk(program.body) if isinstance(item, Measure)}
    lines += [f"  dim {s.name} in {s.low}..{s.high}" for s in sorted(found)]
    lines += [f"  fact {json.dumps(fact)}" for fact in program.assumptions]
    lines += [f"  not_negative {write(dim)}" for dim in program.not_negative]
    lines += [f"  call_by_call {program.call_by_call}"] if program.call_by_call else []
    lines += [f"  copied_bound {program.copied_bound}"] if program.copied_bound is not None else []
    lines += [f"  state {json.dumps(before)} = {json.dumps(after)}" for before, after in program.states.items()]
    for name, buffer in program.initial.items():
        begins = "zeros"
        if buffer is not None and buffer.constant is not None:
            begins = f"{json.dumps(buffer.name)} #{buffer.constant.digest}"
        lines.append(f"  initial {json.dumps(name)} = {begins}")
    for name, buffer in program.inputs:
        word = "input" if buffer.role == INPUT else f"{buffer.role} input"
        lines.append(f"  {word} {json.dumps(name)} {_buffer(buffer)}")
    given = {buffer for _, buffer in program.inputs}
    for buffer in buffers:
        if buffer not in given:
            named = buffer.role in (EXTERNAL, LASTING, STREAM)
            word = "const" if buffer.constant else buffer.role if named else "buffer"
            lines.append(f"  {word} {_buffer(buffer)}")
    lines += _body(program.body, "  ")
    lines += [f"  output {json.dumps(name)} {_view(view)}" for name, view in program.outputs]
    return "\n".join([*lines, "}"]) + "\n"


def constants_of(program: Program) -> dict[str, Constant]:
    held = (*program.buffers(), *program.initial.values())
    return {b.constant.digest: b.constant for b in held if b is not None and b.constant is not None}


def _name(name: str) -> str:
    return f"%{name}" if re.fullmatch(r"[A-Za-z_][\w.]*", name) else f"%{json.dumps(name)}"


def _from(provenance: Provenance) -> str:
    return f" from {', '.join(map(write, provenance))}" if provenance else ""


def _buffer(buffer: Buffer) -> str:
    text = f"{_name(buffer.name)}: {buffer.type}"
    if buffer.constant is not None:
        text += f" = #{buffer.constant.digest}"
    if buffer.storage != Storage():
        text += f" align {buffer.storage.align} slack {buffer.storage.slack}"
    if buffer.overlap:
        word = "part" if buffer.overlap.part else "over"
        text += f" {word} {_name(buffer.overlap.base.name)} at {buffer.overlap.offset}"
    if buffer.packing:
        text += f" packed {json.dumps(buffer.packing)}"
    if buffer.within is not None:
        text += f" within {buffer.within[0]} to {buffer.within[1]}"
    if buffer.far:
        text += " far"
    return text + _from(buffer.provenance)


def _view(view: View) -> str:
    name = _name(view.buffer.name)
    if view == view.buffer.whole():
        return name
    ring = f" lines {view.lines}" if view.lines else ""
    shape, strides = ((",".join(write(d) for d in part)) for part in (view.shape, view.strides))
    return f"{name}[{shape} by {strides} at {write(view.offset)}{ring}]"


def _body(body: list[Item], indent: str) -> list[str]:
    lines: list[str] = []
    for item in body:
        if isinstance(item, If):
            then, otherwise = (_body(body, indent + "  ") for body in (item.then, item.otherwise))
            lines += branches(f"{_view(item.condition)}{_from(item.provenance)}", then, otherwise, indent)
            continue
        if isinstance(item, Loop):
            lines.append(f"{indent}{_loop(item)} {{")
            lines += _body(item.body, indent + "  ")
            lines.append(f"{indent}}}")
            continue
        if isinstance(item, Stop):
            lines.append(f"{indent}stop {item.status} {json.dumps(item.why)}{_from(item.provenance)}")
            continue
        if isinstance(item, Measure):
            lines.append(f"{indent}measure {item.symbol} {_view(item.source)}{_from(item.provenance)}")
            continue
        if isinstance(item, Copy):
            parts = ", ".join(_name(part.name) for part in item.parts)
            lines.append(f"{indent}copy {_name(item.to.name)} of ({parts}){_from(item.provenance)}")
            continue
        if isinstance(item, Await):
            lines.append(f"{indent}await {_name(item.copy.to.name)}")
            continue
        if isinstance(item, Rows):
            over = "".join(f" over {_name(buffer.name)}" for buffer in item.over)
            over += "".join(f" before {_name(buffer.name)} by {nbytes}" for buffer, nbytes in item.before)
            lines.append(f"{indent}rows{over}{_from(item.provenance)} {{")
            lines += [f"{indent}  {_stage(stage)} {_call(stage.call)}" for stage in item.stages]
            lines.append(f"{indent}}}")
            continue
        lines.append(indent + _call(item))
    return lines


def _stage(stage: Stage) -> str:
    pulls = "".join(f" pull {pull}" for pull in stage.pulls)
    over = f" over {stage.over}" if stage.over is not None else ""
    return f"stage {stage.height} by {stage.step}{over}{pulls}"


def _call(item: Call) -> str:
    ins, outs = (", ".join(map(_view, views)) for views in (item.ins, item.outs))
    line = f"call {write(item.kind)} ({ins}) -> ({outs})"
    if item.kernel:
        line += f" kernel {json.dumps(item.kernel)}"
    if item.blocks:
        line += f" blocks {write(item.blocks)}"
    if item.scratch is not None:
        line += f" scratch {_name(item.scratch.name)}"
    if item.rows is not None:
        line += f" rows {item.rows}"
    if item.workers > 1:
        line += f" workers {item.workers}" + " in_turn" * item.in_turn
    return line + _from(item.provenance)


def _loop(loop: Loop) -> str:
    trips = _view(loop.trips) if isinstance(loop.trips, View) else write(loop.trips)
    line = f"loop {loop.counter.name} to {loop.counter.high} trips {trips}"
    if loop.condition is not None:
        line += f" while {_view(loop.condition)}"
    for carry in loop.carries:
        line += f" carry {_name(carry.now.name)}, {_name(carry.next.name)}, {_name(carry.last.name)}"
    return line + _from(loop.provenance)


def read(text: str, constants: Mapping[str, Constant], name: str = "program text") -> Program:
    return _ProgramReader(text, constants, name).program()


class _ProgramReader:
    def __init__(self, text: str, constants: Mapping[str, Constant], name: str) -> None:
        text = re.sub(r'(= (?:"(?:[^"\\]|\\.)*" )?)#(\w+)', r'\1"\2"', text)
        text = re.sub(r"dim (\w+) in (-?\d+)\.\.(-?\d+)", r"dim \1 in \2 , \3", text)
        self.types: list[str] = []
        text = re.sub(r'(%(?:"(?:[^"\\]|\\.)*"|[\w.]+)): (\w+\[[^\]]*\])', self._stash_type, text)
        self.reader = Reader(text, name, registry(), read_expression)
        self.constants = constants
        self.buffers: dict[str, Buffer] = {}
        self.copies: dict[Buffer, Copy] = {}  # by where they go

    def _stash_type(self, match: re.Match[str]) -> str:
        self.types.append(match[2])
        return f"{match[1]}: {len(self.types) - 1}"

    def program(self) -> Program:
        reader = self.reader
        reader.expect("program")
        program = Program(reader.string())
        reader.expect("{")
        while not reader.take("}"):
            if reader.take("dim"):
                reader.bounded_symbol()
            elif reader.take("fact"):
                program.assumptions[reader.string()] = None
            elif reader.take("not_negative"):
                program.not_negative[reader.dim()] = None
            elif reader.take("call_by_call"):
                program.call_by_call = reader.integer()
            elif reader.take("copied_bound"):
                program.copied_bound = reader.integer()
            elif reader.take("state"):
                before = reader.string()
                reader.expect("=")
                program.states[before] = reader.string()
            elif reader.take("initial"):
                before = reader.string()
                reader.expect("=")
                program.initial[before] = None if reader.take("zeros") else self._held(reader.string())
            elif reader.take("input"):
                program.inputs.append((reader.string(), self._declare(INPUT)))
            elif reader.take(EXTERNAL):
                name = reader.string() if reader.take("input") else None
                buffer = self._declare(EXTERNAL)
                program.inputs += [(name, buffer)] if name is not None else []
            elif reader.take("const"):
                self._declare(CONSTANT)
            elif reader.take("buffer"):
                self._declare(TEMPORARY)
            elif reader.take(STREAM):
                self._declare(STREAM)
            elif reader.take(LASTING):
                self._declare(LASTING)
            elif reader.take("output"):
                program.outputs.append((reader.string(), self._view()))
            else:
                program.body.append(self._item())
        return program

    def _known(self) -> Buffer:
        name = self.reader.value_name()
        if name not in self.buffers:
            raise self.reader.error(f"no buffer %{name} is declared above this line")
        return self.buffers[name]

    def _declare(self, role: str) -> Buffer:
        reader = self.reader
        name = self.reader.value_name()
        reader.expect(":")
        text = self.types[reader.integer()]
        try:
            type = TensorType.parse(text, reader.symbols)
        except (KeyError, ValueError, SyntaxError):
            raise reader.error(f"{text!r} is not a type") from None
        buffer = Buffer(name, type.dtype, type.shape, role)
        if reader.take("="):
            digest = reader.string()
            if digest not in self.constants:
                raise reader.error(f"constant #{digest} is not in the side file")
            buffer.constant = self.constants[digest]
        if reader.take("align"):
            align = reader.integer()
            reader.expect("slack")
            buffer.storage = Storage(align, reader.integer())
        if reader.at("over") or reader.at("part"):
            part = reader.advance() == "part"
            base = self.reader.value_name()
            reader.expect("at")
            # the base may be declared below; it is completed when its line is read
            self.buffers.setdefault(base, Buffer(base, type.dtype, type.shape))
            buffer.overlap = Overlap(self.buffers[base], reader.integer(), part)
        if reader.take("packed"):
            buffer.packing = reader.string()
        if reader.take("within"):
            low = reader.integer()
            reader.expect("to")
            buffer.within = low, reader.integer()
        buffer.far = bool(reader.take("far"))
        buffer.provenance = self._from()
        if name in self.buffers:  # was named as a base before
            early = self.buffers[name]
            vars(early).update(vars(buffer))
            return early
        self.buffers[name] = buffer
        return buffer

    def _held(self, name: str) -> Buffer:
        """A constant that no call reads."""
        digest = self.reader.string()
        if digest not in self.constants:
            raise self.reader.error(f"constant #{digest} is not in the side file")
        constant = self.constants[digest]
        return Buffer(name, constant.type.dtype, constant.type.shape, CONSTANT, constant)

    def _from(self) -> Provenance:
        names: list[str] = []
        if self.reader.take("from"):
            names.append(self.reader.string())
            while self.reader.take(","):
                names.append(self.reader.string())
        return tuple(names)

    def _view(self) -> View:
        buffer = self._known()
        reader = self.reader
        if not reader.take("["):
            return buffer.whole()
        parts: list[list[dims.Dim]] = [[], []]
        for part, end in ((0, "by"), (1, "at")):
            while not reader.take(end):
                parts[part].append(reader.dim())
                reader.take(",")
        offset = reader.dim()
        lines = reader.integer() if reader.take("lines") else 0
        reader.expect("]")
        return View(buffer, tuple(parts[0]), tuple(parts[1]), offset, lines)

    def _views(self) -> tuple[View, ...]:
        self.reader.expect("(")
        views: list[View] = []
        while not self.reader.take(")"):
            views.append(self._view())
            self.reader.take(",")
        return tuple(views)

    def _loop(self) -> Loop:
        reader = self.reader
        name = reader.word()
        reader.expect("to")
        counter = dims.Symbol(name, 0, reader.integer())
        reader.symbols[name] = dims.symbol(name, 0, counter.high)
        reader.expect("trips")
        trips = self._view() if reader.at("%") else reader.dim()
        condition = self._view() if reader.take("while") else None
        carries: list[Carry] = []
        while reader.take("carry"):
            now = self._known()
            reader.expect(",")
            following = self._known()
            reader.expect(",")
            carries.append(Carry(now, following, self._known()))
        loop = Loop(counter, trips, carries, condition, [], self._from())
        reader.expect("{")
        while not reader.take("}"):
            loop.body.append(self._item())
        return loop

    def _item(self) -> Item:
        reader = self.reader
        if reader.take("if"):
            condition = self._view()
            provenance = self._from()
            bodies: list[list[Item]] = []
            for word in ("", "else"):
                if word:
                    reader.expect(word)
                reader.expect("{")
                body: list[Item] = []
                while not reader.take("}"):
                    body.append(self._item())
                bodies.append(body)
            return If(condition, bodies[0], bodies[1], provenance)
        if reader.take("loop"):
            return self._loop()
        if reader.take("stop"):
            status, why = reader.word(), reader.string()
            return Stop(why, self._from(), status)
        if reader.take("measure"):
            (symbol,) = dims.symbols(reader.symbols[reader.word()])
            return Measure(symbol, self._view(), self._from())
        if reader.take("rows"):
            return self._rows()
        if reader.take("copy"):
            return self._copy()
        if reader.take("await"):
            return Await(self.copies[self._known()])
        return self._call()

    def _copy(self) -> Copy:
        to = self._known()
        self.reader.expect("of")
        parts = tuple(view.buffer for view in self._views())
        self.copies[to] = Copy(parts, to, self._from())
        return self.copies[to]

    def _rows(self) -> Rows:
        reader = self.reader
        over = []
        while reader.take("over"):
            over.append(self._known())
        before = []
        while reader.take("before"):
            buffer = self._known()
            reader.expect("by")
            before.append((buffer, reader.integer()))
        region = Rows([], tuple(over), tuple(before), self._from())
        reader.expect("{")
        while not reader.take("}"):
            reader.expect("stage")
            height = reader.integer()
            reader.expect("by")
            step, pulls = reader.integer(), []
            lies_over = reader.integer() if reader.take("over") else None
            while reader.take("pull"):
                number = reader.integer()
                reader.expect("to")
                scale = reader.integer()
                reader.expect(",")
                shift = reader.integer()
                pulls.append(Pull(number, scale, shift, reader.integer() if reader.take("parts") else 1))
            region.stages.append(Stage(self._call(), height, step, tuple(pulls), lies_over))
        return region

    def _call(self) -> Call:
        reader = self.reader
        reader.expect("call")
        kind = reader.value()
        ins = self._views()
        reader.expect("->")
        call = Call(kind, ins, self._views())
        if reader.take("kernel"):
            call.kernel = reader.string()
        if reader.take("blocks"):
            call.blocks = reader.tuple_of(")")
        if reader.take("scratch"):
            call.scratch = self._known()
        if reader.take("rows"):
            call.rows = reader.integer()
        if reader.take("workers"):
            call.workers = reader.integer()
            call.in_turn = reader.take("in_turn")
        call.provenance = self._from()
        return call
