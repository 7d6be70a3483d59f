"""What is written over what: exactly where bytes end, by regions of rows, by several workers, and in loops."""

from __future__ import annotations

import re

import pytest

from mccompile.kernels.registry import Registry
from mccompile.passes.memory.in_place import write_in_place
from mccompile.program.text import read, show
from mccompile.program.verify import verify
from mccompile.targets import api as targets

KERNELS = Registry.load()
MAP = 'kernel "map/any_strided_loops__c"'
POOL = 'kernel "pool/any_strided_global__c"'


def overlaps(text: str) -> dict[str, str]:
    """Buffer -> "over x at 0". NEG, ADD and NARROW stand for calls of Map."""
    text = text.replace("NEG", "Map(expr=@neg(x0.f32))").replace("ADD", "Map(expr=@add(x0.f32, x1.f32))")
    text = text.replace("NARROW", "Map(expr=@to.i8(x0.f32))")
    text = re.sub(r"(call Map.*? -> \([^)]*\))", rf"\1 {MAP}", text)
    program = read(text, {})
    verify(program, "reading")
    write_in_place(program, KERNELS, targets.load("generic"), keep_inputs=False)
    found = re.findall(r"buffer %(\w+): .*?(over %\w+ at -?\d+)", show(program))
    return {name: where.replace("%", "") for name, where in found}


HALF = """program "p" {
  input "x" %x: f32[12]
  buffer %half: f32[8]
  buffer %y: f32[4]
  call NEG (%x[8 by 1 at 4]) -> (%half)
  call NEG (%half[4 by 1 at READ]) -> (%y)
  output "h" %half[4 by 1 at KEPT]
  output "y" %y
}
"""


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(
    ("read", "kept", "place"), [(0, 4, "x at 16"), (0, 3, ""), (4, 0, "x at 32"), (4, 1, ""), (2, 0, ""), (2, 4, "")]
)
def test_a_result_lies_where_nothing_is_read_any_more(declared: bool, read: int, kept: int, place: str) -> None:
    text = HALF.replace("READ", str(read)).replace("KEPT", str(kept))
    text = text.replace("half: f32[8]", "half: f32[8] over %x at 16") if declared else text
    assert overlaps(text) == {"half": "over x at 16"} | ({"y": f"over {place}"} if place else {})


@pytest.mark.parametrize(("first", "second", "place"), [(0, 4, 0), (4, 0, 16), (0, 0, 0), (0, 2, None), (2, 0, None)])
def test_another_operand_there_is_the_same_or_apart(first: int, second: int, place: int | None) -> None:
    found = overlaps(f"""program "p" {{
  input "x" %x: f32[8]
  buffer %y: f32[4]
  call ADD (%x[4 by 1 at {first}], %x[4 by 1 at {second}]) -> (%y)
  output "y" %y
}}
""")
    assert found == ({} if place is None else {"y": f"over x at {place}"})


@pytest.mark.parametrize(("align", "at", "place"), [(1, 1, 4), (8, 1, None), (8, 2, 8), (16, 4, 16), (16, 6, None)])
def test_a_result_lies_where_it_is_aligned(align: int, at: int, place: int | None) -> None:
    found = overlaps(f"""program "p" {{
  input "x" %x: f32[12]
  buffer %y: f32[4] align {align} slack 0
  call NEG (%x[4 by 1 at {at}]) -> (%y)
  output "y" %y
}}
""")
    assert found == ({} if place is None else {"y": f"over x at {place}"})


def test_a_result_that_is_written_in_parts_lies_elsewhere() -> None:
    assert not overlaps("""program "p" {
  input "x" %x: f32[4]
  buffer %y: f32[4]
  call NEG (%x[2 by 1 at 2]) -> (%y[2 by 1 at 2])
  call NEG (%x[2 by 1 at 0]) -> (%y[2 by 1 at 0])
  output "y" %y
}
""")


SHARED = """program "p" {
  input "x" %x: f32[8,8]
  buffer %y: f32[8,8]
  call NEG (%x) -> (%y) rows 0 workers 2
  output "y" %y
}
"""


def test_workers_write_each_element_over_the_one_that_it_is_made_of() -> None:
    assert overlaps(SHARED) == {"y": "over x at 0"}
    narrow = SHARED.replace("%y: f32", "%y: i8").replace("NEG", "NARROW")
    assert overlaps(narrow) == {}
    assert overlaps(narrow.replace(" rows 0 workers 2", "")) == {"y": "over x at 0"}


RING = "%ring[1,2,8,4 by 0,4,8,1 at 0 lines 1]"
ROWS = f"""program "p" {{
  input "x" %x: f32[1,2,8,4]
  buffer %ring: f32[1,1,2,4]
  buffer %y: f32[1,2,8,4]
  buffer %z: f32[4]
  rows OVER {{
    stage 8 by 1 call NEG (%x) -> ({RING}) rows 2
    stage 8 by 1 pull 0 to 1, 0 call ADD ({RING}, %x) -> (%y) rows 2
  }}
  output "y" %y
}}
"""


@pytest.mark.parametrize(
    ("over", "place"), [("", ""), ("over %x", "0"), ("before %x by 0", "0"), ("before %x by 1", "-16"),
                        ("before %x by 16", "-16"), ("before %x by 17", "-32")]
)  # fmt: skip
def test_the_result_of_a_region_follows_what_is_read(over: str, place: str) -> None:
    assert overlaps(ROWS.replace("OVER", over)) == ({"y": f"over x at {place}"} if place else {})


@pytest.mark.parametrize(
    ("over", "kept", "place"),
    [("over %x", 0, ""), ("over %x", 60, ""), ("before %x by 17", 55, ""), ("before %x by 17", 56, "-32")],
)
def test_the_result_of_a_region_meets_nothing_that_is_read_later(over: str, kept: int, place: str) -> None:
    text = ROWS.replace("OVER", over).replace('output "y"', f'output "x" %x[4 by 1 at {kept}]\n  output "y"')
    assert overlaps(text) == ({"y": f"over x at {place}"} if place else {})


@pytest.mark.parametrize("over", ["over %x", "before %x by 0"])
def test_the_result_of_a_region_lies_over_nothing_that_it_reads_under_another_name(over: str) -> None:
    text = ROWS.replace("(%x) ->", "(%again) ->").replace(
        "  rows OVER", f"""  call NEG (%x) -> (%again) from "a"\n  rows {over}"""
    )
    assert "y" not in overlaps(
        text.replace("  buffer %ring", "  buffer %again: f32[1,2,8,4] over %x at 0\n  buffer %ring")
    )


STAGES = f"""program "p" {{
  input "x" %x: f32[1,2,8,4]
  buffer %ring: f32[1,1,2,4]
  buffer %next: f32[1,1,2,4]
  buffer %y: f32[1,2,8,4]
  rows {{
    stage 8 by 1 call NEG (%x) -> ({RING}) rows 2
    stage 8 by 1 OVER pull 0 to 1, 0 call ADD (%x, {RING}) -> ({RING.replace("ring", "next")}) rows 2
    stage 8 by 1 pull 1 to 1, 0 call NEG ({RING.replace("ring", "next")}) -> (%y) rows 2
  }}
  output "y" %y
}}
"""


def test_rows_lie_over_those_of_the_operand_that_the_stage_names() -> None:
    assert overlaps(STAGES.replace("OVER", "over 1")) == {"next": "over ring at 0"}
    assert overlaps(STAGES.replace("OVER", "over 0")) == {}
    assert overlaps(STAGES.replace("OVER", "")) == {}


MEAN = f"""program "p" {{
  input "x" %x: f32[1,2,8,4]
  buffer %ring: f32[1,1,2,4]
  buffer %y: TYPE[1,2,1,1]
  rows {{
    stage 8 by 1 call NEG (%x) -> ({RING}) rows 2
    stage 1 by 1 pull 0 to 8, 0 call SUM ({RING}) -> (%y) {POOL} rows 2
  }}
  output "y" %y
}}
"""
SUM = """Pool(algorithm="sum", kernel=(8, 4), strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), space=(1, 1),
 accumulator=f32, epilogue=@to.TYPE(x0.f32))"""


@pytest.mark.parametrize(("kept", "place"), [("", "over x at 0"), ('output "x" %x\n', "")])
def test_what_is_written_at_the_end_lies_over_what_is_read_no_more(kept: str, place: str) -> None:
    text = MEAN.replace("SUM", SUM).replace("TYPE", "i8").replace('output "y"', f'{kept}output "y"')
    assert overlaps(text) == ({"y": place} if place else {})


LOOP = """program "p" {
  input "x" %x: f32[4]
  input "go" %go: bool[]
  buffer %now: f32[4]
  buffer %inside: f32[4]
  buffer %t: f32[4]
  buffer %next: f32[4]
  buffer %last: f32[4]
  call NEG (%x) -> (%now)
  loop trip to 3 trips 4 carry %now, %next, %last {
    call NEG (%now) -> (%inside)
    call ADD (%now, %inside) -> (%next)
  }
  output "y" %last
}
"""


@pytest.mark.parametrize(
    ("trips", "last"),
    [("trips 4", "now"), ("trips 3", "next"), ("trips 4 while %go", "now"), ("trips 3 while %go", "now")],
)
def test_a_value_stays_where_the_last_trip_leaves_it(trips: str, last: str) -> None:
    found = overlaps(LOOP.replace("trips 4", trips))
    assert found == {"now": "over x at 0", "next": "over now at 0", "last": f"over {last} at 0"}


@pytest.mark.parametrize("read", ["now", "next"])
def test_what_a_trip_hands_on_is_not_written_over_what_it_reads_after_that(read: str) -> None:
    text = LOOP.replace("-> (%next)\n", f"-> (%next)\n    call NEG (%{read}) -> (%t)\n")
    assert "next" not in overlaps(text)


def test_what_lasts_longer_than_a_trip_shares_nothing_in_the_loop() -> None:
    """`a` comes from before, `o` is read after it; `t` and `u` live in a trip only."""
    found = overlaps("""program "p" {
  input "x" %x: f32[4]
  buffer %a: f32[4]
  buffer %t: f32[4]
  buffer %u: f32[4]
  buffer %o: f32[4]
  call NEG (%x) -> (%a)
  loop trip to 2 trips 3 {
    call NEG (%a) -> (%t)
    call NEG (%t) -> (%u)
    call NEG (%u) -> (%o)
  }
  output "o" %o
}
""")
    assert found == {"a": "over x at 0", "u": "over t at 0"}


@pytest.mark.parametrize(("first", "second", "place"), [(0, 4, "x at 0"), (8, 0, "x at 32"), (4, 0, ""), (6, 1, "")])
def test_another_operand_is_where_its_memory_lies(first: int, second: int, place: str) -> None:
    found = overlaps(f"""program "p" {{
  input "x" %x: f32[12]
  buffer %half: f32[8] over %x at 16
  buffer %y: f32[4]
  call NEG (%x[8 by 1 at 0]) -> (%half)
  call ADD (%x[4 by 1 at {first}], %half[4 by 1 at {second}]) -> (%y)
  output "y" %y
}}
""")
    assert found == {"half": "over x at 16"} | ({"y": f"over {place}"} if place else {})
