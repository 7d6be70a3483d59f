"""Calls in the bodies of loops and branches are replaced, and the rest stays where it is."""

from dataclasses import replace

from mccompile.base.dtypes import f32
from mccompile.expr.ir import operand
from mccompile.kinds.map import Map
from mccompile.program.ir import Buffer, Call, If, Item
from mccompile.program.replace_calls import replace_calls


def _copy(name: str) -> Call:
    x, y = (Buffer(f"{name}_{end}", f32, (4,)).whole() for end in "xy")
    return Call(Map(operand(0, f32)), (x,), (y,))


def test_calls_of_branches_are_replaced_in_order() -> None:
    before, inner, after = _copy("before"), _copy("inner"), _copy("after")
    branch = If(Buffer("c", f32, ()).whole(), [inner], [])
    body: list[Item] = [before, branch, after]
    replace_calls(body, lambda call: [call] if call is before else [call, replace(call)])
    assert body[:2] == [before, branch] and len(body) == 4 and body[2] is after
    assert len(branch.then) == 2 and branch.then[0] is inner and branch.otherwise == []
