"""Sequences whose lengths are known only at run time: slots (base/structures.py), and the nodes that handle them.

Invariant: nodes are written in front of the one that is read, where what they need has been made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.constant import Constant
from ..base.dims import upper
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.structures import Items, Maybe, SlotCapacity, Slots, Structure
from ..graph.ir import Invalid, Unsupported, Value
from ..ops.api import Operator, resolve
from ..ops.slots import InsertSlot

Sequence_ = Items[Value] | Slots[Value]
Made = Value | Structure[Value]


@dataclass(frozen=True)
class Writer:
    """Puts nodes in front of the one that is read."""

    put: Callable[[Operator, Sequence[Value | None], int], list[Value]]
    constant: Callable[[np.ndarray], Value]
    contents: Callable[[Value], Constant | None]
    home: Callable[[Structure[Value]], Writer]  # for the place where something was made, which may be around this one

    def op(self, name: str, *inputs: Value | None, domain: str = "", **attributes: Any) -> Value:
        return self.put(_made(domain, name, attributes), inputs, 1)[0]

    def several(self, results: int, name: str, *inputs: Value | None, **attributes: Any) -> list[Value]:
        return self.put(_made("mccompile", name, attributes), inputs, results)

    def own(self, name: str, *inputs: Value | None, **attributes: Any) -> Value:
        """An operator that ONNX does not have."""
        return self.op(name, *inputs, domain="mccompile", **attributes)

    def ints(self, *numbers: int) -> Value:
        return self.constant(np.array(numbers, np.int64))

    def number(self, number: int) -> Value:
        return self.constant(np.array(number, np.int64))

    def flag(self, flag: bool) -> Value:
        return self.constant(np.array(flag))

    def reshape(self, x: Value, *shape: int) -> Value:
        return x if x.type.shape == shape else self.op("Reshape", x, self.ints(*shape))

    def known(self, value: Value) -> int | None:
        """The one number or flag that a value is, where that is known."""
        found = self.contents(value)
        return int(found.array.reshape(-1)[0]) if found is not None and found.array.size == 1 else None


def _made(domain: str, name: str, attributes: Mapping[str, Any]) -> Operator:
    made: Operator = resolve(domain, name)(**attributes)
    return made


def room_of(value: Sequence_) -> SlotCapacity | None:
    """What there is room for, or would have to be; None: nothing is in it, and of no known size."""
    if isinstance(value, Slots):
        return value.room
    room: SlotCapacity | None = None
    for part in value.parts:
        shape = part.type.shape
        own = SlotCapacity(1, tuple(upper(dim) for dim in shape), ragged=not part.type.is_static)
        room = own if room is None else room.joined(own)
    return None if room is None else SlotCapacity(len(value.parts), room.shape, room.ragged, room.mixed)


def as_slots(w: Writer, value: Sequence_, room: SlotCapacity) -> Slots[Value]:
    """The sequence in slots with as much room as that (none is too small)."""
    slots = _listed(w.home(value), value, room) if isinstance(value, Items) else value
    if slots.room == room:
        return slots
    have, data, shapes = slots.room, slots.data, slots.shapes
    more, wider = max(room.count - have.count, 0), room.size - have.size
    if more or wider:
        data = w.op("Pad", data, w.ints(0, 0, more, wider))
    if room.ragged:
        if shapes is None:
            row = w.constant(np.array([have.shape], np.int64))
            shapes = w.op("Expand", row, w.ints(have.count, len(have.shape)))
        axes = len(room.shape) - len(have.shape)
        if more or axes:
            shapes = w.op("Pad", shapes, w.ints(0, 0, more, axes), w.number(-1))
    if room.count < have.count:
        data = w.own("LimitSlots", _inserted(w, data, room.count), slots.length, count=room.count)
        shapes = None if shapes is None else _first_rows(w, _inserted(w, shapes, room.count), room.count)
    return Slots(slots.dtype, room, data, slots.length, shapes)


def _inserted(w: Writer, slots: Value, count: int) -> Value:
    """Slots that something was just put into, with room for one less: they can lie where they lay before."""
    node = slots.producer
    if node is None or not isinstance(node.op, InsertSlot) or slots.type.shape[0] != count + 1:
        return slots
    return w.own("InsertSlot", *node.inputs, count=count)


def _first_rows(w: Writer, rows: Value, count: int) -> Value:
    return rows if rows.type.shape[0] == count else w.op("Slice", rows, w.ints(0), w.ints(count), w.ints(0))


def _listed(w: Writer, items: Items[Value], room: SlotCapacity) -> Slots[Value]:
    """Tensors, put into slots."""
    if items.dtype.is_packed:
        raise Unsupported(f"elements of {items.dtype} at positions that are known only at run time")
    count, size = room.count, room.size
    length = w.number(len(items.parts))
    shapes = None
    if room.ragged:
        rows = [w.reshape(shape_row(w, part, room), 1, len(room.shape)) for part in items.parts]
        rows += [w.constant(np.full((count - len(rows), len(room.shape)), -1, np.int64))] if count > len(rows) else []
        shapes = rows[0] if len(rows) == 1 else w.op("Concat", *rows, axis=0)
    if items.parts and all(part.type.is_static for part in items.parts):
        flat = [w.reshape(part, 1, count_of(part)) for part in items.parts]
        flat = [x if x.type.shape == (1, size) else w.op("Pad", x, w.ints(0, 0, 0, size - count_of(x))) for x in flat]
        data = flat[0] if len(flat) == 1 else w.op("Concat", *flat, axis=0)
        if len(flat) < count:
            data = w.op("Pad", data, w.ints(0, 0, count - len(flat), 0))
        return Slots(items.dtype, room, data, length, shapes)
    zero = np.zeros((), items.dtype.numpy).item()
    data = w.op("ConstantOfShape", w.ints(count, size), value=zero, dtype=items.dtype)
    for number, part in enumerate(items.parts):
        data = w.own("InsertSlot", data, part, w.number(number), count=count)
    return Slots(items.dtype, room, data, length, shapes)


def count_of(value: Value) -> int:
    return int(np.prod(value.type.static_shape, dtype=np.int64))


def shape_row(w: Writer, value: Value, room: SlotCapacity) -> Value:
    """The shape of an element as a row of `shapes`."""
    missing = len(room.shape) - value.type.rank
    row = w.op("Shape", value)
    return w.op("Concat", row, w.ints(*[-1] * missing), axis=0) if missing else row


def place(w: Writer, position: Value | None, length: Value, more: int) -> Value:
    """A position in a sequence, counted from the front and checked; the last (or the end) where none is given."""
    if position is None and more:
        return length
    position = w.number(-1) if position is None else position
    if position.type.count != 1:
        raise Invalid(f"the position is {position.type}, not one number")
    position = w.reshape(position if position.type.dtype is i64 else w.op("Cast", position, to=i64.onnx))
    return w.own("SlotPosition", position, length, more=more)


def known_place(w: Writer, position: Value | None, count: int, more: int) -> int | None:
    """The same for a sequence of known length; None where the position is known only at run time."""
    if position is None:
        number: int | None = count + more - 1
    else:
        number = w.known(position)
    if number is None:
        return None
    if not -count <= number < count + more:
        raise Invalid(f"position {number} is outside of a sequence of {count} elements")
    return number + count if number < 0 else number


def received(w: Writer, value: Made) -> Made:
    """A value that is passed in, once what is said of its length is found to be right."""
    match value:
        case Slots():
            length = w.own("GivenLength", value.length, count=value.room.count)
            return Slots(value.dtype, value.room, value.data, length, value.shapes)
        case Maybe() if isinstance(value.value, Slots):
            inner = received(w, value.value)
            return Maybe(value.present, inner) if isinstance(inner, Slots) else value
    return value
