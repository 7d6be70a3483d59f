"""fuse, before and after: as program text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper

from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from tests.passes.program.before_after import after, calls
from tests.small_models import save

CONV = "strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), group=1, accumulator=f32"


def test_activation_and_residual_go_into_the_epilogue() -> None:
    before = f"""program "p" {{
  input "x" %x: f32[1,2,3,3]
  const %w: f32[2,2,1,1] = #w
  buffer %c: f32[1,2,3,3] from "conv"
  buffer %s: f32[1,2,3,3] from "add"
  buffer %y: f32[1,2,3,3] from "relu"
  call Conv({CONV}) (%x, %w) -> (%c) from "conv"
  call Map(expr=@add(x0.f32, x1.f32)) (%x, %c) -> (%s) from "add"
  call Map(expr=@max(x0.f32, f32(0.0))) (%s) -> (%y) from "relu"
  output "y" %y
}}
"""
    expected = f"""program "p" {{
  input "x" %x: f32[1,2,3,3]
  const %w: f32[2,2,1,1] = #w
  buffer %y: f32[1,2,3,3] from "relu"
  call Conv({CONV}, epilogue=@max(add(x1.f32, x0.f32), f32(0.0))) (%x, %w, %x) -> (%y) from "conv", "add", "relu"
  output "y" %y
}}
"""
    assert after("fuse", before) == expected


def test_a_chain_becomes_one_loop_and_a_transposition_its_strides() -> None:
    before = """program "p" {
  input "x" %x: f32[2,3]
  buffer %a: f32[2,3]
  buffer %y: f32[3,2]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a)
  call Map(expr=@mul(x0.f32, x0.f32)) (%a[3,2 by 1,3 at 0]) -> (%y)
  output "y" %y
}
"""
    assert calls(after("fuse", before)) == [
        "call Map(expr=@mul(neg(x0.f32), neg(x0.f32))) (%x[3,2 by 1,3 at 0]) -> (%y)"
    ]


def test_a_transposing_copy_becomes_strides_of_the_result() -> None:
    before = f"""program "p" {{
  input "x" %x: f32[1,2,3,3]
  const %w: f32[4,2,1,1] = #w
  buffer %c: f32[1,4,3,3]
  buffer %y: f32[1,3,3,4]
  call Conv({CONV}) (%x, %w) -> (%c)
  call Map(expr=@x0.f32) (%c[1,3,3,4 by 36,3,1,9 at 0]) -> (%y)
  output "y" %y
}}
"""
    expected = f"call Conv({CONV}, epilogue=@x0.f32) (%x, %w) -> (%y[1,4,3,3 by 36,1,12,4 at 0])"
    assert calls(after("fuse", before)) == [expected]


def untouched(text: str) -> bool:
    return after("fuse", text) == text


def test_what_two_read_is_computed_once() -> None:
    assert untouched("""program "p" {
  input "x" %x: f32[4]
  buffer %a: f32[4]
  buffer %y: f32[4]
  buffer %z: f32[4]
  call Map(expr=@exp(x0.f32)) (%x) -> (%a)
  call Map(expr=@neg(x0.f32)) (%a) -> (%y)
  call Map(expr=@abs(x0.f32)) (%a) -> (%z)
  output "y" %y
  output "z" %z
}
""")


def test_an_output_stays() -> None:
    assert untouched("""program "p" {
  input "x" %x: f32[4]
  buffer %a: f32[4]
  buffer %y: f32[4]
  call Map(expr=@exp(x0.f32)) (%x) -> (%a)
  call Map(expr=@neg(x0.f32)) (%a) -> (%y)
  output "a" %a
  output "y" %y
}
""")


def test_what_is_broadcast_is_not_computed_again_and_again() -> None:
    assert untouched("""program "p" {
  input "x" %x: f32[1,4]
  buffer %a: f32[1,4]
  buffer %y: f32[3,4]
  call Map(expr=@exp(x0.f32)) (%x) -> (%a)
  call Map(expr=@neg(x0.f32)) (%a[3,4 by 0,1 at 0]) -> (%y)
  output "y" %y
}
""")


def test_a_slice_of_a_sum_is_not_its_epilogue() -> None:
    assert untouched(f"""program "p" {{
  input "x" %x: f32[1,2,3,3]
  const %w: f32[4,2,1,1] = #w
  buffer %c: f32[1,4,3,3]
  buffer %y: f32[1,2,3,3]
  call Conv({CONV}) (%x, %w) -> (%c)
  call Map(expr=@neg(x0.f32)) (%c[1,2,3,3 by 36,9,3,1 at 18]) -> (%y)
  output "y" %y
}}
""")


def test_a_producer_outside_of_a_region_stays_outside() -> None:
    assert untouched("""program "p" {
  input "x" %x: f32[4]
  input "flag" %flag: bool[]
  buffer %a: f32[4]
  buffer %y: f32[4]
  call Map(expr=@exp(x0.f32)) (%x) -> (%a)
  if %flag {
    call Map(expr=@neg(x0.f32)) (%a) -> (%y)
  } else {
    call Map(expr=@x0.f32) (%x) -> (%y)
  }
  output "y" %y
}
""")


def test_a_slice_of_a_loop_is_the_loop_over_the_slice() -> None:
    before = """program "p" {
  input "x" %x: f32[2,6]
  buffer %a: f32[2,6]
  buffer %y: f32[2,2]
  call Map(expr=@exp(x0.f32)) (%x) -> (%a)
  call Map(expr=@neg(x0.f32)) (%a[2,2 by 6,2 at 1]) -> (%y)
  output "y" %y
}
"""
    assert calls(after("fuse", before)) == ["call Map(expr=@neg(exp(x0.f32))) (%x[2,2 by 6,2 at 1]) -> (%y)"]


def test_a_map_goes_into_the_element_of_a_reduction() -> None:
    before = """program "p" {
  input "x" %x: f32[2,3]
  input "z" %z: f32[2,3]
  buffer %d: f32[2,3] from "sub"
  buffer %y: f32[2,1] from "sum"
  call Map(expr=@sub(x0.f32, x1.f32)) (%x, %z) -> (%d) from "sub"
  call Reduce(axes=(1,), combine="add", accumulator=f32, element=@mul(x0.f32, x0.f32)) (%d) -> (%y) from "sum"
  output "y" %y
}
"""
    assert calls(after("fuse", before)) == [
        'call Reduce(axes=(1,), combine="add", accumulator=f32, '
        'element=@mul(sub(x0.f32, x1.f32), sub(x0.f32, x1.f32)), operands=2) (%x, %z) -> (%y) from "sub", "sum"'
    ]


QUANTIZED = """program "p" {
  input "x" %x: i8[2,5]
  const %scale: f32[1] = #s
  buffer %d: f32[2,5] from "read"
  buffer %y: f32[2,5] from "softmax"
  call Map(expr=@mul(to.f32(x0.i8), x1.f32)) (%x, %scale[2,5 by 0,0 at 0]) -> (%d) from "read"
  call Normalize(axes=(1,), measure="softmax", accumulator=f32) (%d) -> (%y) from "softmax"
  output "y" %y
}
"""


def test_a_cheap_map_goes_into_what_is_normalized() -> None:
    """Four bytes per element are not written, nor read two or three times."""
    assert calls(after("fuse", QUANTIZED)) == [
        'call Normalize(axes=(1,), measure="softmax", accumulator=f32, element=@mul(to.f32(x0.i8), x1.f32), operands=2)'
        ' (%x, %scale[2,5 by 0,0 at 0]) -> (%y) from "read", "softmax"'
    ]


def test_a_map_stays_where_normalizing_would_repeat_too_much() -> None:
    assert untouched(QUANTIZED.replace("mul(to.f32(x0.i8), x1.f32)", "mul(exp(to.f32(x0.i8)), x1.f32)"))
    assert len(calls(after("fuse", QUANTIZED, target="x86-64-v3"))) == 2


def test_a_map_whose_result_the_epilogue_needs_stays() -> None:
    text = QUANTIZED.replace(", accumulator=f32) (%d)", ", accumulator=f32, epilogue=@add(x0.f32, x1.f32)) (%d, %d)")
    assert untouched(text)


def test_a_cheap_map_that_two_read_is_computed_in_both() -> None:
    before = """program "p" {
  input "x" %x: u8[4]
  buffer %a: f32[4]
  buffer %y: f32[4]
  buffer %z: f32[4]
  call Map(expr=@to.f32(x0.u8)) (%x) -> (%a)
  call Map(expr=@neg(x0.f32)) (%a) -> (%y)
  call Map(expr=@abs(x0.f32)) (%a) -> (%z)
  output "y" %y
  output "z" %z
}
"""
    assert calls(after("fuse", before)) == [
        "call Map(expr=@neg(to.f32(x0.u8))) (%x) -> (%y)",
        "call Map(expr=@abs(to.f32(x0.u8))) (%x) -> (%z)",
    ]


def test_a_cheap_map_of_more_bytes_than_it_makes_is_kept() -> None:
    assert untouched("""program "p" {
  input "x" %x: f32[4]
  buffer %a: u8[4]
  buffer %y: u8[4]
  buffer %z: u8[4]
  call Map(expr=@to.u8(x0.f32)) (%x) -> (%a)
  call Map(expr=@min(x0.u8, u8(3))) (%a) -> (%y)
  call Map(expr=@max(x0.u8, u8(3))) (%a) -> (%z)
  output "y" %y
  output "z" %z
}
""")


def test_paths_that_meet_again_are_one_group() -> None:
    before = f"""program "p" {{
  input "x" %x: f32[1,2,3,3]
  const %w: f32[2,2,1,1] = #w
  buffer %c: f32[1,2,3,3]
  buffer %t: f32[1,2,3,3]
  buffer %e: f32[1,2,3,3]
  buffer %y: f32[1,2,3,3]
  call Conv({CONV}) (%x, %w) -> (%c)
  call Map(expr=@tanh(x0.f32)) (%c) -> (%t)
  call Map(expr=@neg(x0.f32)) (%c) -> (%e)
  call Map(expr=@mul(x0.f32, x1.f32)) (%t, %e) -> (%y)
  output "y" %y
}}
"""
    epilogue = "epilogue=@mul(tanh(x0.f32), neg(x0.f32))"
    assert calls(after("fuse", before)) == [f"call Conv({CONV}, {epilogue}) (%x, %w) -> (%y)"]


def test_a_transposed_reshape_becomes_strides_of_the_result() -> None:
    before = f"""program "p" {{
  input "x" %x: f32[1,2,3,3]
  const %w: f32[4,2,1,1] = #w
  buffer %c: f32[1,4,3,3]
  buffer %y: f32[1,9,4]
  call Conv({CONV}) (%x, %w) -> (%c)
  call Map(expr=@x0.f32) (%c[1,9,4 by 36,1,9 at 0]) -> (%y)
  output "y" %y
}}
"""
    expected = f"call Conv({CONV}, epilogue=@x0.f32) (%x, %w) -> (%y[1,4,3,3 by 0,1,12,4 at 0])"
    assert calls(after("fuse", before)) == [expected]


def test_maps_over_shapes_that_do_not_merge_run_over_a_finer_one() -> None:
    before = """program "p" {
  input "x" %x: f32[2,3]
  input "z" %z: f32[6,2]
  buffer %a: f32[2,2,3]
  buffer %y: f32[6,2]
  call Map(expr=@x0.f32) (%x[2,2,3 by 3,0,1 at 0]) -> (%a)
  call Map(expr=@add(x0.f32, x1.f32)) (%a[6,2 by 2,1 at 0], %z) -> (%y)
  output "y" %y
}
"""
    assert untouched(before)  # 2, 2, 3 and 6, 2 cannot be cut into the same parts
    other = before.replace("[2,2,3]", "[3,2,2]").replace("[2,2,3 by 3,0,1 at 0]", "[3,2,2 by 1,0,3 at 0]")
    assert calls(after("fuse", other)) == [
        "call Map(expr=@add(x0.f32, x1.f32)) (%x[3,2,2 by 1,0,3 at 0], %z[3,2,2 by 4,2,1 at 0]) "
        "-> (%y[3,2,2 by 4,2,1 at 0])"
    ]


def test_an_index_goes_where_it_means_the_same() -> None:
    def program(second: str, shape: str) -> str:
        return f"""program "p" {{
  input "x" %x: f32[2,3]
  buffer %a: f32[2,3]
  buffer %y: f32[{shape}]
  call Map(expr=@mul(x0.f32, to.f32(index1))) (%x) -> (%a)
  call {second} -> (%y)
  output "y" %y
}}
"""

    total = 'Reduce(axes=(1,), combine="add", accumulator=f32, element=@{}) (%{})'
    summed = program(total.format("x0.f32", "a"), "2,1")
    assert calls(after("fuse", summed)) == [f"call {total.format('mul(x0.f32, to.f32(index1))', 'x')} -> (%y)"]
    assert untouched(program("Map(expr=@neg(x0.f32)) (%a[3,2 by 1,3 at 0])", "3,2"))


def test_numbers_that_vectors_do_not_read_stay_out_of_a_product_in_vectors() -> None:
    before = """program "p" {
  input "x" %x: f32[8,32]
  input "counts" %counts: i64[8,32]
  const %w: f32[32,32] = #w
  buffer %a: f32[8,32]
  buffer %r: f32[8,32]
  buffer %y: f32[8,32]
  call Gemm(accumulator=f32) (%x, %w) -> (%a)
  call Map(expr=@max(x0.f32, f32(0.0))) (%a) -> (%r)
  call Map(expr=@mul(to.f32(x0.i64), x1.f32)) (%counts, %r) -> (%y)
  output "y" %y
}
"""
    assert len(calls(after("fuse", before, target="generic"))) == 1
    assert [line.split("(", 1)[0] for line in calls(after("fuse", before, target="x86-64-v3"))] == [
        "call Gemm",
        "call Map",
    ]


def test_what_does_not_depend_on_a_sum_stays_out_of_its_epilogue() -> None:
    conv = CONV.replace("f32", "i32")
    before = f"""program "p" {{
  input "x" %x: i8[1,2,3,3]
  const %w: i8[2,2,1,1] = #w
  buffer %c: i32[1,2,3,3]
  buffer %y: bool[1,2,3,3]
  call Conv({conv}) (%x, %w) -> (%c)
  call Map(expr=@less(x0.i32, x1.i32)) (%c, %c) -> (%y)
  output "y" %y
}}
"""
    assert len(calls(after("fuse", before))) == 2


def test_operands_that_nothing_uses_any_more_are_not_passed() -> None:
    before = """program "p" {
  input "x" %x: i32[4]
  buffer %a: i32[4]
  buffer %y: bool[4]
  call Map(expr=@neg(x0.i32)) (%x) -> (%a)
  call Map(expr=@less(x0.i32, x1.i32)) (%a, %a) -> (%y)
  output "y" %y
}
"""
    assert calls(after("fuse", before)) == ["call Map(expr=@bool(false)) () -> (%y)"]


def test_what_vectors_of_a_pool_compute_one_by_one_stays_a_step(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[1,16,24,40] x) => (float[1,16,22,38] y) {
        m = AveragePool <kernel_shape = [3, 3]> (x)
        y = Sigmoid (m)
    }"""
    path = save(onnx.parser.parse_model(text), tmp_path)
    steps = {prefer: _kernels(compile(path, Options(target="x86-64-v3", prefer=prefer))) for prefer in ("time", "ram")}
    assert steps["time"] == ["pool/any_strided_lanes__vec", "map/f32_strided_loops__vec"]
    assert len(steps["ram"]) == 1


def test_16_bit_floats_are_made_behind_a_transposed_convolution_in_vectors(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float16[1,16,12,12] x) => (float16[1,16,24,24] y) {
        y = ConvTranspose <strides = [2, 2]> (x, w)
    }"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((16, 16, 2, 2), np.float16), "w"))
    kernels = _kernels(compile(save(made, tmp_path), Options(target="x86-64-v3", prefer="time")))
    assert "conv/f32_nhwc_tile__vec" in kernels
    assert not [kernel for kernel in kernels if kernel.endswith("__c")]


def _kernels(package: Package) -> list[str]:
    return [step["kernel"] for step in json.loads(package.files["report.json"])["steps"]]
