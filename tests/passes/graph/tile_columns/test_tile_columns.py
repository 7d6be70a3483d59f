"""Tiles of columns: every element is computed as before, wherever they begin and end and however many they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from onnx import ModelProto, numpy_helper, parser

from mccompile.base.column_tiles import ColumnTiles
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.targets import api as targets
from tests.passes.graph import exact_qdq
from tests.passes.qdq_graphs import BLOCKS, Net, some_integers
from tests.passes.qdq_graphs import network as qdq_network
from tests.thorough import some

# The first input is one; the others are weights.
NETWORKS = {
    "windows": """(float[1,3,11,13] x, float[6,3,3,3] w, float[6] b, float[4,6,3,3] v, float[5,4,3,3] u) => (
    float[1,5,3,3] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w, b)
        r = Relu(a)
        c = Conv <strides = [2, 2], auto_pad = "SAME_UPPER"> (r, v)
        y = Conv <dilations = [2, 2], pads = [0, 0, 1, 0]> (c, u)
    }""",
    "residual": """(float[1,4,9,10] x, float[4,1,5,5] w, float[12,4,1,1] v, float[12] b, float[12,1,1] s,
    float[4,12,3,3] u, float[4,4,3,3] t) => (float[1,4,9,10] y) {
        a = Conv <pads = [2, 2, 2, 2], group = 4> (x, w)
        h = HardSwish(a)
        e = Conv (h, v, b)
        p = PRelu(e, s)
        q = Conv <pads = [1, 1, 1, 1]> (p, u)
        z = Add(a, q)
        y = Conv <pads = [1, 1, 1, 1]> (z, t)
    }""",
    "pools": """(float[1,4,10,12] x, float[8,8,1,1] w) => (float[1,8,5,6] y) {
        m = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 0, 0]> (x)
        a = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (m)
        b = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (m)
        c = Concat <axis = 1> (a, b)
        y = Conv (c, w)
    }""",
    "padded": """(float[1,2,4,6] x, float[3,2,1,1] w, float[3,3,1,1] v) => (float[1,3,6,8] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w)
        r = Relu(a)
        y = Conv (r, v)
    }""",
    "scaled": """(float[1,2,5,6] x, float[3,2,3,3] w, float[6] k, float[2,3,3,3] v) => (float[1,2,5,6] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w)
        b = Mul(a, k)
        y = Conv <pads = [1, 1, 1, 1]> (b, v)
    }""",
    "wide": """(float[1,1,16,64] x, float[16,1,3,3] w, float[16,16,3,3] v, float[1,16,3,3] u) => (float[1,1,16,64] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w)
        b = Conv <pads = [1, 1, 1, 1]> (a, v)
        c = Relu(b)
        y = Conv <pads = [1, 1, 1, 1]> (c, u)
    }""",
    "blocks": """(float[1,8,12,12] x, float[4,8,3,3] w, float[12,4,1,1] v, float[4,12,3,3] u) => (float[1,4,6,6] y) {
        a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w)
        p = Conv (a, v)
        d = Conv <pads = [1, 1, 1, 1]> (p, u)
        b = Add(a, d)
        q = Conv (b, v)
        e = Conv <pads = [1, 1, 1, 1]> (q, u)
        y = Add(b, e)
    }""",
    "channels_last": """(float[1,9,11,3] x, float scale, float[4,3,3,3] w, float[4,4,3,3] v) => (float[1,4,5,6] y) {
        s = Mul(x, scale)
        t = Transpose <perm = [0, 3, 1, 2]> (s)
        a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (t, w)
        y = Conv <pads = [1, 1, 1, 1]> (a, v)
    }""",
}


def network(name: str) -> ModelProto:
    return with_weights(NETWORKS[name], len(name))


def with_weights(text: str, seed: int) -> ModelProto:
    """All inputs but the first become constants."""
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    chance = np.random.default_rng(seed)
    for weight in list(made.graph.input)[1:]:
        shape = [dim.dim_value for dim in weight.type.tensor_type.shape.dim]
        array = np.asarray(chance.standard_normal(shape), np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, weight.name))
        made.graph.input.remove(weight)
    return made


def package(made: ModelProto, **options: object) -> Package:
    return compile_graph(load_proto(made), Options(prefer="ram", **options), "net")


def results(found: Package, made: ModelProto) -> dict[str, np.ndarray]:
    (x,) = made.graph.input
    shape = [dim.dim_value for dim in x.type.tensor_type.shape.dim]
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    return build(found, targets.load("generic")).run({x.name: values})


def steps(found: Package) -> int:
    return len(list(found.plan.steps()))


def cuts_of(made: ModelProto) -> list[str]:
    return [cut.name for cut in package(made, recompute=16.0).cuts]


def in_two(made: ModelProto) -> Package:
    """With the longest part that begins with the input and can be computed in two tiles."""
    plain, (first, *others) = steps(package(made)), cuts_of(made)
    found = (package(made, column_tiles=(ColumnTiles(first, last, 2),)) for last in reversed(others))
    return next(each for each in found if steps(each) > plain)


@some(3, "name", sorted({*NETWORKS} - {"scaled"}))
def test_elements_are_those_of_the_whole(name: str) -> None:
    made = network(name)
    plain, cuts = package(made), cuts_of(made)
    (expected,) = results(plain, made).values()
    assert len(cuts) >= 3
    for first, last in {*combinations(cuts[::2], 2), (cuts[0], cuts[-1])}:
        for count in (2, 3):
            found = package(made, column_tiles=(ColumnTiles(first, last, count),))
            assert steps(found) > steps(plain), (first, last, count)
            (array,) = results(found, made).values()
            np.testing.assert_array_equal(array, expected, f"{first} to {last} in {count}")


@some(2, "block", [Net.conv, Net.add, Net.mul, Net.pool, Net.padded_pool, Net.join, Net.squash])
def test_integers_are_exact(block: Callable[[Net, str], str]) -> None:
    """With convolutions of all kinds around it."""
    conv = BLOCKS.index(Net.conv)
    model = qdq_network(BLOCKS.index(block), [conv, BLOCKS.index(block), conv, conv])
    inputs, found = some_integers(model), in_two(model)
    got = build(found, targets.load("generic")).run(inputs)
    for name, array in exact_qdq.run(model, inputs).items():
        np.testing.assert_array_equal(got[name], array)


def test_tiles_rescale_by_the_same_constants() -> None:
    model = qdq_network(5, [BLOCKS.index(Net.conv)] * 4)
    plain, tiles = (
        [entry.name for entry in made.plan.entries if "/multiplier" in entry.name]
        for made in (package(model), in_two(model))
    )
    assert len(plain) == len(tiles) == 4


def test_tiles_may_end_at_each_of_equally_small_values() -> None:
    """Two residual blocks follow a convolution that makes less: each value between them is as small."""
    made = network("blocks")
    ends = {cost.column_tiles.last for cost in package(made, recompute=4.0).column_tiles}
    assert {"a", "b", "y"} <= ends


def test_there_are_as_few_tiles_of_each_width_as_can_be() -> None:
    made = network("wide")
    counts = {2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 22, 32}
    assert {cost.column_tiles.count for cost in package(made, recompute=4.0).column_tiles} == counts


def test_a_tile_with_nothing_but_padding_is_not_made() -> None:
    """The first of eight columns is of the first convolution's padding alone."""
    made = network("padded")
    first, *_, last = cuts_of(made)
    assert steps(package(made, column_tiles=(ColumnTiles(first, last, 4),))) > steps(package(made))
    assert steps(package(made, column_tiles=(ColumnTiles(first, last, 8),))) == steps(package(made))


def test_columns_of_a_constant_are_not_cut_apart() -> None:
    made = network("scaled")
    first, *_, last = cuts_of(made)
    assert steps(package(made, column_tiles=(ColumnTiles(first, last, 2),))) == steps(package(made))


def test_rings_are_as_wide_as_tiles() -> None:
    made = network("wide")
    first, *_, last = cuts_of(made)
    whole, tiles = package(made), package(made, column_tiles=(ColumnTiles(first, last, 4),))
    assert tiles.plan.arena_bytes < 0.7 * whole.plan.arena_bytes
    assert whole.macs < tiles.macs < 1.3 * whole.macs
