"""What it takes to move elements, for the models of kernels that do little else: copies, maps, poolings.

Where a core has caches and vectors, such a kernel takes as long as its bytes need from the cache that holds them, or as
its instructions, if these take longer. Those of plain C are counted one by one. Cores without either move an element
after the other, so their models count elements (`has_traffic` says no).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.dims import upper
from ..expr.ir import Apply, Cast, Expr, walk
from ..kinds.normalize import Normalize
from ..program.ir import Call, View
from ..targets.api import Target
from .loops import memory_order, nest
from .vector.vector_loops import SHORTEST
from .vector.vector_tiles import SECOND_LEVEL

WIDEST = 16  # lanes of vectors of 64 bytes
AROUND = 6  # instructions of a loop around runs or vectors: the counter, where each operand lies, the branch
# fmt: off
OPERATIONS = {  # in vectors; divisions count as 8
    "div": 8, "sqrt": 8, "exp": 16, "log": 16, "expm1": 20, "log1p": 20, "tanh": 20, "erf": 24, "sin": 40, "cos": 40,
    "tan": 60, "asin": 24, "acos": 24, "atan": 24, "sinh": 50, "cosh": 50, "asinh": 90, "acosh": 90, "atanh": 70,
    "pow": 80, "mod": 28, "fmod": 20,
}
# fmt: on
COPIED = 0.5  # what an element takes that is only loaded and stored
PER_ELEMENT = 12  # instructions in the time of an element
ONE = 4  # instructions of a loop around one element
IN_HARDWARE = ("div", "sqrt")
REQUANTIZED, OF_REQUANTIZED = 5, 0.12  # operations that make 8 bits of a sum, and what one more takes of theirs
LIBRARY = 4  # times that for a function of the C library, which computes one number

MEASURES = {"softmax": ("exp", "div"), "log_softmax": ("exp",), "l1": ("div",), "l2": ("div",)}  # on each element


def has_traffic(target: Target) -> bool:
    return "vec" in target.isas and target.hosted


def bytes_touched(view: View, target: Target, axis: int | None = None, at_once: int = 1) -> int:
    """Of the lines that a view reads or writes; what repeats counts once. Along `axis`, the innermost, elements may lie
    so that their lines push each other out before their neighbours are used: then every access moves a line, of
    `at_once` elements."""
    machine, shape = target.machine, [upper(dim) for dim in view.shape]
    strides = [abs(upper(stride)) for stride in view.strides]
    steps = [(step, size) for step, size in zip(strides, shape, strict=True) if step and size > 1]
    if 0 in shape:
        return 0
    count = math.prod(size for _, size in steps)
    if axis is not None:
        step = view.buffer.dtype.nbytes(strides[axis])
        sets = machine.sets // (1 if step % machine.line else math.gcd(machine.sets, step // machine.line))
        if step > machine.line and shape[axis] > sets * machine.ways:
            return count // at_once * machine.line
    nearest = min((step for step, _ in steps), default=1)
    span = 1 + sum(step * (size - 1) for step, size in steps)
    return view.buffer.dtype.nbytes(max(count, min(count * nearest, span)))


def traffic(views: Sequence[View], target: Target, axis: int | None = None, at_once: int = 1) -> float:
    """Cycles that the bytes of views take on their way, at least."""
    return bytes_cycles(sum(bytes_touched(view, target, axis, at_once) for view in views), target)


def bytes_cycles(nbytes: int, target: Target) -> float:
    machine = target.machine
    if nbytes <= machine.line * machine.sets * machine.ways:
        return nbytes / (target.vector_bytes * machine.stores)
    return min(nbytes, SECOND_LEVEL) / machine.from_second + max(0, nbytes - SECOND_LEVEL) / machine.from_third


def innermost(call: Call) -> int | None:
    """The axis along which a result's elements are made one after the other."""
    order = [axis for axis in memory_order(call.outs[0]) if call.outs[0].shape[axis] != 1]
    return order[-1] if order else None


def moved(to: View, source: View, target: Target) -> float:
    """Cycles of the instructions that copy one view to another: runs that lie together on both sides go as vectors."""
    order = memory_order(to)
    loops = nest([source.shape[axis] for axis in order], [to.permuted(order), source.permuted(order)])
    count, machine = upper(to.type.count), target.machine
    if not loops.loops or any(strides[-1] != 1 for strides in loops.strides):
        return count * max((AROUND / 2 + 2) / machine.issue, 1 / machine.stores)
    run = loops.loops[-1].extent
    vectors = -(-to.buffer.dtype.nbytes(run) // target.vector_bytes)
    return count / max(run, 1) * (2 * AROUND / machine.issue + vectors / machine.stores)


def copied(to: View, source: View, target: Target) -> float:
    """The same of a core without caches: runs go by words."""
    order = memory_order(to)
    loops = nest([source.shape[axis] for axis in order], [to.permuted(order), source.permuted(order)])
    count, machine = upper(to.type.count), target.machine
    if not loops.loops or any(strides[-1] != 1 for strides in loops.strides):
        return count * COPIED * machine.element
    run = max(loops.loops[-1].extent, 1)
    return count / run * (machine.copied_run + to.buffer.dtype.nbytes(run) / 4)


def elementwise(call: Call, target: Target) -> float:
    """Cycles of a loop over the elements of a result on a core without caches; what all have in common is loaded and
    computed once."""
    varying = sum(any(view.strides) for view in call.ins)
    nodes = (node for expr in call.kind.expressions() for node in set(walk(expr)) if isinstance(node, Apply | Cast))
    computed = sum(_instructions(node.function) if isinstance(node, Apply) else 1 for node in nodes)
    each = (ONE + varying + 1 + computed) / PER_ELEMENT
    return upper(call.outs[0].type.count) * each * target.machine.element


def _instructions(function: str) -> int:
    return OPERATIONS.get(function, 1) * (1 if function in IN_HARDWARE else LIBRARY if function in OPERATIONS else 1)


def of_results(call: Call, target: Target) -> float:
    """Cycles of what becomes of sums in plain C. That they are requantized is in `result` of the machine, what comes
    behind it, such as a residual, is not."""
    computed = sum(isinstance(node, Apply) for expr in call.kind.expressions() for node in set(walk(expr)))
    more = OF_REQUANTIZED * max(computed - REQUANTIZED, 0)
    rounded = target.machine.element * (has_traffic(target) and call.outs[0].buffer.dtype.is_narrow_float)
    return upper(call.outs[0].type.count) * (target.machine.result * (1 + more) + rounded)


def operations(expr: Expr | None) -> int:
    """Instructions that an expression takes in vectors."""
    nodes = () if expr is None else set(walk(expr))
    casts = sum(isinstance(node, Cast) for node in nodes)
    return casts + sum(OPERATIONS.get(node.function, 1) for node in nodes if isinstance(node, Apply))


def functions_called(call: Call) -> int:
    """Instructions that the expressions of an element take in plain C."""
    nodes = (node for expr in call.kind.expressions() for node in set(walk(expr)) if isinstance(node, Apply))
    return sum(LIBRARY * OPERATIONS[node.function] if node.function in OPERATIONS else 1 for node in nodes)


def one_by_one(call: Call, target: Target) -> float:
    """Cycles of a loop over the elements of a result in plain C. Compilers that have vectors put elements that lie
    apart into them one by one."""
    machine = target.machine
    instructions = AROUND / 2 + len(call.ins) + 1 + functions_called(call)
    cycles = max(instructions / machine.issue, len(call.ins) / machine.loads, 1 / machine.stores)
    out, order = call.outs[0], memory_order(call.outs[0])
    found = nest([out.shape[axis] for axis in order], [view.permuted(order) for view in (out, *call.ins)])
    loops = found.loops
    row = loops[-1].extent if loops else 0
    if loops and has_traffic(target):
        cycles += sum(steps[-1] not in (0, 1) for steps in found.strides[1:]) / machine.stores
    around = 2 * AROUND / machine.issue / row if row >= SHORTEST else 0  # shorter rows are unrolled
    return max(upper(out.type.count) * (cycles + around), traffic((out, *call.ins), target, innermost(call)))


def in_vectors(call: Call, rows: int, vectors: int, lanes: int, target: Target, more: float = 0.0) -> float:
    """Cycles of rows of vectors of a result: as many of them in each row, with the expression on each. There may be
    `more` to be done in each row."""
    cycles = rows * (2 * AROUND / target.machine.issue + vectors * each_vector(call, lanes, target) + more)
    return max(cycles, traffic((*call.outs, *call.ins), target, innermost(call), lanes))


def each_vector(call: Call, lanes: int, target: Target, more: int = 0) -> float:
    """Cycles of a vector of a result: loads, expressions and `more` operations, a store."""
    machine = target.machine
    registers = max(lanes * 4 // target.option("register_bytes", max(target.vector_bytes, 1)), 1)
    computed = (more + sum(map(operations, call.kind.expressions()))) / fmas_of(lanes, target)
    return registers * max(loads_of(len(call.ins), lanes, target), computed, 1 / machine.stores)


def loads_of(vectors: int, lanes: int, target: Target) -> float:
    """Cycles of loading so many vectors."""
    return vectors * (2 if lanes == WIDEST else 1) / target.machine.loads


def fmas_of(lanes: int, target: Target) -> float:
    """Vectors computed with in a cycle."""
    return target.machine.widest_fmas if lanes == WIDEST else target.machine.fmas


def normalized(call: Call, rows: int, vectors: int, lanes: int, apart: int, target: Target) -> float:
    """Cycles of normalizing rows of vectors: two passes of sums that wait for each other, and one for the result; of
    operands and results that lie apart, elements move one by one along the last axis that is normalized."""
    machine, count = target.machine, upper(call.ins[0].type.count)
    of_measure = sum(OPERATIONS[name] for name in MEASURES.get(call.of(Normalize).measure, ()))
    each = 2 * machine.latency + each_vector(call, lanes, target, of_measure)
    axis = max(call.of(Normalize).axes, key=lambda axis: -abs(upper(call.ins[0].strides[axis])))
    lines = sum(bytes_touched(view, target, axis) for view in call.ins)
    lines += sum(2 * bytes_touched(view, target, axis) for view in call.outs)
    computed = rows * (4 * machine.latency + vectors * each) + count * apart / machine.stores
    return max(computed, bytes_cycles(lines, target))
