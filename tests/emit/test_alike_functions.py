"""Functions that differ in numbers only are one where flash is preferred: right, smaller, and without a warning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import onnx
import pytest

from mccompile.driver import Options, compile
from mccompile.emit import kernels, parts
from mccompile.emit.kernels import function_text
from mccompile.measure.correctness import check
from tests.emit.test_generated_c import COMPILERS
from tests.small_models import floats, model, node, save


def separable() -> onnx.ModelProto:
    """Blocks of one architecture and many sizes."""
    nodes, weights, x = [], {}, "x"
    for number, (channels, results) in enumerate([(8, 12), (12, 16), (16, 20), (20, 20)]):
        weights[f"d{number}"] = floats(number, channels, 1, 3, 3)
        weights[f"p{number}"] = floats(number + 9, results, channels, 1, 1)
        nodes += [
            node("Conv", f"{x} d{number}", f"a{number}", pads=[1, 1, 1, 1], group=channels),
            node("Relu", f"a{number}", f"b{number}"),
            node("Conv", f"b{number} p{number}", f"c{number}"),
            node("Relu", f"c{number}", f"r{number}"),
        ]
        x = f"r{number}"
    nodes.append(node("GlobalAveragePool", x, "y"))
    return model("separable", nodes, [("x", (1, 8, 12, 10))], [("y", (1, 20, 1, 1))], weights)


def test_fewer_functions_compute_the_same(tmp_path: Path) -> None:
    path = save(separable(), tmp_path)
    plain, small = (compile(path, Options(prefer=prefer)) for prefer in ("time", "flash"))
    assert len(small.plan.functions) < len(plain.plan.functions) - 2
    sizes = [sum(map(len, map(function_text, package.plan.functions))) for package in (plain, small)]
    assert sizes[1] < sizes[0]
    assert check(path, Options(prefer="flash"), runs=1).ok


def test_each_step_brings_the_numbers_of_its_own(tmp_path: Path) -> None:
    plan = compile(save(separable(), tmp_path), Options(prefer="flash")).plan
    shared = [step for step in plan.steps() if step.table]
    assert len(shared) > 4
    for step in shared:
        assert step.table is not None and step.function.body.count("= sizes[") == len(step.table.numbers)


def test_a_long_function_of_several_is_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which read the numbers too."""
    monkeypatch.setattr(parts, "LONGEST", 10)
    monkeypatch.setattr(kernels, "_tidied", kernels._tidied.__wrapped__)
    weights, products, form = [], [], "K = 32, bits = 4, block_size = 32"
    for columns in (32, 48):
        packed, scales = (", ".join(str(n * 37 % 256) for n in range(columns * many)) for many in (16, 1))
        weights += [f"uint8[{columns},1,16] b{columns} = {{{packed}}}", f"float[{columns}] s{columns} = {{{scales}}}"]
        product = f"com.microsoft.MatMulNBits <{form}, N = {columns}> (x, b{columns}, s{columns})"
        products.append(f"y{columns} = {product}")
    results = "(float[3,32] y32, float[3,48] y48)"
    graph = f"products (float[3,32] x) => {results} <{', '.join(weights)}> {{ {' '.join(products)} }}"
    domains = '"": 17, "com.microsoft": 1'
    path = save(onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{domains}]> {graph}"), tmp_path)
    small = compile(path, Options(prefer="flash"))
    assert len(small.plan.functions) == 1
    assert "_tiles1(y, a, b, scale, " in small.files["products_kernels.c"].decode()
    assert check(path, Options(prefer="flash"), runs=1).ok


def lines(*widths: int) -> onnx.ModelProto:
    """Depthwise convolutions of lines that are so long. The one number that their functions do not share is 9 less."""
    nodes = [node("Conv", f"x{w} w{w}", f"y{w}", pads=[0, 1, 0, 1], group=8) for w in widths]
    ins, outs = ([(f"{name}{w}", (1, 8, 1, w)) for w in widths] for name in "xy")
    return model("lines", nodes, ins, outs, {f"w{w}": floats(1, 8, 1, 1, 3) for w in widths})


@pytest.mark.parametrize(
    ("most", "type_c"), [((1 << 15) - 1, "int16_t"), (1 << 15, "int32_t"), ((1 << 31) - 1, "int32_t")]
)
def test_a_table_has_the_narrowest_type_that_holds_its_numbers(most: int, type_c: str, tmp_path: Path) -> None:
    plan = compile(save(lines(most + 8, most + 9), tmp_path), Options(prefer="flash")).plan
    assert [(step.table.c, step.table.numbers) for step in plan.steps() if step.table] == [
        (type_c, (most - 1,)),
        (type_c, (most,)),
    ]


def test_numbers_that_no_table_holds_stay_in_their_functions(tmp_path: Path) -> None:
    plan = compile(save(lines((1 << 31) + 8, (1 << 31) + 9), tmp_path), Options(prefer="flash")).plan
    assert not any(step.table for step in plan.steps())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_warning(compiler: str, tmp_path: Path) -> None:
    compile(save(separable(), tmp_path), Options(prefer="flash")).write(tmp_path / "out")
    for name in ("separable.c", "separable_kernels.c"):
        command = [compiler, *COMPILERS[compiler], "-I.", "-Iruntime", "-c", name, "-o", "object.o"]
        done = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True)
        assert (done.returncode, done.stderr[:3000]) == (0, "")


@pytest.mark.parametrize("text", [
    "g (float[7,17] x, float[7,19] x2, int64[1] s) => (float[7,n] y, float[7,m] y2)"
    "<int64[1] e = {4611686018427387904}, int64[1] a = {1}> { y = Slice(x, s, e, a) y2 = Slice(x2, s, e, a) }",
    "g (float[7,17,5] x, int64[3] s) => (float[k,n,m] y)"
    "<int64[3] e = {99, 99, 99}, int64[3] a = {0, 1, 2}> { y = Slice(x, s, e, a) }",
    "g (float[3,5] x, float[4,6] z) => (bool[3,5] y, bool[4,6] w)"
    "{ s = Shape(x) c = CastLike(s, x) m = ReduceMax<keepdims=0>(c) y = Less(x, m)"
    "  t = Shape(z) d = CastLike(t, z) n = ReduceMax<keepdims=0>(d) w = Less(z, n) }",
])  # fmt: skip
def test_numbers_of_other_types_stay_in_their_functions(text: str, tmp_path: Path) -> None:
    path = save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path)
    assert check(path, Options(prefer="flash"), runs=2).ok
