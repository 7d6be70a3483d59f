"""A byte that is read after somebody else has written it is told, whoever decided that the two share it."""

from __future__ import annotations

import pytest

from mccompile.kernels.registry import Registry
from mccompile.passes.memory.liveness import blocks_of, liveness
from mccompile.passes.memory.sharing import sharing_problems
from mccompile.program.text import read
from mccompile.targets import api as targets

KERNELS = Registry.load()
MAP = 'kernel "map/any_strided_loops__c"'
TOP_K = 'kernel "top_k/any_strided_heap__c"'


def problems(text: str, keep_inputs: bool = False, **places: int) -> list[str]:
    """What is wrong where buffers lie at these bytes; those that are not named overlap as the text says, and lie far
    from all others."""
    lines = [line.strip() for line in text.replace("NEG", "Map(expr=@neg(x0.f32))").splitlines()]
    program = read("\n".join(line + (f" {MAP}" if line.startswith("call Map") else "") for line in lines), {})
    target = targets.load("generic")
    blocks, owners = blocks_of(liveness(program, keep_inputs), target.align)
    starts = [4096 * (1 + number) for number in range(len(blocks))]
    found = {buffer: ("arena", starts[block] + shift) for buffer, (block, shift) in owners.items()}
    found |= {buffer: ("arena", places[buffer.name]) for buffer in found if buffer.name in places}
    return sharing_problems(program, found, KERNELS, target, keep_inputs)


CHAIN = """program "p" {
  input "x" %x: f32[2,2]
  buffer %a: f32[2,2] over %x at 0
  buffer %y: f32[2,2]
  call NEG (%x) -> (%a)
  call NEG (%a) -> (%y)
  output "y" %y
}
"""
LOOP = """program "p" {
  input "x" %x: f32[4]
  input "z" %z: f32[4]
  buffer %now: f32[4]
  buffer %t: f32[4]
  buffer %next: f32[4]
  buffer %last: f32[4]
  call NEG (%x) -> (%now)
  loop trip to 4 trips 5 carry %now, %next, %last {
    call NEG (%now) -> (%t)
    call Map(expr=@add(x0.f32, x1.f32)) (%t, %z) -> (%next)
  }
  output "y" %last
}
"""
BRANCHES = """program "p" {
  input "x" %x: f32[4]
  input "flag" %flag: bool[]
  buffer %y: f32[4]
  buffer %t: f32[4]
  buffer %z: f32[4]
  if %flag {
    call NEG (%x) -> (%y)
  } else {
    call NEG (%x) -> (%t)
    call NEG (%t) -> (%y)
  }
  call NEG (%x) -> (%z)
  output "y" %y
  output "z" %z
}
"""
STATE = """program "p" {
  state "s" = "t"
  input "s" %s: f32[4]
  buffer %t: f32[4]
  buffer %y: f32[4]
  call NEG (%s) -> (%t)
  call NEG (%s) -> (%y)
  output "t" %t
  output "y" %y
}
"""


def test_an_elementwise_chain_may_run_in_one_place() -> None:
    assert not problems(CHAIN)
    assert not problems(CHAIN.replace("%y: f32[2,2]", "%y: f32[2,2] over %a at 0"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (CHAIN.replace("(%a) -> (%y)", "(%x) -> (%y)"), "reads %x"),
        (CHAIN.replace('output "y"', 'output "x" %x\noutput "y"'), "output 'x' is read from %x"),
        (CHAIN.replace('output "y"', 'output "x" %x[2,1 by 2,1 at 1]\noutput "y"'), "output 'x' is read from %x"),
        (CHAIN.replace("(%x)", "(%x[2,2 by 1,2 at 0])"), "which its kernel does not allow"),
        (CHAIN.replace("at 0", "at 4", 1).replace("x: f32[2,2]", "x: f32[3,2]").replace(
            "(%x)", "(%x[2,2 by 2,1 at 0])"), "which its kernel does not allow"),
    ],
)  # fmt: skip
def test_what_is_overwritten_is_not_read_after_that(text: str, told: str) -> None:
    assert told in str(problems(text))


def test_an_input_that_is_kept_is_not_overwritten() -> None:
    assert problems(CHAIN, keep_inputs=True) == ["input 'x' keeps %x, which is overwritten"]


def test_what_lives_at_one_time_lies_apart() -> None:
    text = CHAIN.replace(" over %x at 0", "").replace('output "y"', 'output "a" %a\noutput "y"')
    assert not problems(text, a=0, y=16)
    assert "output 'a' is read from %a" in str(problems(text, a=0, y=12))
    assert "its kernel does not allow" in str(problems(text, x=0, a=4))


def test_inputs_lie_apart() -> None:
    assert "a run finds %x, which is overwritten" in problems(LOOP, x=0, z=8)


def test_two_results_of_a_call_lie_apart() -> None:
    text = f"""program "p" {{
  input "x" %x: f32[4]
  buffer %v: f32[2]
  buffer %i: i64[2]
  call TopK(axis=0, k=2, largest=true) (%x) -> (%v, %i) {TOP_K}
  output "v" %v
  output "i" %i
}}
"""
    assert not problems(text, v=0, i=8)
    assert "writes twice %v" in str(problems(text, v=0, i=0))


def test_what_lies_between_other_elements_is_its_own() -> None:
    text = """program "p" {
  input "x" %x: f32[2,4]
  buffer %a: f32[2,4]
  buffer %b: f32[5] over %a at AT
  buffer %y: f32[2,1]
  call NEG (%x) -> (%a)
  call NEG (%x[2,1 by 4,1 at 3]) -> (%b[2,1 by 4,1 at 0])
  call Map(expr=@add(x0.f32, x1.f32)) (%a[2,1 by 4,1 at 1], %b[2,1 by 4,1 at 0]) -> (%y)
  output "y" %y
}
"""
    assert not problems(text.replace("AT", "8"))
    assert "reads %a" in str(problems(text.replace("AT", "4")))


@pytest.mark.parametrize("trips", [1, 2, 3, 4, 5])
def test_what_a_loop_carries_changes_places(trips: int) -> None:
    """A value that is written while the old one is read lies elsewhere in every trip."""
    text = LOOP.replace("trips 5", f"trips {trips}").replace("to 4", f"to {trips - 1}")
    assert not problems(text)
    assert not problems(text, t=0, next=0)
    late = text.replace("(%t, %z)", "(%t, %now)")
    assert not problems(late)
    assert "reads %now" in str(problems(late, now=0, t=0))


def test_what_a_loop_reads_in_every_trip_is_not_overwritten_in_one() -> None:
    assert not problems(LOOP, x=0, t=0)
    assert "reads %z" in str(problems(LOOP, z=0, t=0))
    assert "reads %z" in str(problems(LOOP, z=0, next=0))


@pytest.mark.parametrize("offset", ["((trip + 2) % (4))", "((trip) // (2))"])
def test_a_loop_reads_elements_that_its_counter_chooses(offset: str) -> None:
    """Offsets that do not grow by the same in each trip stay within what they show."""
    text = LOOP.replace("(%t, %z)", f"(%t, %z[4 by 0 at {{{offset}}}])")
    assert not problems(text, z=0, t=16)
    assert "reads %z" in str(problems(text, z=0, t=8))


def test_a_result_that_is_written_at_the_end_lies_over_rings_that_its_kernel_does_not_read() -> None:
    window = "kernel=(3, 4), strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), space=(1, 1)"
    pool = f'Pool(algorithm="sum", {window}, accumulator=i32, epilogue=@to.i8(x0.i32))'
    ring, negated = "[1,2,3,4 by 0,4,8,1 at 0 lines 1]", "call Map(expr=@neg(x0.i8))"
    text = f"""program "p" {{
  input "x" %x: i8[1,2,3,4]
  buffer %a: i8[1,1,2,4]
  buffer %b: i8[1,1,2,4]
  buffer %y: i8[1,2,1,1]
  buffer %sums: u8[8]
  rows from "y" {{
    stage 3 by 1 {negated} (%x) -> (%a{ring}) {MAP} rows 2
    stage 3 by 1 pull 0 to 1, 0 {negated} (%a{ring}) -> (%b{ring}) {MAP} rows 2
    stage 3 by 1 pull 1 to 1, 0 call {pool} (%b{ring}) -> (%y) kernel "pool/any_strided_global__c" scratch %sums rows 2
  }}
  output "y" %y
}}
"""
    assert not problems(text, a=0, y=0)
    assert "has its result over %b" in str(problems(text, b=0, y=0))


def test_what_one_branch_overwrites_is_not_read_after_both() -> None:
    assert not problems(BRANCHES)
    assert "reads %x" in str(problems(BRANCHES, x=0, t=0))
    assert "reads %x" in str(problems(BRANCHES, x=0, y=0))


def test_a_state_is_written_over_the_old_one_only_when_that_is_not_read_any_more() -> None:
    assert not problems(STATE)
    assert "reads %s" in str(problems(STATE.replace("t: f32[4]", "t: f32[4] over %s at 0")))
    last = STATE.replace("t: f32[4]", "t: f32[4] over %s at 0").replace("(%s) -> (%y)", "(%t) -> (%y)")
    assert not problems(last)


def test_an_output_does_not_show_a_state_that_is_brought_to_its_place_before_it_is_read() -> None:
    found = problems(STATE.replace('"y" %y', '"y" %s[2 by 1 at 1]'))
    assert found == ["output 'y' is read from %s, which is overwritten"]
