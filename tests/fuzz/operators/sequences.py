"""Sequences and optional values inside a graph. Such values have no arrays, so each maker writes a whole group."""

from __future__ import annotations

from onnx import helper

from ..builder import Builder, Value
from .registry import makes


def group(g: Builder, nodes: list[tuple[str, list[str], str, dict[str, object]]], used: list[Value]) -> Value | None:
    """Several nodes, the last of which makes a tensor."""
    from ..evaluate import Failed, run_nodes

    protos = [helper.make_node(op, ins, [out], **attributes) for op, ins, out, attributes in nodes]
    last = nodes[-1][2]
    try:
        arrays = tuple(
            run_nodes(protos, last, {v.name: v.arrays[number] for v in used}, g.opset) for number in range(g.sets)
        )
    except Failed:
        return None
    g.nodes += protos
    return g.add(Value(last, arrays, all(v.exact for v in used)))


def parts(g: Builder) -> list[Value]:
    x = g.any(("float32", "float32", "int32", "int64"), (1, 3))
    shapes = [array.shape for array in x.arrays]
    same = [v for v in g.values if v.dtype == x.dtype and [a.shape for a in v.arrays] == shapes and not v.last]
    return [x, *(g.pick(same) for _ in range(g.integer(0, 2)))]


@makes("SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "SequenceEmpty")
@makes("ConcatFromSequence")
def sequence(g: Builder, op: str) -> Value | None:
    found = parts(g)
    names = [v.name for v in found]
    nodes: list[tuple[str, list[str], str, dict[str, object]]] = []
    used, now, count = list(found), g.name("q"), len(found)
    if op == "SequenceEmpty":
        to = helper.np_dtype_to_tensor_dtype(found[0].arrays[0].dtype)
        nodes.append((op, [], now, {"dtype": to}))
        for name in names:
            nodes.append(("SequenceInsert", [now, name], after := g.name("q"), {}))
            now = after
    else:
        nodes.append(("SequenceConstruct", names, now, {}))
    if op == "SequenceInsert":
        place = g.constant(g.integer(-count, count))
        used.append(place)
        nodes.append((op, [now, g.pick(names), place.name], after := g.name("q"), {}))
        now, count = after, count + 1
    if op == "SequenceErase" and count > 1:
        place = g.constant(g.integer(-count, count - 1))
        used.append(place)
        nodes.append((op, [now, place.name], after := g.name("q"), {}))
        now, count = after, count - 1
    out = g.name()
    if op == "SequenceLength":
        nodes.append((op, [now], out, {}))
    elif op == "ConcatFromSequence":
        new = g.integer(0, 1)
        nodes.append((op, [now], out, {"axis": g.integer(0, found[0].rank - 1), "new_axis": new}))
    else:
        place = g.constant(g.integer(-count, count - 1))
        used.append(place)
        nodes.append(("SequenceAt", [now, place.name], out, {}))
    return group(g, nodes, used)


@makes("SequenceMap", opset=17)
def mapped(g: Builder, op: str) -> Value | None:
    """A body over each tensor, which may read one more that is the same for all."""
    found = parts(g)
    dtype, all_, done, out = (
        helper.np_dtype_to_tensor_dtype(found[0].arrays[0].dtype),
        g.name("q"),
        g.name("q"),
        g.name(),
    )
    more, place = ([g.leaf(found[0].dtype, ())] if g.maybe() else []), g.constant(g.integer(0, len(found) - 1))
    ins = [helper.make_tensor_value_info(name, dtype, None) for name in ("element", "same")[: 1 + len(more)]]
    node = helper.make_node("Add", [ins[0].name, ins[-1].name], ["sum"])
    body = helper.make_graph([node], "each", ins, [helper.make_tensor_value_info("sum", dtype, None)])
    nodes: list[tuple[str, list[str], str, dict[str, object]]] = [
        ("SequenceConstruct", [v.name for v in found], all_, {}),
        (op, [all_, *(v.name for v in more)], done, {"body": body}),
        ("SequenceAt", [done, place.name], out, {}),
    ]
    return group(g, nodes, [*found, *more, place])


@makes("SplitToSequence")
def split(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "int64"), (1, 3))
    axis = g.integer(0, x.rank - 1)
    if not x.is_fixed(axis) or not x.shape[axis]:
        return None
    place = g.constant(g.integer(0, x.shape[axis] - 1))
    q, out = g.name("q"), g.name()
    nodes: list[tuple[str, list[str], str, dict[str, object]]] = [
        (op, [x.name], q, {"axis": axis, "keepdims": g.integer(0, 1)}),
        ("SequenceAt", [q, place.name], out, {}),
    ]
    return group(g, nodes, [x, place])


@makes("Optional", "OptionalGetElement", "OptionalHasElement", opset=18)
def optional(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "int64"), (0, 3))
    q, out = g.name("q"), g.name()
    last = "OptionalGetElement" if op == "Optional" else op
    return group(g, [("Optional", [x.name], q, {}), (last, [q], out, {})], [x])
