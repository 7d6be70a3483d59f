"""pack_constants: equal constants are kept once, whatever they are called."""

from __future__ import annotations

from tests.passes.program.before_after import after

MAP = 'kernel "map/any_strided_loops__c"'


def equal_constants(dtype: str) -> str:
    return f"""program "p" {{
  input "x" %x: {dtype}[4]
  const %first: {dtype}[4] = #w
  buffer %a: {dtype}[4]
  const %second: {dtype}[4] = #w
  buffer %y: {dtype}[4]
  call Map(expr=@add(x0.{dtype}, x1.{dtype})) (%x, %first) -> (%a) {MAP}
  call Map(expr=@sub(x0.{dtype}, x1.{dtype})) (%a, %second) -> (%y) {MAP}
  output "y" %y
}}
"""


def test_equal_constants_are_kept_once() -> None:
    text = equal_constants("f32")
    expected = text.replace("  const %second: f32[4] = #w\n", "").replace("%second", "%first")
    found = after("pack_constants", text)
    assert found.replace('  fact "second equals first"\n', "") == expected
    assert found != expected  # weights trained anew may differ


def test_what_is_kept_lies_as_all_its_readers_need_it() -> None:
    text = equal_constants("f32").replace("= #w\n  buffer %y", "= #w align 16 slack 8\n  buffer %y")
    found = after("pack_constants", text)
    assert "const %first: f32[4] = #w align 16 slack 8\n" in found and "%second" not in found


def test_constants_that_only_look_alike_are_kept_apart() -> None:
    text = f"""program "p" {{
  input "x" %x: f32[4]
  const %wide: f32[4] = #w
  buffer %a: f32[4]
  const %square: f32[2,2] = #w
  buffer %y: f32[4]
  call Map(expr=@add(x0.f32, x1.f32)) (%x, %wide) -> (%a) {MAP}
  call Map(expr=@mul(x0.f32, x1.f32)) (%a, %square[4 by 1 at 0]) -> (%y) {MAP}
  output "y" %y
}}
"""
    assert after("pack_constants", text) == text


def test_equal_constants_of_quantized_tensors_are_kept_apart() -> None:
    """Zero points that are equal today are not after the next training."""
    text = equal_constants("i8")
    assert after("pack_constants", text) == text
