"""Functions of the library count as code where the program would not have them without a kernel."""

from __future__ import annotations

import pytest

from mccompile.base.dtypes import f32
from mccompile.expr.ir import Expr, apply, operand
from mccompile.kernels.called_code import IN_VECTORS, OF_LIBRARY, called_code
from mccompile.kinds.map import Map
from mccompile.program.ir import Buffer, Call
from mccompile.targets import api as targets

X = operand(0, f32)


@pytest.mark.parametrize(
    ("expr", "isa", "target", "nbytes"),
    [
        (apply("erf", X), "c", "cortex-m55", OF_LIBRARY["erf"]),
        (apply("erf", X), "vec", "cortex-m55", IN_VECTORS),
        (apply("add", apply("exp", X), apply("exp", X)), "c", "cortex-m4", OF_LIBRARY["exp"]),  # once
        (apply("add", X, X), "c", "cortex-m4", 0),
        (apply("erf", X), "c", "generic", 0),  # a host has the library
    ],
)
def test_functions_count(expr: Expr, isa: str, target: str, nbytes: int) -> None:
    call = Call(Map(expr), (Buffer("x", f32, (10,)).whole(),), (Buffer("y", f32, (10,)).whole(),))
    assert called_code(call, isa, targets.load(target)) == nbytes
