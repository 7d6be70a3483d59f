"""Long functions are taken apart: what a part reads is handed to it, and nothing printed is too long to be read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.marked import named, part, plain
from mccompile.driver import Options
from mccompile.emit import parts
from mccompile.emit.layout import blocks
from mccompile.emit.parts import in_parts
from mccompile.measure.correctness import check
from mccompile.targets.api import load
from tests.lengths import LONGEST, functions, too_long
from tests.small_models import compiled, floats, model, node, save
from tests.small_quantized import convolutions
from tests.thorough import some

TARGETS = ("x86-64-v3", "x86-64-v4", "aarch64", "armv7a", "riscv64v256", "wasm32")
OF_BYTES = (*TARGETS, "aarch64-i8mm", "riscv64v")
PARAMETERS = {"y": "float *y", "x": "const float *x", "w": "const float *w"}


def body(lines: int) -> str:
    statements = "\n".join(f"{named('y')}[{named('i')} * 4 + {n}] = {named('x')}[{n}];" for n in range(lines))
    inner = f"{part('rows', ['i', 'float *sums'])} {{\n{{\n{statements}\n}}\n}}"
    return f"void f(void)\n{{\nfor (mcc_index i = 0; i < 4; ++i) {{\n{inner}\n}}\n}}"


def test_a_part_of_a_long_function_is_a_function_of_what_it_reads() -> None:
    text = plain(in_parts(blocks(body(parts.LONGEST)), "f", PARAMETERS))
    assert "MCC_PART void f_rows1(float *y, const float *x, mcc_index i)\n" in text
    loop = "    for (mcc_index i = 0; i < 4; ++i) {\n        f_rows1(y, x, i);\n    }\n"
    assert text.endswith("void f(void)\n{\n" + loop + "}\n")


def test_a_part_of_a_short_function_stays_where_it_is() -> None:
    text = plain(in_parts(blocks(body(3)), "f", PARAMETERS))
    assert "MCC_PART" not in text and text.count("{") == 2


def nested(depth: int) -> str:
    loops = "\n".join(f"for (mcc_index j{n} = 0; j{n} < 4; ++j{n}) {{" for n in range(depth))
    ends = "}\n" * depth
    inner = f"{part('rows', ['i'])} {{\n{loops}\n{named('y')}[{named('i')}] = 0;\n{ends}}}"
    return f"void f(void)\n{{\nfor (mcc_index i = 0; i < 4; ++i) {{\n{inner}\n}}\n}}"


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_part_in_which_loops_are_nested_too_deep_is_a_function(beyond: int) -> None:
    text = plain(in_parts(blocks(nested(parts.DEEPEST - 1 + beyond)), "f", PARAMETERS))
    assert ("        f_rows1(y, i);\n" in text) == bool(beyond)


def test_a_part_is_handed_pointers_to_what_it_writes() -> None:
    statements = "\n".join(f"{named('sum')} += {named('x')}[{n}];" for n in range(parts.LONGEST))
    text = f"void f(void)\n{{\nfloat sum = 0;\n{part('sums', ['float &sum'])} {{\n{statements}\n}}\n}}"
    found = plain(in_parts(blocks(text), "f", PARAMETERS))
    assert "MCC_PART void f_sums1(const float *x, float *sum)\n{\n    (*sum) += x[0];\n" in found
    assert found.endswith("    float sum = 0;\n    f_sums1(x, &sum);\n}\n")


def test_equal_parts_that_follow_each_other_are_one_while_it_is_short() -> None:
    """Each of two thirds of a function that is short."""
    line, lines = f"{named('y')}[0] = {named('x')}[0];\n", parts.LONGEST * 2 // 3
    pieces = [f"{part('rows', [])} {{\n{line * count}}}\n" for count in (lines // 2, lines // 2, lines)]
    text = plain(in_parts(blocks(f"void f(void)\n{{\n{''.join(pieces)}}}"), "f", PARAMETERS))
    assert [length for _, length in functions(text)] == [lines // 2 * 2 + 2, lines + 3]


def test_no_more_parts_stand_alone_than_are_needed() -> None:
    lines = parts.LONGEST // 2
    part_of_it = body(lines).partition("{\n")[2].removesuffix("\n}")
    text = plain(in_parts(blocks(f"void f(void)\n{{\n{part_of_it}\n{part_of_it}\n{part_of_it}\n}}"), "f", PARAMETERS))
    assert text.count("MCC_PART") == 2 and text.count("f_rows2(") == 2


def network() -> ModelProto:
    """Convolutions of many sizes: at edges and inside, with channels left over, over channels and across them."""
    nodes, weights, channels = [], {}, 3
    layers = [  # results, window, stride, groups
        (16, 3, 2, 1), (16, 3, 1, 16), (24, 1, 1, 1), (24, 5, 1, 24), (48, 3, 2, 24), (42, 1, 1, 1), (42, 3, 1, 42),
        (30, 3, 1, 1), (10, 1, 1, 1), (10, 7, 1, 10), (12, 3, 2, 1),
    ]  # fmt: skip
    for number, (results, window, stride, groups) in enumerate(layers):
        weights[f"w{number}"] = floats(number, results, channels // groups, window, window)
        weights[f"b{number}"] = floats(99 + number, results)
        pads = [window // 2] * 4
        ins = f"x{number} w{number} b{number}"
        nodes += [
            node("Conv", ins, f"c{number}", pads=pads, strides=[stride] * 2, group=groups),
            node("Relu", f"c{number}", f"x{number + 1}"),
        ]
        channels = results
    nodes.append(node("GlobalAveragePool", f"x{len(layers)}", "y"))
    return model("many", nodes, [("x0", [1, 3, 44, 44])], [("y", [1, channels, 1, 1])], weights)


def window() -> ModelProto:
    """A convolution that is computed by Winograd's method, in tiles of many sizes."""
    nodes = [node("Conv", "x v", "wide"), node("Conv", "wide w", "deep", pads=[1] * 4), node("Conv", "deep u", "y")]
    weights = {"v": floats(0, 8, 64, 1, 1), "w": floats(1, 12, 8, 3, 3), "u": floats(2, 12, 12, 1, 1)}
    return model("window", nodes, [("x", [1, 64, 30, 40])], [("y", [1, 12, 30, 40])], weights)


IN_FLOATS = {"many": (network(), 10), "window": (window(), 1)}


def products() -> ModelProto:
    """Of bytes: with weights and with what is computed, whose zero points are known when it runs."""
    weights = {
        "w": np.random.default_rng(0).integers(0, 256, (70, 70)).astype(np.uint8),
        "w_zeros": np.arange(70, dtype=np.uint8),
        "size": np.array([1, 3, 30, 70]),
    }
    nodes = [
        node("DynamicQuantizeLinear", "x", "a a_scale a_zero"),
        node("MatMulInteger", "a w a_zero w_zeros", "p"),
        node("Cast", "p", "f", to=1),
        node("DynamicQuantizeLinear", "f", "b b_scale b_zero"),
        node("Transpose", "b", "turned", perm=[0, 1, 3, 2]),
        node("MatMulInteger", "a turned a_zero b_zero", "q"),
        node("Cast", "q", "y", to=1),
    ]
    return model("products", nodes, [("x", [1, 3, 30, 70])], [("y", [1, 3, 30, 30])], weights)


LAYERS = [  # results, window, stride
    (16, 3, 2), (0, 3, 1), (24, 1, 1), (0, 5, 1), (48, 3, 2), (0, 3, 2), (42, 1, 1), (0, 7, 1), (32, 3, 1), (10, 1, 1),
]  # fmt: skip
IN_BYTES = {"convolutions": convolutions(44, LAYERS), "products": products()}


@pytest.mark.parametrize("name", IN_FLOATS)
@pytest.mark.parametrize("target", TARGETS)
def test_no_function_of_a_kernel_is_too_long(target: str, name: str) -> None:
    made, least = IN_FLOATS[name]
    text = compiled(made, Options(target=target)).files[f"{name}_kernels.c"].decode()
    assert len(list(functions(text))) >= least
    assert not too_long(text)


@pytest.mark.parametrize("name", IN_BYTES)
@some(1, "target", OF_BYTES)
def test_no_function_of_a_kernel_of_bytes_is_too_long(name: str, target: str) -> None:
    text = compiled(IN_BYTES[name], Options(target=target)).files[f"{name}_kernels.c"].decode()
    assert len(list(functions(text))) > 3
    assert not too_long(text)


def deepest(made: ModelProto, compiler: str, folder: Path) -> int:
    """Bytes of the largest stack frame of a depthwise kernel."""
    files = compiled(made, Options(target="x86-64-v3")).files
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    flags = [*load("x86-64-v3").cflags, "-fstack-usage", "-I.", "-Iruntime"]
    subprocess.run([compiler, *flags, "-c", f"{made.graph.name}_kernels.c"], cwd=folder, check=True)
    lines = (folder / f"{made.graph.name}_kernels.su").read_text().splitlines()
    return max(int(line.split("\t")[1]) for line in lines if "depthwise" in line)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_loops_over_channels_keep_no_weights_on_the_stack(compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    weights = {"v": floats(0, 16, 3, 1, 1), "w": floats(1, 16, 1, 3, 3), "b": floats(2, 16)}
    nodes = [
        node("Conv", "x v", "wide"),
        node("Conv", "wide w b", "deep", pads=[1] * 4, group=16),
        node("Relu", "deep", "cut"),
        node("GlobalAveragePool", "cut", "y"),
    ]
    made = model("channels", nodes, [("x", [1, 3, 64, 64])], [("y", [1, 16, 1, 1])], weights)
    assert 0 < deepest(made, compiler, tmp_path) < 512


def long_network(measured: bool) -> ModelProto:
    """Products one behind the other; how many rows the last ones have is found out by the run, if asked for."""
    count = 60
    weights = {f"w{number}": floats(number, 5, 5) / 3 for number in range(count)}
    nodes = []
    for number in range(count - 10):
        nodes.append(node("MatMul", f"x{number} w{number}", f"p{number}"))
        nodes.append(node("Sin", f"p{number}", f"x{number + 1}"))
    middle = f"x{count - 10}"
    if measured:
        nodes += [node("NonZero", middle, "places"), node("Cast", "places", "numbers", to=1)]
        nodes += [node("Slice", "numbers first second axis", "rows"), node("Transpose", "rows", "turned")]
        weights |= {"first": np.array([0]), "second": np.array([1]), "axis": np.array([0]), "five": floats(7, 1, 5)}
        nodes += [node("MatMul", "turned five", "spread")]
        middle = "spread"
    for number in range(count - 10, count):
        nodes.append(node("MatMul", f"{middle} w{number}", f"p{number}"))
        nodes.append(node("Sin", f"p{number}", f"x{number + 1}"))
        middle = f"x{number + 1}"
    shape = ["n", 5] if measured else [3, 5]
    return model("deep", nodes, [("x0", [3, 5])], [(middle, shape)], weights)


@pytest.mark.parametrize("measured", [False, True])
def test_a_long_run_is_functions_of_its_steps(measured: bool, tmp_path: Path) -> None:
    made = long_network(measured)
    text = compiled(made).files["deep.c"].decode()
    lengths = dict(functions(text))
    assert len([name for name in lengths if name.startswith("MCC_PART")]) > 1
    assert max(lengths.values()) <= LONGEST
    assert ("status = run_part_" in text) is measured
    assert check(save(made, tmp_path), Options(), runs=1).ok
