"""The code of functions that a kernel's expressions call, which the program would not have without it: those of the C
library, and the ones in vectors. Kernels count their own code; this comes on top, whichever kernel computes a call.

Hosts have the library in any case. Bytes are those of newlib on a Cortex-M, with what the functions call themselves.
"""

from __future__ import annotations

from ..expr.ir import Apply, walk
from ..program.ir import Call
from ..targets.api import Target

# fmt: off
OF_LIBRARY = {
    "exp": 700, "expm1": 700, "log": 600, "log1p": 700, "tanh": 900, "erf": 2000, "pow": 2200, "sin": 1500, "cos": 1500,
    "tan": 1700, "asin": 700, "acos": 700, "atan": 600, "sinh": 1500, "cosh": 1300, "asinh": 1500, "acosh": 1500,
    "atanh": 1000, "fmod": 400, "mod": 400,
}
# fmt: on
IN_VECTORS = 400


def called_code(call: Call, isa: str, target: Target) -> int:
    if target.hosted:
        return 0
    called = {node.function for expr in call.kind.expressions() for node in walk(expr) if isinstance(node, Apply)}
    return sum(IN_VECTORS if isa == "vec" else OF_LIBRARY[name] for name in called & OF_LIBRARY.keys())
