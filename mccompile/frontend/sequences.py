"""Operators over sequences and optional values, decomposed into operators over the tensors that these are made of.

Invariant: what is known while the model is read stays a list of tensors and costs nothing; only a position, a length or
a size that is known at run time makes a sequence into slots (base/structures.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TypeProto

from ..base.dtypes import i64, of_onnx
from ..base.structures import STRUCTURES, Items, Maybe, SlotCapacity, Slots, Structure
from ..graph.ir import Invalid, Unsupported, Value
from ..ops.api import normal_axis
from .slots import Made, Sequence_, Writer, as_slots, count_of, known_place, place, room_of, shape_row
from .tensors import declared

Attributes = Mapping[str, Any]
Operand = Made | None


# -- sequences


def sequence_empty(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    dtype = of_onnx(attributes.get("dtype", 1))
    if dtype is None:
        raise Invalid(f"element type {attributes['dtype']} is not one that ONNX has")
    return [Items(dtype, ())]


def sequence_construct(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    parts = [tensor(operand) for operand in operands]
    other = next((part for part in parts if part.type.dtype is not parts[0].type.dtype), None)
    if other is not None:
        raise Invalid(f"one element is {parts[0].type}, another {other.type}")
    return [Items(parts[0].type.dtype, tuple(parts))]


def sequence_insert(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    into, piece, position = sequence(operands[0]), tensor(operands[1]), optional_tensor(operands, 2)
    if piece.type.dtype is not into.dtype:
        raise Invalid(f"{piece.type} is put into a sequence of {into.dtype}")
    if isinstance(into, Items):
        at = known_place(w, position, len(into.parts), 1)
        if at is not None:
            return [Items(into.dtype, (*into.parts[:at], piece, *into.parts[at:]))]
    own = room_of(Items(piece.type.dtype, (piece,)))
    before = room_of(into)
    assert own is not None
    room = own if before is None else before.joined(own)
    count = before.count if before is not None else 0
    slots = as_slots(w, into, SlotCapacity(max(count, 1), room.shape, room.ragged, room.mixed))
    where = place(w, position, slots.length, 1)
    data = w.own("InsertSlot", slots.data, piece, where, count=count + 1)
    shapes = None
    if slots.shapes is not None:
        shapes = w.own("InsertSlot", slots.shapes, shape_row(w, piece, room), where, count=count + 1)
    length = w.op("Add", slots.length, w.number(1))
    return [Slots(into.dtype, SlotCapacity(count + 1, room.shape, room.ragged, room.mixed), data, length, shapes)]


def sequence_erase(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    out_of, position = sequence(operands[0]), optional_tensor(operands, 1)
    if isinstance(out_of, Items):
        at = known_place(w, position, len(out_of.parts), 0)
        if at is not None:
            return [Items(out_of.dtype, (*out_of.parts[:at], *out_of.parts[at + 1 :]))]
    slots = _in_slots(w, out_of)
    where = place(w, position, slots.length, 0)
    data, shapes = (x and w.own("EraseSlot", x, where) for x in (slots.data, slots.shapes))
    assert data is not None
    return [Slots(slots.dtype, slots.room, data, w.op("Sub", slots.length, w.number(1)), shapes)]


def sequence_at(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    of, position = sequence(operands[0]), tensor(operands[1])
    if isinstance(of, Items):
        at = known_place(w, position, len(of.parts), 0)
        if at is not None:
            return [of.parts[at]]
    slots = _in_slots(w, of)
    where = place(w, position, slots.length, 0)
    row = w.op("Gather", slots.data, where, axis=0)
    if slots.shapes is None:
        return [w.reshape(row, *slots.room.shape)]
    if slots.room.mixed:
        raise Unsupported(
            "elements of the sequence differ in their number of dimensions, and which is meant is known at run time",
            "put elements of one rank into the sequence",
        )
    return [w.own("SizedSlot", row, w.op("Gather", slots.shapes, where, axis=0), shape=slots.room.shape)]


def sequence_length(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    of = sequence(operands[0])
    return [w.number(len(of.parts)) if isinstance(of, Items) else of.length]


def concat_from_sequence(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    of, axis, is_new = sequence(operands[0]), attributes["axis"], bool(attributes.get("new_axis", 0))
    if isinstance(of, Items):
        if not of.parts:
            raise Invalid("an empty sequence cannot be joined to a tensor")
        parts = [w.op("Unsqueeze", part, w.ints(axis)) for part in of.parts] if is_new else of.parts
        return [w.op("Concat", *parts, axis=axis)]
    room = of.room
    if of.shapes is not None:
        raise Unsupported(
            "elements whose sizes are known only at run time are joined to a tensor",
            "give the elements of the sequence one shape",
        )
    axis = normal_axis(axis, len(room.shape) + is_new)
    used = w.own("UsedSlots", of.data, of.length)
    rows = w.op("Reshape", used, w.ints(-1, *room.shape))
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(room.shape) + 1)]
    turned = w.op("Transpose", rows, perm=tuple(order)) if axis else rows
    if is_new:
        return [turned]
    return [w.op("Reshape", turned, w.ints(*room.shape[:axis], -1, *room.shape[axis + 1 :]))]


def split_to_sequence(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    x, split = tensor(operands[0]), optional_tensor(operands, 1)
    axis = normal_axis(attributes.get("axis", 0), x.type.rank)
    size = x.type.shape[axis]
    if not isinstance(size, int):
        raise Unsupported(f"a tensor is split along an axis whose size {size} is known only at run time")
    if split is None:
        sizes: list[int] | None = [1] * size
    else:
        found = w.contents(split)
        sizes = None if found is None else [int(part) for part in found.array.reshape(-1)]
        if sizes is not None and not split.type.rank:
            step = sizes[0]
            if step < 1:
                raise Invalid(f"it is split into parts of {step} elements")
            sizes = [min(step, size - first) for first in range(0, size, step)]
    if sizes is None:
        assert split is not None
        return [_split_at_run_time(w, x, split, axis, size)]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise Invalid(f"an axis of {size} elements is split into {sizes}")
    parts, first = [], 0
    for part in sizes:
        piece = w.op("Slice", x, w.ints(first), w.ints(first + part), w.ints(axis))
        if split is None and not attributes.get("keepdims", 1):
            piece = w.op("Squeeze", piece, w.ints(axis))
        parts.append(piece)
        first += part
    return [Items(x.type.dtype, tuple(parts))]


def _split_at_run_time(w: Writer, x: Value, split: Value, axis: int, size: int) -> Slots[Value]:
    if not x.type.is_static or not split.type.is_static or split.type.rank > 1:
        raise Unsupported(f"{x.type} is split as {split.type} says, which is known only at run time")
    count = count_of(split) if split.type.rank else max(size, 1)
    room = SlotCapacity(count, x.type.static_shape, ragged=True)
    split = split if split.type.dtype is i64 else w.op("Cast", split, to=i64.onnx)
    data, length, shapes = w.several(3, "SplitToSlots", x, split, axis=axis)
    return Slots(x.type.dtype, room, data, length, shapes)


def _in_slots(w: Writer, value: Sequence_) -> Slots[Value]:
    room = room_of(value)
    if room is None or room.count == 0:
        raise Invalid("the sequence is empty")
    return as_slots(w, value, room)


# -- optional values


def optional(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    given = operands[0] if operands else None
    if given is None:
        if "type" not in attributes:
            raise Invalid("it has neither an operand nor a type")
        return [Maybe(w.flag(False), nothing(w, attributes["type"]))]
    if isinstance(given, Maybe):
        raise Invalid("an optional value is made optional again")
    return [Maybe(w.flag(True), given)]


def nothing(w: Writer, type: TypeProto) -> Value | Sequence_:
    """What stands for an absent value of a type."""
    kind = type.WhichOneof("value")
    if kind == "sequence_type":
        return Items(declared(type.sequence_type.elem_type)[0], ())
    if kind != "tensor_type":
        raise Unsupported("an optional value that is neither a tensor nor a sequence of tensors")
    dtype, shape = declared(type)
    sizes = [dim for dim in shape or () if isinstance(dim, int)]
    if shape is None or len(sizes) != len(shape):
        raise Unsupported("the shape of an absent value is not known", "declare it in the type of Optional")
    return w.constant(np.zeros(sizes, dtype.numpy))


def optional_has_element(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    given = operands[0] if operands else None
    return [given.present if isinstance(given, Maybe) else w.flag(given is not None)]


def optional_get_element(w: Writer, attributes: Attributes, operands: Sequence[Operand]) -> list[Made]:
    given = operands[0] if operands else None
    if given is None:
        raise Invalid("the element of nothing is asked for")
    if not isinstance(given, Maybe):
        return [given]
    return [content(w, given)]


def content(w: Writer, given: Maybe[Value]) -> Value | Sequence_:
    """What is in an optional value; a run where nothing is ends with a status."""
    present = w.known(given.present)
    if present == 0:
        raise Invalid("the element of an absent optional value is read")
    if present:
        return given.value

    def required(value: Value) -> Value:
        return w.own("Required", value, given.present)

    return given.value.map(required) if isinstance(given.value, Items | Slots) else required(given.value)


def alike(writers: Sequence[Writer], pair: Sequence[Value | Structure[Value]]) -> list[Value | Structure[Value]]:
    """What two branches give, in one form; a writer for each branch."""
    if not any(isinstance(value, STRUCTURES) for value in pair):
        return list(pair)
    if any(isinstance(value, Maybe) for value in pair):
        sure = [x if isinstance(x, Maybe) else Maybe(w.flag(True), x) for w, x in zip(writers, pair, strict=True)]
        inner = alike(writers, [maybe.value for maybe in sure])
        flags = (maybe.present for maybe in sure)
        return [Maybe(flag, x) for flag, x in zip(flags, inner, strict=True) if not isinstance(x, Maybe)]
    a, b = (sequence(value) for value in pair)
    if a.dtype is not b.dtype:
        raise Invalid(f"one branch gives {shown(a)}, the other {shown(b)}")
    if isinstance(a, Items) and isinstance(b, Items) and [p.type for p in a.parts] == [p.type for p in b.parts]:
        return [a, b]
    rooms = [room for room in (room_of(a), room_of(b)) if room is not None]
    room = rooms[0] if len(rooms) == 1 else rooms[0].joined(rooms[1])
    return [as_slots(w, value, room) for w, value in zip(writers, (a, b), strict=True)]


# -- operands


def sequence(value: Operand) -> Sequence_:
    if not isinstance(value, Items | Slots):
        raise Invalid(f"it takes a sequence, and was given {shown(value)}")
    return value


def tensor(value: Operand) -> Value:
    if value is None or isinstance(value, STRUCTURES):
        raise Invalid(f"it takes a tensor, and was given {shown(value)}")
    return value


def optional_tensor(operands: Sequence[Operand], index: int) -> Value | None:
    value = operands[index] if index < len(operands) else None
    return None if value is None else tensor(value)


def shown(value: Operand) -> str:
    match value:
        case None:
            return "nothing"
        case Items():
            return f"a sequence of {len(value.parts)} tensors of {value.dtype}"
        case Slots():
            return f"a sequence of up to {value.room.count} tensors of {value.dtype}"
        case Maybe():
            return "an optional value"
    return str(value.type)


WRITERS: dict[str, Callable[[Writer, Attributes, Sequence[Operand]], list[Made]]] = {
    "SequenceEmpty": sequence_empty,
    "SequenceConstruct": sequence_construct,
    "SequenceInsert": sequence_insert,
    "SequenceErase": sequence_erase,
    "SequenceAt": sequence_at,
    "SequenceLength": sequence_length,
    "ConcatFromSequence": concat_from_sequence,
    "SplitToSequence": split_to_sequence,
    "Optional": optional,
    "OptionalHasElement": optional_has_element,
    "OptionalGetElement": optional_get_element,
}
