"""Graphs in attributes, sequences and optional values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import NodeSite, NoWitness, judges

_MOST_TRIPS = 100_000


@judges("If")
def if_(at: NodeSite) -> tuple[Any, ...]:
    return tuple(at.run(at.attr("then_branch" if bool(np.asarray(at[0]).item()) else "else_branch"), []))


@judges("Loop")
def loop(at: NodeSite) -> tuple[Any, ...]:
    body = at.attr("body")
    most = int(np.asarray(at.operands[0]).item()) if at.has(0) else _MOST_TRIPS
    going = bool(np.asarray(at.operands[1]).item()) if at.has(1) else True
    carried, count = list(at.operands[2:]), len(at.operands) - 2
    scanned: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - count)]
    trip = 0
    while trip < most and going:
        made = at.run(body, [np.array(trip, np.int64), np.array(going), *carried])
        going, carried = bool(np.asarray(made[0]).item()), made[1 : 1 + count]
        for each, value in zip(scanned, made[1 + count :], strict=True):
            each.append(value)
        trip += 1
    if trip == _MOST_TRIPS:
        raise NoWitness("a loop that hardly ends")
    if scanned and not trip:
        raise NoWitness("a loop of no trips has no shape to scan")
    return (*carried, *(np.stack(each) for each in scanned))


@judges("Scan")
def scan(at: NodeSite) -> tuple[Any, ...]:
    if at.version < 9:
        raise NoWitness("Scan of batches")
    body, count = at.attr("body"), at.attr("num_scan_inputs")
    states, taken = list(at.operands[: len(at.operands) - count]), at.operands[len(at.operands) - count :]
    axes = at.attr("scan_input_axes") or [0] * count
    backward = at.attr("scan_input_directions") or [0] * count
    rows = [np.moveaxis(x, axis, 0) for x, axis in zip(taken, axes, strict=True)]
    rows = [x[::-1] if back else x for x, back in zip(rows, backward, strict=True)]
    scanned: list[list[Any]] = [[] for _ in range(len(body.outputs) - len(states))]
    for trip in range(len(rows[0])):
        made = at.run(body, [*states, *(x[trip] for x in rows)])
        states = made[: len(states)]
        for each, value in zip(scanned, made[len(states) :], strict=True):
            each.append(value)
    if not len(rows[0]) and scanned:
        raise NoWitness("a scan of nothing has no shape")
    out_axes = at.attr("scan_output_axes") or [0] * len(scanned)
    turned = at.attr("scan_output_directions") or [0] * len(scanned)
    stacked = [np.stack(each[::-1] if back else each) for each, back in zip(scanned, turned, strict=True)]
    return (*states, *(np.moveaxis(x, 0, axis) for x, axis in zip(stacked, out_axes, strict=True)))


# -- sequences are lists


@judges("SequenceConstruct")
def sequence_construct(at: NodeSite) -> list[Any]:
    return list(at.operands)


@judges("SequenceEmpty")
def sequence_empty(at: NodeSite) -> list[Any]:
    return []


def _position(at: NodeSite, index: int, default: int) -> int:
    return int(np.asarray(at[index]).item()) if at.has(index) else default


@judges("SequenceAt")
def sequence_at(at: NodeSite) -> Any:
    return at.operands[0][_position(at, 1, 0)]


@judges("SequenceInsert")
def sequence_insert(at: NodeSite) -> list[Any]:
    position = _position(at, 2, len(at.operands[0]))
    position += len(at.operands[0]) if position < 0 else 0
    return [*at.operands[0][:position], at.operands[1], *at.operands[0][position:]]


@judges("SequenceErase")
def sequence_erase(at: NodeSite) -> list[Any]:
    position = _position(at, 1, -1) % len(at.operands[0])
    return [each for n, each in enumerate(at.operands[0]) if n != position]


@judges("SequenceLength")
def sequence_length(at: NodeSite) -> Any:
    return np.array(len(at.operands[0]), np.int64)


@judges("ConcatFromSequence")
def concat_from_sequence(at: NodeSite) -> Any:
    join = np.stack if at.attr("new_axis", 0) else np.concatenate
    return join(at.operands[0], at.attr("axis"))


@judges("SplitToSequence")
def split_to_sequence(at: NodeSite) -> list[Any]:
    x, axis = at[0], at.attr("axis", 0)
    if not at.has(1):
        parts = np.split(x, x.shape[axis], axis)
        return parts if at.attr("keepdims", 1) else [part.squeeze(axis) for part in parts]
    sizes = at[1]
    ends = np.arange(int(sizes), x.shape[axis], int(sizes)) if sizes.ndim == 0 else np.cumsum(sizes)[:-1]
    return list(np.split(x, ends, axis))


@judges("SequenceMap")
def sequence_map(at: NodeSite) -> tuple[Any, ...]:
    body = at.attr("body")
    rows = []
    for n in range(len(at.operands[0])):
        rows.append(at.run(body, [each[n] if isinstance(each, list) else each for each in at.operands]))
    return tuple([row[k] for row in rows] for k in range(at.count))


@judges("Optional")
def optional(at: NodeSite) -> Any:
    return at.get(0)


@judges("OptionalGetElement")
def optional_get(at: NodeSite) -> Any:
    return at[0]


@judges("OptionalHasElement")
def optional_has(at: NodeSite) -> Any:
    return np.array(at.has(0))
