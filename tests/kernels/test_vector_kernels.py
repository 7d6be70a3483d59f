"""Vector kernels: headers that go together, and tiles that the measurements in their module ask for. What compilers say
of each kernel, embedded/test_kernels.py asks."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f16, f32
from mccompile.base.tensor import TensorType
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import HALF_RELU, TileSize, best_lanes, best_tile
from mccompile.driver import Options, compile
from mccompile.kernels.api import Call, Case, Needs
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.measure.correctness import check
from mccompile.targets import api as targets
from tests.kernels.harness import STRICT, call_of, include_flags, trials
from tests.small_models import floats, model, node, save
from tests.thorough import some

KERNELS = Registry.load()
V3, V4 = targets.load("x86-64-v3"), targets.load("x86-64-v4")
HALVES = targets.load("aarch64-fp16")
COMPILERS = {"gcc": ["-std=c99"], "clang": ["-std=c99"], "g++": ["-std=c++11", "-x", "c++"]}


@pytest.mark.parametrize(("channels", "lanes"), [(1000, 16), (64, 16), (24, 8), (8, 8), (10, 16), (3, 4), (1, 4)])
def test_vectors_are_as_wide_as_wastes_least(channels: int, lanes: int) -> None:
    assert best_lanes(channels, V4) == lanes


@some(1, "compiler", COMPILERS)
def test_headers_of_all_kernels_go_together(compiler: str, tmp_path: Path) -> None:
    """A model may have kernels of any kind."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    found = _headers()
    assert {"mcc_vec_bits.h", "mcc_dot16.h"} <= found
    (tmp_path / "all.c").write_text("".join(f'#include "{name}"\n' for name in sorted(found)) + "extern int one;\n")
    flags = [*COMPILERS[compiler], *STRICT, "-march=x86-64-v4", "-fsyntax-only"]
    command = [compiler, *flags, *include_flags(tmp_path), str(tmp_path / "all.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:4000]) == (0, "")


@cache
def _headers() -> frozenset[str]:
    kernels = [kernel for kernel in KERNELS.values() if kernel.isa in ("vec", "dot")]
    return frozenset(name for k in kernels for trial in trials(k, V4) for name in k.headers(trial.function.call))


@pytest.mark.parametrize("target", [V3, V4])
@pytest.mark.parametrize("points", [1, 2, 7, 49, 56, 3136])
@pytest.mark.parametrize("channels", [1, 16, 24, 64, 1000])
def test_tiles_fit_the_registers(target: targets.Target, points: int, channels: int) -> None:
    size = best_tile(points, channels, 64, 256, target)
    held = size.points * size.vectors + size.vectors + (size.lanes < 16)
    assert held <= target.option("vector_registers", 0) or size.points * size.vectors == 1


def test_points_that_lie_on_the_same_places_of_the_cache_are_few() -> None:
    assert best_tile(196, 512, 1024, 4096, V4).points <= 8


def test_groups_cover_every_channel_once_and_only_the_last_vector_is_short() -> None:
    parts = Groups(TileSize(16, 7, 3), 16 * 7 + 5).parts()
    assert parts == [(0, 96, 3, 16), (96, 128, 2, 5)]


def test_winograd_can_be_switched_off_and_is_off_where_speed_does_not_come_first() -> None:
    kernel = KERNELS["conv/f32_nhwc_winograd__vec"]
    call = trials(kernel, V4)[0].function.call
    assert not hasattr(kernel.match(call, V4), "reason")
    for other in (replace(V4, prefer="ram"), replace(V4, options=(*V4.options, ("winograd", 0)))):
        assert "switched off" in str(kernel.match(call, other))


def halves(channels: int) -> Call:
    plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32, HALF_RELU)
    types = [TensorType(f16, shape) for shape in ((1, channels, 16, 16), (channels, channels, 3, 3))]
    last = (0, 2, 3, 1)
    places = {"permute": {0: last, 2: last}, "permute_outs": {0: last}}
    case = Case("", plain, (*types, types[0]), types[:1], constant=frozenset({1}), **places)
    return call_of(KERNELS["conv/f32_nhwc_winograd__vec"], case)[0]


@pytest.mark.parametrize(("channels", "is_cheaper"), [(8, False), (16, True), (64, True)])
def test_winograd_serves_many_channels_of_sixteen_bit_floats(channels: int, is_cheaper: bool) -> None:
    call, tiles, winograd = halves(channels), KERNELS["conv/f32_nhwc_tile__vec"], KERNELS["conv/f32_nhwc_winograd__vec"]
    assert (winograd.cost(call, HALVES).time < tiles.cost(call, HALVES).time) == is_cheaper


def test_winograd_in_sixteen_bits_has_small_patches_and_weights_of_the_same_type() -> None:
    kernel, call = KERNELS["conv/f32_nhwc_winograd__vec"], halves(16)
    found = kernel.match(call, HALVES)
    assert isinstance(found, Needs) and found.blocks[0] == 2
    weights = Constant.of(np.ones((16, 16, 3, 3), np.float16))
    packed = kernel.pack(replace(call, blocks=found.blocks), {1: weights})[1]
    assert (packed.dtype, packed.size) == (np.float16, 16 * 16 * 16)
    assert "does not compute in 16 bits" in str(kernel.match(call, V4))


@pytest.mark.skipif("vec" not in targets.load("native").isas, reason="this machine has no kernels for vectors")
def test_convolutions_in_vectors_run_row_by_row_over_rings(tmp_path: Path) -> None:
    nodes, weights, x = [], {}, "x"
    for number, (channels, window) in enumerate([(24, 3), (40, 1), (17, 3), (4, 3)]):
        pads = {"pads": [1, 1, 1, 1]} if window == 3 else {}
        nodes.append(node("Conv", f"{x} w{number}", f"c{number}", **pads))
        nodes.append(node("Relu", f"c{number}", f"r{number}"))
        before = 3 if number == 0 else weights[f"w{number - 1}"].shape[0]
        weights[f"w{number}"], x = floats(number, channels, before, window, window), f"r{number}"
    path = save(model("chain", nodes, [("x", (1, 3, 24, 19))], [(x, (1, 4, 24, 19))], weights), tmp_path)
    verdict = check(path, Options(target="native", prefer="ram"), runs=1)
    steps = [step.function for step in verdict.package.plan.steps()]
    assert verdict.ok and sum(f.kernel.isa == "vec" and f.call.rows == 2 for f in steps) >= 3


@pytest.mark.skipif("vec" not in targets.load("native").isas, reason="this machine has no kernels for vectors")
@some(1, "scales", [(2, 2), (1.5, 1.5), (1, 2)])
def test_pictures_are_resized_in_vectors_row_by_row(tmp_path: Path, scales: tuple[float, float]) -> None:
    height, width = (int(n * s) for n, s in zip((24, 18), scales, strict=True))
    weights = {"v": floats(0, 24, 3, 3, 3), "w": floats(1, 4, 24, 3, 3), "s": np.array([1, 1, *scales], np.float32)}
    nodes = [
        node("Conv", "x v", "a", pads=[1, 1, 1, 1]),
        helper.make_node("Resize", ["a", "", "s"], ["u"], mode="linear"),
        node("Relu", "u", "r"),
        node("Conv", "r w", "y", pads=[1, 1, 1, 1]),
    ]
    path = save(model("r", nodes, [("x", (1, 3, 24, 18))], [("y", (1, 4, height, width))], weights), tmp_path)
    verdict = check(path, Options(target="native", prefer="balanced"), runs=1)
    steps = [step.function for step in verdict.package.plan.steps()]
    assert verdict.ok and [f.kernel.id for f in steps if f.call.rows == 2 and f.kernel.id.startswith("resize/any_rows")]


@pytest.mark.parametrize(("k", "kernel"), [(20, "any_strided_heap__c"), (200, "any_strided_radix__vec")])
def test_the_best_of_many_are_sorted_without_branches(k: int, kernel: str, tmp_path: Path) -> None:
    graph = model("best", [node("TopK", "x k", "y where")], [("x", (4, 300))], [("y", (4, k))], {"k": np.array([k])})
    (step,) = compile(save(graph, tmp_path), Options(target="x86-64-v3", prefer="time")).plan.steps()
    assert step.function.kernel.id == f"top_k/{kernel}"


@pytest.mark.parametrize("shape", [(64, 64), (130, 100), (33, 24)])
def test_elements_of_eight_bytes_are_turned_in_tiles(shape: tuple[int, int], tmp_path: Path) -> None:
    """Also where the first-level cache holds them all."""
    made = model("turned", [node("Transpose", "x", "y", perm=[1, 0])], [("x", shape)], [("y", shape[::-1])])
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.INT64
    (step,) = compile(save(made, tmp_path), Options(target="x86-64-v3", prefer="time")).plan.steps()
    assert step.function.kernel.id == "map/any_transposed_tiles__vec"


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64", "riscv64v", "wasm32"])
@pytest.mark.parametrize("op", ["Exp", "Sqrt", "Sigmoid", "Softmax", "ReduceProd", "LogSoftmax"])
def test_doubles_are_computed_in_vectors(op: str, target: str, tmp_path: Path) -> None:
    y = (7, 1) if op == "ReduceProd" else (7, 33)
    more = {"axes": [1]} if op == "ReduceProd" else {}
    made = model("doubles", [node(op, "x", "y", **more)], [("x", (7, 33))], [("y", y)])
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    (step,) = compile(save(made, tmp_path), Options(target=target, prefer="time")).plan.steps()
    assert step.function.kernel.isa == "vec"


@pytest.mark.parametrize("op", ["Relu", "Add"])
def test_sixteen_bits_are_rounded_in_vectors_that_multiply_64(op: str, tmp_path: Path) -> None:
    quantize = [node("QuantizeLinear", "r coarse none", "y")]
    nodes = [node("DequantizeLinear", "x fine none", "d"), node(op, "d d" if op == "Add" else "d", "r"), *quantize]
    more = {"fine": np.float32(0.0007), "coarse": np.float32(0.0003), "none": np.int16(0)}
    made = model("sixteen", nodes, [("x", (37, 64))], [("y", (37, 64))], more)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.INT16
    made.opset_import[0].version = 21
    (step,) = compile(save(made, tmp_path), Options(target="x86-64-v4", prefer="time")).plan.steps()
    assert step.function.kernel.id == "map/any_strided_lanes__vec"


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("channels", [2, 3, 8, 15])
def test_few_channels_of_bytes_are_parted_in_registers(channels: int, target: str, tmp_path: Path) -> None:
    shape, result = (2, 16, 20, channels), (2, channels, 16, 20)
    made = model("parted", [node("Transpose", "x", "y", perm=[0, 3, 1, 2])], [("x", shape)], [("y", result)])
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.UINT8
    (step,) = compile(save(made, tmp_path), Options(target=target, prefer="time")).plan.steps()
    assert step.function.kernel.id == "map/any_transposed_tiles__vec"


@pytest.mark.parametrize(("shape", "axis", "k"), [((1400, 23), 1, 3), ((33, 24, 11), 1, 5), ((64, 100), 1, 20)])
def test_the_largest_of_short_rows_are_found_in_many_rows_at_once(
    shape: tuple[int, ...], axis: int, k: int, tmp_path: Path
) -> None:
    found = (*shape[:axis], k, *shape[axis + 1 :])
    nodes = [node("TopK", "x k", "y places", axis=axis)]
    made = model("top", nodes, [("x", shape)], [("y", found), ("places", found)], {"k": np.array([k], np.int64)})
    made.graph.output[1].type.tensor_type.elem_type = TensorProto.INT64
    (step,) = compile(save(made, tmp_path), Options(target="x86-64-v3", prefer="time")).plan.steps()
    assert step.function.kernel.id == "top_k/any_strided_lanes__vec"


def test_operands_that_lie_across_are_packed_in_square_tiles(tmp_path: Path) -> None:
    nodes = [node("Transpose", "b", "c", perm=[0, 2, 1]), node("MatMul", "a c", "y")]
    shapes = [("a", (8, 49, 64)), ("b", (8, 197, 64))]
    path = save(model("across", nodes, shapes, [("y", (8, 49, 197))]), tmp_path)
    package = compile(path, Options(target="x86-64-v3", prefer="time"))
    (step,) = package.plan.steps()
    assert "mcc_vec_transpose_bits.h" in step.function.kernel.headers(step.function.call)


def test_maxima_wait_for_the_second_operand_only(tmp_path: Path) -> None:
    """An instruction of x86 gives the second one where either is NaN: only the first is asked whether it is."""
    nodes = [node("MaxPool", "x", "y", kernel_shape=[2, 5, 3], strides=[3, 1, 2], pads=[1, 2, 1, 1, 2, 1])]
    path = save(model("largest", nodes, [("x", (1, 4, 8, 10, 11))], [("y", (1, 4, 3, 10, 6))]), tmp_path)
    compile(path, Options(target="x86-64-v3", prefer="time")).write(tmp_path / "out")
    text = (tmp_path / "out" / "largest_kernels.c").read_text()
    assert "mcc_max_f32(line[lane" in text and "mcc_max_f32(mcc_max_f32" not in text


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE])
def test_places_of_the_largest_integers_are_found_beside_each_other(dtype: int, tmp_path: Path) -> None:
    made = model("most", [node("ArgMax", "x", "y", axis=1, keepdims=0)], [("x", (13, 37, 9))], [("y", (13, 9))])
    made.graph.input[0].type.tensor_type.elem_type = dtype
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    (step,) = compile(save(made, tmp_path), Options(target="x86-64-v3", prefer="time")).plan.steps()
    assert step.function.kernel.id == "arg_reduce/any_strided_lanes__vec"


def test_long_lists_of_a_few_long_rows_are_heaps(tmp_path: Path) -> None:
    """Of 16 rows, one has an element for its list nearly always."""
    found = (20, 50)
    made = model(
        "top",
        [node("TopK", "x k", "y places")],
        [("x", (20, 2000))],
        [("y", found), ("places", found)],
        {"k": np.array([50], np.int64)},
    )
    for value in (*made.graph.input[:1], *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.INT64
    (step,) = compile(save(made, tmp_path), Options(target="x86-64-v4", prefer="time")).plan.steps()
    assert step.function.kernel.id == "top_k/any_strided_heap__c"


LONG = {
    "Softmax": 32003,
    "LogSoftmax": 65537,
    "LpNormalization": 40009,
    "LayerNormalization": 20011,
    "ReduceSum": 40009,
    "ReduceMean": 40009,
    "ReduceMax": 40009,
    "ReduceL2": 40009,
}


@pytest.mark.parametrize("target", ["x86-64-v3", "aarch64"])
@pytest.mark.parametrize("op", LONG)
def test_long_rows_that_nothing_divides_are_computed_in_vectors(op: str, target: str, tmp_path: Path) -> None:
    steps = compile(long_rows(op, tmp_path), Options(target=target, prefer="time")).plan.steps()
    assert {step.function.kernel.isa for step in steps} == {"vec"}


@pytest.mark.skipif("vec" not in targets.load("native").isas, reason="this machine has no kernels for vectors")
@some(3, "op", LONG)
def test_long_rows_are_summed_as_accurately_as_short_ones(op: str, tmp_path: Path) -> None:
    verdict = check(long_rows(op, tmp_path), Options(target="native", prefer="time"), runs=1)
    assert verdict.ok and {step.function.kernel.isa for step in verdict.package.plan.steps()} == {"vec"}


def long_rows(op: str, folder: Path) -> Path:
    """A model that normalizes two rows, or reduces each to one number."""
    size, shape, reduces = LONG[op], (2, LONG[op]), op.startswith("Reduce")
    more = {"LayerNormalization": {"w": floats(0, size)}}.get(op, {"w": np.array([1])} if reduces else {})
    attributes = {} if more else {"axis": -1}
    made = node(op, " ".join(["x", *more]), "y", **attributes)
    return save(model("long", [made], [("x", shape)], [("y", (2, 1) if reduces else shape)], more, 18), folder)


@pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("objdump"), reason="no gcc, or no objdump")
def test_weights_of_several_rows_stay_in_registers(tmp_path: Path) -> None:
    """GCC would read them again for each row, as operands of products, and machines read two vectors in a cycle."""
    network = model("net", [node("MatMul", "x w", "y")], [("x", (64, 96))], [("y", (64, 96))], {"w": floats(0, 96, 96)})
    compile(save(network, tmp_path), Options(target="x86-64-v3", prefer="time")).write(tmp_path / "out")
    flags = ["-std=c99", "-O2", "-march=x86-64-v3", *include_flags(tmp_path / "out"), f"-I{tmp_path / 'out'}"]
    source, made = next((tmp_path / "out").glob("*_kernels.c")), tmp_path / "kernels.o"
    subprocess.run(["gcc", *flags, "-c", str(source), "-o", str(made)], check=True)
    listed = subprocess.run(["objdump", "-d", str(made)], check=True, capture_output=True, text=True).stdout
    products = [line for line in listed.splitlines() if "vfmadd" in line]
    assert len(products) >= 12 and not [line for line in products if "(%" in line]
