"""Products that learn as single calls: which ones, and what they read."""

from __future__ import annotations

import pytest

from mccompile.kernels.registry import Registry
from mccompile.passes.api import Context
from mccompile.passes.program.step_products import step_products
from mccompile.program.text import read, show
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from tests.passes.program.before_after import calls

MOVE = "epilogue=@sub(x1.f32, mul(x2.f32, x0.f32))"
HEAD = """program "p" {
  input "dy" %dy: f32[1,4,3,5]
  input "x" %x: f32[1,6,3,5]
  input "w" %w: f32[4,6]
  input "rate" %rate: f32[]
  state "w" = "v"
  buffer %v: f32[4,6]
  buffer %dx: f32[1,6,3,5]
"""
POINTS = "(strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), group=1, accumulator=f32)"
BACK = f"  call Conv{POINTS} (%dy, %w[6,4,1,1 by 1,6,1,1 at 0]) -> (%dx)\n"
WEIGHTS = (
    f"  call Gemm(accumulator=f32, {MOVE}) (%dy[4,15 by 15,1 at 0], %x[15,6 by 1,15 at 0], %w, "
    "%rate[4,6 by 0,0 at 0]) -> (%v)\n"
)
TURNED = (
    f"  call Gemm(accumulator=f32, {MOVE}) (%x[6,15 by 15,1 at 0], %dy[15,4 by 1,15 at 0], "
    "%w[6,4 by 1,6 at 0], %rate[6,4 by 0,0 at 0]) -> (%v[6,4 by 1,6 at 0])\n"
)
READ = "  call Map(expr=@abs(x0.f32)) (%v) -> (%z)\n"
ENDS = '  output "v" %v\n  output "dx" %dx\n}'


def stepped(text: str) -> list[str]:
    program = read(text, {})
    verify(program, "reading")
    program.body = step_products(program, Context(targets.load("generic"), Registry.load()))
    verify(program, "step_products")
    return calls(show(program))


@pytest.mark.parametrize("body", [WEIGHTS + BACK, BACK + WEIGHTS, TURNED + BACK])
def test_new_weights_and_the_gradient_of_x_are_one_call(body: str) -> None:
    (call,) = stepped(HEAD + body + ENDS)
    assert call.startswith("call ProductStep(") and "handed=0" in call
    operands = "(%dy[15,4 by 1,15 at 0], %x[15,6 by 1,15 at 0], %w, %w, %rate[4,6 by 0,0 at 0])"
    assert f"{operands} -> (%dx[15,6 by 1,15 at 0], %v)" in call


@pytest.mark.parametrize(("mask", "count"), [("x", 1), ("m", 2)])
def test_what_the_step_does_not_read_is_read_by_a_call_of_its_own(mask: str, count: int) -> None:
    """So that it need not be there with all of these."""
    head = HEAD.replace('  input "rate"', '  input "m" %m: f32[1,6,3,5]\n  input "rate"')
    back = BACK.replace("accumulator=f32)", "accumulator=f32, epilogue=@mul(x0.f32, x1.f32))")
    step, *others = stepped(head + WEIGHTS + back.replace("by 1,6,1,1 at 0])", f"by 1,6,1,1 at 0], %{mask})") + ENDS)
    assert step.startswith("call ProductStep(") and len(others) == count - 1
    assert ("%m" in step, any("%m" in other for other in others)) == (False, mask == "m")


@pytest.mark.parametrize(
    "text",
    [
        HEAD.replace('  state "w" = "v"\n', "") + WEIGHTS + BACK + ENDS,  # the new weights are a result
        (HEAD + WEIGHTS + BACK + ENDS).replace("%dy[4,15 by 15,1 at 0]", "%dy[4,15 by 0,1 at 0]"),  # of another dy
        (HEAD + WEIGHTS + BACK + READ + ENDS).replace("dx: f32[1,6,3,5]", "dx: f32[1,6,3,5]\n  buffer %z: f32[4,6]"),
    ],
)
def test_others_stay_apart(text: str) -> None:
    assert not any("ProductStep" in call for call in stepped(text))
