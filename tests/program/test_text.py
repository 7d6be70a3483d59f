"""A printed program reads back and prints the same, with everything that a program can hold."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.errors import BadFile
from mccompile.program.text import constants_of, read, show
from mccompile.program.verify import verify

WEIGHTS = Constant.of(np.arange(12, dtype=np.float32).reshape(3, 4))
TEXT = f"""program "all kinds of things" {{
  fact "w is positive"
  input "in/put:0" %x: f32[2,3]
  const %"w.packed/1": f32[3,4] = #{WEIGHTS.digest} align 32 slack 16 packed "rows of 4" from "dense/MatMul"
  buffer %left: f32[2,4] part %both at 0 from "a", "with \\"quotes\\""
  buffer %scratch_y: u8[64] align 16 slack 0
  buffer %right: f32[2,4] part %both at 32
  lasting %texts: u8[64]
  buffer %flag: bool[]
  buffer %both: f32[4,4]
  buffer %y: f32[4,4] over %both at 0
  call Gemm(accumulator=f32) (%x, %"w.packed/1") -> (%left) kernel "gemm/any" blocks (4, 2) scratch %scratch_y from "a"
  call Map(expr=@max(x0.f32, f32(-inf))) (%left[2,4 by 1,2 at 0]) -> (%right)
  call Map(expr=@u8(7)) () -> (%texts)
  call Map(expr=@less(x0.f32, f32(nan))) (%x[ by  at 5]) -> (%flag)
  if %flag from "choose" {{
    call Map(expr=@x0.f32) (%both) -> (%y)
  }} else {{
    call Map(expr=@neg(x0.f32)) (%both[4,4 by 1,4 at 0]) -> (%y)
  }}
  output "out put" %y
}}
"""


def test_reads_back_as_it_was_printed() -> None:
    program = read(TEXT, {WEIGHTS.digest: WEIGHTS})
    assert show(program) == TEXT
    assert constants_of(program) == {WEIGHTS.digest: WEIGHTS}
    verify(program)


def test_the_order_of_buffers_is_that_of_their_use() -> None:
    shuffled = TEXT.splitlines()
    shuffled[4], shuffled[7] = shuffled[7], shuffled[4]
    assert show(read("\n".join(shuffled), {WEIGHTS.digest: WEIGHTS})) == TEXT


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("(%x, ", "(%nobody, ", "nobody"),
        ("Gemm(", "Nonsense(", "Nonsense"),
        ("accumulator=f32", "accumulator=f31", "f31"),
        ("accumulator=f32", "accumulation=f32", "accumulation"),
        (WEIGHTS.digest, "0123456789abcdef", "side file"),
        ('output "out put" %y\n}', 'output "out put" %y\n', "end"),
        ("max(x0.f32", "most(x0.f32", "most"),
        ("f32[2,3]", "f32[2,three]", "three"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, why: str) -> None:
    with pytest.raises(BadFile, match=why):
        read(TEXT.replace(old, new), {WEIGHTS.digest: WEIGHTS})
