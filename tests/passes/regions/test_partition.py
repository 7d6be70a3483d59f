"""Which regions an accelerator is given, and what is left to the core."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.driver import Options, compile, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.targets.api import Pool

# Takes what is not named `core...`; as an operand it gets its input backwards.
BACKEND = """
import numpy as np
from mccompile.accelerators.api import Accelerator, Built, No

class Taker(Accelerator):
    def takes(self, unit):
        return No("it is the core's") if unit.provenance[0].startswith("core") else None

    def build(self, region):
        if any(name.startswith("large") for name in region.provenance):
            return No("it is too large")
        code = '''
static int NAME(const mcc_external *call)
{
    const void *inputs[INS];
    void *results[OUTS];
    for (int i = 0; i < INS; ++i) { inputs[i] = call->operands[i].data; }
    for (int i = 0; i < OUTS; ++i) { results[i] = call->results[i].data; }
    return NAME_stand_in(inputs, results);
}'''.replace("NAME", region.name).replace("INS", str(len(region.inputs)))
        orders = {value: tuple(reversed(range(value.type.rank))) for value in region.inputs} if TURNED else {}
        constants = [np.full(100, 7, np.uint8)] * len(region.units)
        return Built(code.replace("OUTS", str(len(region.results))), CYCLES, constants, 64, 16, orders, WAITS)
"""
GRAPHS = {
    "line": "[a] h = Exp(x) [core] i = Sin(h) [b] j = Exp(i) [c] y = Cos(j)",
    "diamond": "[a] h = Exp(x) [core] i = Sin(h) [b] j = Cos(h) [c] y = Add(i, j)",
    "two ways": "[a] h = Exp(x) [b] i = Sin(h) [c] j = Cos(h) [d] y = Add(i, j)",
    "late": "[a] h = Exp(x) [b] i = Sin(h) [core] k = Sqrt(h) [c] l = Cos(i) [d] m = Add(l, k) [e] y = Mul(m, i)",
    "sides": "[core] h = Exp(x) [a] i = Sin(h) [b] j = Cos(h) [core2] y = Add(i, j)",
}
REGIONS = {
    "line": [["a"], ["b", "c"]],
    "diamond": [["a", "b"], ["c"]],
    "two ways": [["a", "b", "c", "d"]],
    "late": [["a", "b", "c"], ["d", "e"]],
    "sides": [["a"], ["b"]],
}


def near(size: int) -> tuple[Pool, ...]:
    """Two memories, of which steps work in one."""
    return Pool("fast", size, 0), Pool("slow", None, 1, copied=True)


def asked(folder: Path, cycles: float = 0.0, turned: bool = False, waits: float = 0.0) -> Options:
    text = BACKEND.replace("CYCLES", str(cycles)).replace("TURNED", str(turned)).replace("WAITS", str(waits))
    (folder / "backend.py").write_text(text, encoding="utf-8")
    return Options(accelerator=str(folder))


def network(nodes: str, ends: str = "(float[4,64] x) => (float[4,64] y)", weights: str = "") -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> m {ends} {weights} {{ {nodes} }}')


def taken(made: onnx.ModelProto, options: Options) -> list[list[str]]:
    partition = compile_graph(load_proto(made), options, "m").plan.partition
    assert partition is not None
    return [list(region.provenance) for region in partition.taken]


@pytest.mark.parametrize("name", GRAPHS)
def test_regions_are_the_largest_that_are_connected_and_convex(name: str, tmp_path: Path) -> None:
    assert taken(network(GRAPHS[name]), asked(tmp_path)) == REGIONS[name]


def test_what_cannot_be_built_does_not_keep_others_from_the_accelerator(tmp_path: Path) -> None:
    made = network(
        "[a] h = Exp(x) [large1] i = Sin(h) [b] j = Exp(i) [large2] k = Cos(j) [c] l = Sin(k) [d] y = Exp(l)"
    )
    partition = compile_graph(load_proto(made), asked(tmp_path), "m").plan.partition
    assert partition is not None
    assert [list(region.provenance) for region in partition.taken] == [["a"], ["b"], ["c", "d"]]
    assert [(unit.provenance, unit.why) for unit in partition.left] == [
        (("large1",), "it is too large"),
        (("large2",), "it is too large"),
    ]


LINE = "[a] h = Exp(x) [b] i = Sin(h) [c] j = Cos(i) [d] y = Exp(j)"
NARROWING = "[a] h = Exp(x) [b] i = ReduceMean(h, axes) [c] j = Cos(i) [d] y = Exp(j)"
FORKED = "[a] h = Exp(x) [b] i = Sin(h) [c] j = Cos(x) [d] y = Add(i, j)"


@pytest.mark.parametrize(
    ("nodes", "given", "regions"),
    [
        (LINE, {"weights_window": 512}, [["a", "b", "c", "d"]]),
        (LINE, {"weights_window": 256}, [["a", "b"], ["c", "d"]]),
        (FORKED, {"weights_window": 256}, [["a", "b"], ["c", "d"]]),
        (LINE, {"weights_window": 128}, [["a"], ["b"], ["c"], ["d"]]),
        (LINE, {"mem": near(2112)}, [["a", "b", "c", "d"]]),
        (LINE, {"mem": near(2100)}, []),
        (NARROWING, {"mem": near(1900)}, [["b", "c", "d"]]),
    ],
)
def test_regions_fit_the_memory_and_the_window(
    nodes: str, given: dict[str, Any], regions: list[list[str]], tmp_path: Path
) -> None:
    """Each has 100 bytes of constants for each operator, aligned to 64, and works in 64 bytes."""
    made = network(nodes, weights="<int64[1] axes = {1}>") if "axes" in nodes else network(nodes)
    if "axes" in nodes:
        made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(made, tmp_path / "m.onnx")
    options = replace(asked(tmp_path), **given)
    assert taken(made, options) == regions
    assert correctness.check(tmp_path / "m.onnx", options).ok


@pytest.mark.parametrize("name", ["diamond", "late"])
def test_a_region_gets_and_gives_axes_as_it_asks(name: str, tmp_path: Path) -> None:
    onnx.save(network(GRAPHS[name]), tmp_path / "m.onnx")
    options = asked(tmp_path, turned=True)
    assert correctness.check(tmp_path / "m.onnx", options).ok
    assert correctness.check(tmp_path / "m.onnx", replace(options, optimize=False, keep_inputs=True)).ok


@pytest.mark.parametrize("single_file", [False, True])
def test_regions_and_the_model_run_row_by_row_beside_each_other(single_file: bool, tmp_path: Path) -> None:
    """Each in functions of its own, in one file."""
    parts, last = [], "x"
    for part in ("a", "core", "b"):
        for number, weights in enumerate("wuuuv"):
            parts.append(f"[{part}{number}] {part}{number}v = Conv <pads = [1, 1, 1, 1]> ({last}, {weights})")
            last = f"{part}{number}v"
    made = network(" ".join(parts), f"(float[1,1,24,12] x) => (float[1,1,24,12] {last})")
    shapes = {"w": (8, 1, 3, 3), "u": (8, 8, 3, 3), "v": (1, 8, 3, 3)}
    draw = np.random.default_rng(1)
    for name, shape in shapes.items():
        made.graph.initializer.append(numpy_helper.from_array(draw.normal(0, 0.1, shape).astype(np.float32), name))
    onnx.save(made, tmp_path / "m.onnx")
    options = replace(asked(tmp_path), single_file=single_file)
    package = compile_graph(load_proto(made), options, "m")
    assert len({name for text in package.files.values() for name in re.findall(rb"\w*rows_of_\d+\(", text)}) > 12
    assert correctness.check(tmp_path / "m.onnx", options).ok


def test_what_does_not_pay_stays_on_the_core(tmp_path: Path) -> None:
    package = compile_graph(load_proto(network(GRAPHS["two ways"])), asked(tmp_path, 1e9), "m")
    partition = package.plan.partition
    assert partition is not None and not partition.taken
    assert {left.what for left in partition.left} == {"Exp", "Sin", "Cos", "Add"}
    assert all(left.why.startswith("it is slower: 1000000000 cycles there") for left in partition.left)


def test_waiting_for_constants_does_not_keep_a_region_from_the_accelerator(tmp_path: Path) -> None:
    options = asked(tmp_path, 1e9, waits=1e9 - 10)
    package = compile_graph(load_proto(network(GRAPHS["two ways"])), options, "m")
    partition = package.plan.partition
    assert partition is not None and [region.waits for region in partition.taken] == [1e9 - 10]
    assert "4 operators in 1000000000 cycles, 999999990 of them waiting for constants (" in partition.lines()[0]


QUANTIZED = """
    h = DequantizeLinear(x, s, z) [a] i = Relu(h) [a2] j = Add(i, i) k = QuantizeLinear(j, s2, z)
    l = DequantizeLinear(k, s2, z) [core] m = Sin(l) n = QuantizeLinear(m, s, z)
    o = DequantizeLinear(k, s2, z) p = DequantizeLinear(n, s, z) [b] q = Mul(o, p) y = QuantizeLinear(q, s, z)
"""


def test_a_region_that_later_passes_fold_is_not_told(tmp_path: Path) -> None:
    """Arithmetic on sizes, which an operator is composed of."""
    made = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 19, "com.microsoft" : 1]> m (int32[n,n] x) => (int32[n,n,1] y) '
        "<int32[2] factors = {5, 7}, int32[1] sizes = {25}> { y = com.microsoft.NGramHashMapping "
        "<max_ngram_size: int = 2, n_head_per_ngram: int = 1, pad_id: int = 9> (x, factors, sizes) }"
    )
    partition = compile_graph(load_proto(made, dims={"n": (2, 6)}), asked(tmp_path), "m").plan.partition
    assert partition is not None and partition.left and not partition.taken


def test_nodes_between_quantized_tensors_are_one_unit(tmp_path: Path) -> None:
    ends, weights = "(int8[4,64] x) => (int8[4,64] y)", "<float s = {0.02}, float s2 = {0.04}, int8 z = {3}>"
    onnx.save(network(QUANTIZED, ends, weights), tmp_path / "m.onnx")
    options = asked(tmp_path)
    assert correctness.check(tmp_path / "m.onnx", options).ok
    partition = compile(tmp_path / "m.onnx", options).plan.partition
    assert partition is not None
    assert [list(region.provenance) for region in partition.taken] == [["a", "a2"], ["b"]]
    assert [left.what for left in partition.left] == ["Sin"]


def test_a_dequantized_tensor_may_be_read_inside_and_outside_of_a_region(tmp_path: Path) -> None:
    """As quantizers write a tensor with two readers."""
    nodes = """
        h = DequantizeLinear(x, s, z) [a] i = Relu(h) k = QuantizeLinear(i, s2, z) l = DequantizeLinear(k, s2, z)
        [b] m = Neg(l) y = QuantizeLinear(m, s, z) [core] o = Sin(l) u = QuantizeLinear(o, s, z)
    """
    ends = "(int8[4,64] x) => (int8[4,64] y, int8[4,64] u)"
    weights = "<float s = {0.02}, float s2 = {0.04}, int8 z = {3}>"
    onnx.save(network(nodes, ends, weights), tmp_path / "m.onnx")
    options = asked(tmp_path)
    assert taken(onnx.load(tmp_path / "m.onnx"), options) == [["a", "b"]]
    assert correctness.check(tmp_path / "m.onnx", options).ok


def test_other_code_of_a_region_has_another_identity(tmp_path: Path) -> None:
    graphs, options = [load_proto(network(GRAPHS["line"])) for _ in range(2)], asked(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    asked(other)
    text = (other / "backend.py").read_text(encoding="utf-8").replace("static int", "/* new */ static int")
    (other / "backend.py").write_text(text, encoding="utf-8")
    made = [compile_graph(g, o, "m") for g, o in zip(graphs, [options, Options(accelerator=str(other))], strict=True)]
    assert made[0].identity != made[1].identity


def test_other_weights_of_a_region_are_not_for_its_code(tmp_path: Path) -> None:
    """The stand-in holds those that it was compiled with."""
    made = [network("[a] h = Exp(x) [b] y = Mul(h, w)", weights=f"<float[1] w = {{{w}}}>") for w in (2, 3)]
    identities = {compile_graph(load_proto(each), asked(tmp_path), "m").identity for each in made}
    assert len(identities) == 2


def test_dequantized_weights_of_a_region_may_be_an_output_too(tmp_path: Path) -> None:
    ends = "(int8[4,64] x) => (int8[4,64] y, float[64] l)"
    weights = "<float s = {0.02}, float s2 = {0.04}, int8 z = {3}, int8[64] w>"
    nodes = """h = DequantizeLinear(x, s, z) l = DequantizeLinear(w, s, z)
               [a] j = Add(h, l) y = QuantizeLinear(j, s2, z)"""
    made = network(nodes, ends, weights)
    del made.graph.initializer[:]
    numbers = {"s": np.float32(0.02), "s2": np.float32(0.04), "z": np.int8(3), "w": np.arange(64, dtype=np.int8)}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in numbers.items())
    onnx.save(made, tmp_path / "m.onnx")
    options = asked(tmp_path)
    assert taken(made, options) == [["a"]]
    assert correctness.check(tmp_path / "m.onnx", options).ok
