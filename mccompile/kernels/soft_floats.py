"""What operations on floats take on a core without an FPU, where each is a call of the library.

Kernels count products and elements; this comes on top, whichever kernel computes a call.
"""

from __future__ import annotations

from math import prod

from ..base.dims import upper
from ..expr.ir import Apply, Cast, walk
from ..kinds.pool import Pool
from ..program.ir import Call
from ..targets.api import Target
from .varying import has_fpu


def soft_floats(call: Call, target: Target) -> float:
    """Cycles of the library."""
    if has_fpu(target):
        return 0.0
    operations = 0
    for expr in call.kind.expressions():
        nodes = {node for node in walk(expr) if isinstance(node, Apply | Cast)}
        operations += sum(any(n.dtype.is_float for n in (node, *node.args)) for node in nodes)
    total = operations * upper(call.outs[0].type.count)
    if call.macs and call.ins[0].buffer.dtype.is_float:
        total += 2 * upper(call.macs)
    if isinstance(call.kind, Pool) and call.kind.accumulator.is_float:
        total += upper(call.outs[0].type.count) * prod(call.kind.kernel)
    return total * target.machine.soft_float
