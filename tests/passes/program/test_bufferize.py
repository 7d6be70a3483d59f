"""bufferize, before and after: which buffer lies over or inside which."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from mccompile.driver import Options
from mccompile.kinds.concat import Concat
from mccompile.passes.api import Context
from mccompile.passes.memory.join_parts import Joiner
from mccompile.passes.program import bufferize
from mccompile.program.ir import Program
from mccompile.program.text import show
from tests.passes.program.before_after import after, calls
from tests.small_models import branches, compiled, conv

MAP, CONCAT = 'kernel "map/any_strided_loops__c"', 'kernel "concat/any_strided__c"'


def overlaps(text: str, keep_inputs: bool = False) -> dict[str, str]:
    """Buffer -> "over x at 0"."""
    bound = after("bufferize", text, keep_inputs)
    found = re.findall(r"buffer %(\w+): \S+ (?:align \d+ slack \d+ )?((?:over|part) %\w+ at \d+)", bound)
    return {name: where.replace("%", "") for name, where in found}


CHAIN = f"""program "p" {{
  input "x" %x: f32[4]
  buffer %a: f32[4]
  buffer %y: f32[4]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) {MAP}
  call Map(expr=@abs(x0.f32)) (%a) -> (%y) {MAP}
  output "y" %y
}}
"""


def test_an_elementwise_chain_runs_in_one_place() -> None:
    assert overlaps(CHAIN) == {"a": "over x at 0", "y": "over x at 0"}


def test_a_kept_input_is_not_written_over() -> None:
    assert overlaps(CHAIN, keep_inputs=True) == {"y": "over a at 0"}


def test_what_is_read_later_is_not_written_over() -> None:
    text = CHAIN.replace("abs(x0.f32)) (%a)", "add(x0.f32, x1.f32)) (%x, %a)")
    assert overlaps(text.replace('output "y"', 'output "a" %a\n  output "y"')) == {"y": "over x at 0"}


def test_a_transposed_operand_is_not_written_over() -> None:
    assert not overlaps(f"""program "p" {{
  input "x" %x: f32[2,3]
  buffer %y: f32[3,2]
  call Map(expr=@neg(x0.f32)) (%x[3,2 by 1,3 at 0]) -> (%y) {MAP}
  output "y" %y
}}
""")


def test_an_operand_seen_twice_in_different_ways_is_not_written_over() -> None:
    assert not overlaps(f"""program "p" {{
  input "x" %x: f32[3,3]
  buffer %y: f32[3,3]
  call Map(expr=@add(x0.f32, x1.f32)) (%x, %x[3,3 by 1,3 at 0]) -> (%y) {MAP}
  output "y" %y
}}
""")


def test_a_narrower_result_lies_over_its_operand_a_wider_one_does_not() -> None:
    text = f"""program "p" {{
  input "x" %x: FROM[4]
  buffer %y: TO[4]
  call Map(expr=@to.TO(x0.FROM)) (%x) -> (%y) {MAP}
  output "y" %y
}}
"""
    assert overlaps(text.replace("FROM", "f32").replace("TO", "i8")) == {"y": "over x at 0"}
    assert not overlaps(text.replace("FROM", "i8").replace("TO", "f32"))


def test_parts_of_a_concat_are_made_in_place_and_the_rest_is_copied() -> None:
    text = f"""program "p" {{
  input "x" %x: f32[1,2]
  buffer %a: f32[1,2]
  buffer %b: f32[1,3]
  buffer %y: f32[1,9]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) {MAP}
  call Map(expr=f32(1.0)) () -> (%b) {MAP}
  call Concat(axis=1) (%a, %x, %b, %x) -> (%y) {CONCAT}
  output "y" %y
}}
""".replace("expr=f32(1.0)", "expr=@f32(1.0)")
    assert overlaps(text) == {"a": "part y at 0", "b": "part y at 16"}
    assert calls(after("bufferize", text))[2:] == [
        f"call Concat(axis=1) (%x) -> (%y[1,2 by 9,1 at 2]) {CONCAT}",
        f"call Concat(axis=1) (%x) -> (%y[1,2 by 9,1 at 7]) {CONCAT}",
    ]


def test_a_part_that_is_needed_twice_is_copied() -> None:
    assert overlaps(f"""program "p" {{
  input "x" %x: f32[2]
  buffer %a: f32[2]
  buffer %y: f32[4]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) {MAP}
  call Concat(axis=0) (%a, %a) -> (%y) {CONCAT}
  output "y" %y
}}
""") == {"a": "over x at 0"}


def test_a_part_between_other_elements_is_made_there() -> None:
    text = f"""program "p" {{
  input "x" %x: f32[2,1]
  buffer %a: f32[2,3]
  buffer %y: f32[2,4]
  call Map(expr=@neg(x0.f32)) (%x[2,3 by 1,0 at 0]) -> (%a) {MAP}
  call Concat(axis=1) (%a, %x) -> (%y) {CONCAT}
  output "y" %y
}}
"""
    assert calls(after("bufferize", text)) == [
        f"call Map(expr=@neg(x0.f32)) (%x[2,3 by 1,0 at 0]) -> (%y[2,3 by 4,1 at 0]) {MAP}",
        f"call Concat(axis=1) (%x) -> (%y[2,1 by 4,1 at 3]) {CONCAT}",
    ]


def test_padding_is_written_around_what_is_made_in_place() -> None:
    text = f"""program "p" {{
  input "x" %x: f32[4]
  buffer %a: f32[4]
  buffer %y: f32[7]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) {MAP}
  call Pad(before=(1,), after=(2,), mode="constant") (%a) -> (%y) kernel "pad/any_strided_segments__c"
  output "y" %y
}}
"""
    assert calls(after("bufferize", text))[1:] == [
        f"call Map(expr=@f32(0.0)) () -> (%y[1 by 1 at 0]) {MAP}",
        f"call Map(expr=@f32(0.0)) () -> (%y[2 by 1 at 5]) {MAP}",
    ]


IN_ORDER = f"call Map(expr=@neg(x0.f32)) (%x) -> (%y) {MAP}"
FROM_THE_END = f"call Map(expr=@abs(x0.f32)) (%x[4 by -1 at 3]) -> (%y) {MAP}"


@pytest.mark.parametrize(("first", "second"), [(IN_ORDER, FROM_THE_END), (FROM_THE_END, IN_ORDER)])
def test_both_branches_keep_what_the_other_reads(first: str, second: str) -> None:
    """The result of both lies where it suits both: over the operand one would read what the other has written."""
    assert (
        overlaps(f"""program "p" {{
  input "x" %x: f32[4]
  input "flag" %flag: bool[]
  buffer %y: f32[4]
  if %flag {{
    {first}
  }} else {{
    {second}
  }}
  output "y" %y
}}
""")
        == {}
    )


def test_a_result_and_what_is_read_past_its_end_fit_into_what_it_lies_over() -> None:
    text = f"""program "p" {{
  input "x" %x: f32[8]
  buffer %y: f32[4] align 1 slack 16
  call Map(expr=@neg(x0.f32)) (%x[4 by 1 at AT]) -> (%y) {MAP}
  output "y" %y
}}
"""
    assert overlaps(text.replace("AT", "0")) == {"y": "over x at 0"}
    assert overlaps(text.replace("AT", "4")) == {}


def test_an_operand_of_a_concat_that_is_not_shown_whole_lies_elsewhere() -> None:
    found = overlaps(f"""program "p" {{
  input "x" %x: f32[4]
  buffer %a: f32[6]
  buffer %c: f32[8]
  call Map(expr=@neg(x0.f32)) (%x[6 by 0 at 0]) -> (%a) {MAP}
  call Concat(axis=0) (%x, %a[4 by 1 at 1]) -> (%c) {CONCAT}
  output "c" %c
}}
""")
    assert "a" not in found


LOOP = """program "p" {{
  input "x" %x: f32[4]
  buffer %now: f32[4]
  buffer %inside: f32[4]
  buffer %next: f32[4]
  buffer %last: f32[4]
  call Map(expr=@neg(x0.f32)) (%x) -> (%now) {map}
  loop trip to 2 trips 3 carry %now, %next, %last {{
    call Map(expr=@abs(x0.f32)) (%now) -> (%inside) {map}
    call Map(expr=@add(x0.f32, x1.f32)) (%inside, {other}) -> (%next) {map}
  }}
  output "y" %last
}}
"""


def test_a_loop_takes_turns_with_two_buffers_if_the_old_value_is_needed_to_the_end() -> None:
    found = overlaps(LOOP.format(map=MAP, other="%inside"))
    assert found == {"now": "over x at 0", "last": "over next at 0"}


def test_a_loop_needs_one_buffer_where_the_new_value_is_written_over_the_old() -> None:
    found = overlaps(LOOP.format(map=MAP, other="%now"))
    assert found == {"now": "over x at 0", "next": "over now at 0", "last": "over next at 0"}


def test_what_a_loop_reads_in_every_trip_is_not_written_over_in_one() -> None:
    text = LOOP.format(map=MAP, other="%x").replace("(%x) -> (%now)", "(%x[4 by 1 at 0]) -> (%now)")
    assert "now" not in overlaps(text)


def test_what_the_last_call_of_a_loop_reads_is_needed_in_the_next_trip() -> None:
    found = overlaps(f"""program "p" {{
  input "x" %x: f32[4]
  buffer %now: f32[4]
  buffer %next: f32[4]
  buffer %last: f32[4]
  buffer %t: f32[4]
  call Map(expr=@f32(0.0)) () -> (%now) {MAP}
  loop trip to 2 trips 3 carry %now, %next, %last {{
    call Map(expr=@add(x0.f32, x1.f32)) (%now, %x) -> (%next) {MAP}
    call Map(expr=@neg(x0.f32)) (%x) -> (%t) {MAP}
  }}
  output "y" %last
}}
""")
    assert "t" not in found


def test_a_result_is_laid_into_a_dead_part_of_an_operand() -> None:
    gemm = 'kernel "gemm/any_strided__c"'
    text = f"""program "p" {{
  input "x" %x: f32[4,6]
  const %w: f32[3,4] = #w
  buffer %a: f32[4,6]
  buffer %s: f32[4,4]
  buffer %o: f32[4,3]
  buffer %y: f32[3]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) {MAP}
  call Gemm(accumulator=f32) (%a[4,3 by 6,1 at 0], %w) -> (%s) {gemm}
  call Gemm(accumulator=f32) (%s, %a[4,3 by 6,1 at 3]) -> (%o) {gemm}
  call Map(expr=@abs(x0.f32)) (%o[3 by 1 at 3]) -> (%y) {MAP}
  output "y" %y
}}
"""
    assert overlaps(text)["o"] == "over a at 0"
    assert calls(after("bufferize", text))[2].startswith(
        "call Gemm(accumulator=f32) (%s, %a[4,3 by 6,1 at 3]) -> (%o[4,3 by 6,1 at 0])"
    )


def window(last: str, more: str = "") -> str:
    """A state and what is new joined; what the next run gets of them; what else is an output."""
    return f"""program "p" {{
  state "past" = "kept"
  input "x" %x: f32[2,3]
  input "past" %past: f32[4,3]
  buffer %new: f32[2,3]
  buffer %b: f32[6,3]
  buffer %y: f32[6,3]
  call Map(expr=@neg(x0.f32)) (%x) -> (%new) {MAP}
  call Concat(axis=0) (%past, %new) -> (%b) {CONCAT}
  call Map(expr=@neg(x0.f32)) (%b) -> (%y) {MAP}
  output "y" %y
  output "kept" %b[4,3 by 3,1 at {last}]{more}
}}
"""


def test_a_state_lies_in_what_it_is_joined_to() -> None:
    bound = after("bufferize", window("6"))
    assert "%past: f32[4,3] part %b at 0" in bound and "%new: f32[2,3] part %b at 48" in bound
    assert not any("Concat" in call for call in calls(bound))


def test_but_not_where_the_moved_state_would_lie_over_an_output() -> None:
    assert "%past: f32[4,3]\n" in after("bufferize", window("6", '\n  output "b" %b'))


def test_nor_where_the_next_state_is_made_elsewhere() -> None:
    """A user would find the next state in the output."""
    elsewhere = window("6").replace('"y" %y', '"y" %b').replace('"kept" %b', '"kept" %y')
    assert "%past: f32[4,3]\n" in after("bufferize", elsewhere)


def joined(count: int) -> str:
    """A large tensor, then so many small ones that are joined two by two."""
    buffers = [f"buffer %{name}{n}: f32[2,{width}]" for n in range(count) for name, width in (("a", 3), ("c", 6))]
    lines = []
    for n in range(count):
        source = f"%c{n - 1}[2,3 by 6,1 at 0]" if n else "%s"
        lines.append(f"call Map(expr=@neg(x0.f32)) ({source}) -> (%a{n}) {MAP}")
        lines.append(f"call Concat(axis=1) ({source}, %a{n}) -> (%c{n}) {CONCAT}")
    return "\n  ".join(
        [
            'program "p" {',
            'input "x" %x: f32[400]',
            "buffer %big: f32[800]",
            "buffer %s: f32[2,3]",
            *buffers,
            f"call Concat(axis=0) (%x, %x) -> (%big) {CONCAT}",
            f"call Map(expr=@abs(x0.f32)) (%big[2,3 by 3,1 at 0]) -> (%s) {MAP}",
            *lines,
            f'output "y" %c{count - 1}\n}}\n',
        ]
    )


def test_a_copy_that_goes_pays_for_a_slower_kernel() -> None:
    """A sigmoid is written between other channels, in tiles that take longer than lines, and is not copied there."""
    plan = compiled(branches(), Options(target="cortex-m55", prefer="ram")).plan
    asked = [step.function.call for step in plan.steps()]
    copied = [len(call.ins) for call in asked if isinstance(call.kind, Concat)]
    assert copied == [1]


def test_what_cannot_lower_the_peak_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, tried = bufferize._peak, list[int]()

    def counted(*arguments: Any) -> bufferize._Peak:
        tried.append(1)
        return plain(*arguments)

    def wherever(program: Program, *arguments: Any) -> bufferize._Peak:
        names = frozenset(buffer.name for buffer in program.buffers())
        return replace(plain(program, *arguments), names=names)

    monkeypatch.setattr(bufferize, "_peak", counted)
    few = after("bufferize", joined(12))
    assert len(tried) < 2 * 13  # one for each, to have fewer copies, and those at the peak
    monkeypatch.setattr(bufferize, "_peak", wherever)
    assert after("bufferize", joined(12)) == few


def test_without_a_choice_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = list[int]()
    monkeypatch.setattr(bufferize, "_peak_of", lambda *arguments: measured.append(1))
    compiled(conv())
    assert not measured


def test_choices_that_lead_to_the_same_program_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told by what became of each call, without looking at the program."""
    plain, measured = bufferize._join, bufferize._peak_of
    programs, tried, looked = dict[Any, set[str]](), list[int](), list[int]()

    def joined_by(program: Program, context: Context, choice: bufferize.Choice) -> Joiner:
        before, joiner = show(program), plain(program, context, choice)
        key = (context.target.prefer, before, *joiner.outcome, choice.reorder)
        programs.setdefault(key, set()).add(show(program))
        tried.append(1)
        return joiner

    def peak_of(*arguments: Any) -> bufferize._Peak:
        looked.append(1)
        return measured(*arguments)

    monkeypatch.setattr(bufferize, "_join", joined_by)
    monkeypatch.setattr(bufferize, "_peak_of", peak_of)
    for prefer in ("ram", "time"):
        compiled(branches(), Options(target="cortex-m55", prefer=prefer))
    after("bufferize", joined(12))
    assert len(looked) < 0.75 * len(tried)
    assert all(len(texts) == 1 for texts in programs.values())
