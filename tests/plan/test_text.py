"""The text of a plan: every item, with all places."""

from __future__ import annotations

from dataclasses import replace

from mccompile.base.dims import Symbol
from mccompile.plan.ir import ARENA, Address, Branch, Halt, Measured, Repeat, RowRegion, Stage, Swap
from mccompile.plan.text import show
from mccompile.program.pull import Pull
from tests import small_models
from tests.small_models import compiled


def test_every_item_is_printed() -> None:
    plan = compiled(small_models.conv()).plan
    step = next(plan.steps())
    flag, size = (replace(step.arguments[0], address=Address(ARENA, place)) for place in (4, 8))
    swap = Swap("p", "q", Address(ARENA, 0), Address(ARENA, 16), 16, Address(ARENA, 32), True)
    line = show(replace(plan, items=(step,))).splitlines()[-3].strip()
    items = (
        Branch(flag, (step,), (Halt("too far", (), "UNSUPPORTED"),), ()),
        Repeat("k", 3, flag, (swap,), (step,), ()),
        Repeat("k", size, None, (), (), ()),
        Measured(Symbol("n", 0, 5), size, ()),
        RowRegion((Stage(step, 6, 2, (Pull(1, 2, 3),)), Stage(step, 6, 1, ())), ()),
    )
    text = show(replace(plan, items=items))
    assert line == (
        "conv_conv_3x3s1_6x6x2_4(y=arena+576:f32[1,4,6,6], x=arena+0:f32[1,2,6,6], w=blob+0:f32[4,2,3,3],"
        " e0=blob+320:f32[1,4,6,6]) from c1/Conv + r1/Relu"
    )
    assert (
        text[text.index("  if") : text.index("  output")]
        == f"""  if arena+4 {{
    {line}
  }} else {{
    halt: too far
  }}
  repeat k up to 3 while arena+4 swap p arena+0 with q arena+16 last arena+32 {{
    {line}
  }}
  repeat k up to arena+8 {{
  }}
  measure n arena+8
  rows {{
    6 by 2 pull 1 to 2, 3: {line}
    6 by 1: {line}
  }}
"""
    )
    assert text.startswith(f"plan 'conv' for {plan.target}: arena {plan.arena_bytes} (bound {plan.arena_bound}), blob ")
    assert text.endswith("\n}\n")
