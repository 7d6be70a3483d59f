"""Pools: what onnxruntime gives, at every opset at which one of them changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx
import pytest

from mccompile.base import dims
from mccompile.base.dtypes import DType, f32, i32
from mccompile.base.tensor import Shape, TensorType
from mccompile.graph.ir import Fact, Invalid, Site
from mccompile.ops.pool import AveragePool, GlobalAveragePool, LpPool, MaxPool, MaxRoiPool

from .bundle import One, Outcome, outcomes

OPSETS = (7, 8, 10, 11, 12, 18, 19)
X = np.random.default_rng(5).permutation(2 * 3 * 9 * 10).reshape(2, 3, 9, 10).astype(np.float32) - 250
POOLS = ("MaxPool", "AveragePool", "LpPool")


def simple() -> Iterator[One]:
    for op in POOLS:
        yield One(f"{op}_plain", op, [X], {"kernel_shape": (3, 2)})
        yield One(f"{op}_padded", op, [X], {"kernel_shape": (3, 3), "pads": (1, 0, 2, 1), "strides": (2, 3)})
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            yield One(f"{op}_{mode}", op, [X], {"kernel_shape": (2, 4), "auto_pad": mode, "strides": (2, 3)})
        yield One(f"{op}_line", op, [X[0]], {"kernel_shape": (4,), "strides": (3,)})
        yield One(f"{op}_space", op, [X[None]], {"kernel_shape": (2, 3, 2), "strides": (1, 2, 3)})
        yield One(f"{op}_overhanging", op, [X], {"kernel_shape": (2, 3), "strides": (2, 4), "ceil_mode": 1})
        valid = {"auto_pad": "VALID", "ceil_mode": 1, "count_include_pad": 1}
        valid = {name: valid[name] for name in valid if name != "count_include_pad" or op == "AveragePool"}
        yield One(f"{op}_valid_overhanging", op, [X], {"kernel_shape": (2, 3), "strides": (2, 4), **valid})
        yield One(f"{op}_dilated", op, [X], {"kernel_shape": (3, 2), "dilations": (2, 3)})
    for p in (1, 3):
        yield One(f"LpPool_{p}", "LpPool", [X], {"kernel_shape": (3, 2), "p": p})
        yield One(f"GlobalLpPool_{p}", "GlobalLpPool", [X], {"p": p})
    include = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (2, 2), "count_include_pad": 1}
    yield One("AveragePool_with_pad", "AveragePool", [X], include)
    for op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        yield One(op, op, [X])
    yield One("MaxPool_f64", "MaxPool", [X.astype(np.float64)], {"kernel_shape": (2, 2)})
    for dtype in (np.int8, np.uint8):
        yield One(f"MaxPool_{dtype.__name__}", "MaxPool", [X.astype(dtype)], {"kernel_shape": (2, 2)})
    for order in (0, 1):
        attributes = {"kernel_shape": (3, 2), "strides": (2, 2), "pads": (1, 1, 1, 0), "storage_order": order}
        yield One(f"MaxPool_places_{order}", "MaxPool", [X], attributes, outs=2)
        space = {"kernel_shape": (2, 2, 3), "storage_order": order}
        yield One(f"MaxPool_places_{order}_in_space", "MaxPool", [X[None]], space, outs=2)
    places = np.array([[[[5, 7], [13, 15]], [[17, 19], [26, 31]]]], np.int64)
    unpool = {"kernel_shape": (2, 2), "strides": (3, 3)}
    yield One("MaxUnpool", "MaxUnpool", [X[:1, :2, :2, :2], places], {"kernel_shape": (2, 2), "strides": (2, 2)})
    yield One("MaxUnpool_strides", "MaxUnpool", [X[:1, :2, :2, :2], places + 9], unpool)
    corners = [[0, 1, 1, 5, 6], [1, 0, 0, 8, 7], [0, 3, 3, 3, 3], [1, 6, 5, 20, 30], [0, 5, 5, 2, 2]]
    regions = np.array([*corners, [-0.25, 1, 1, 5, 6], [1.75, 2, 0, 7, 5]], np.float32)
    for scale in (1.0, 0.5):
        yield One(f"MaxRoiPool_{scale}", "MaxRoiPool", [X, regions], {"pooled_shape": (2, 3), "spatial_scale": scale})


def wanted(opset: int) -> list[One]:
    """What changed with this opset (everything at the first), and is valid there."""
    found = []
    for one in simple():
        try:
            schema = onnx.defs.get_schema(one.op, max_inclusive_version=opset, domain="")
        except onnx.defs.SchemaError:
            continue
        fresh = schema.since_version == opset or opset == OPSETS[0]
        floating = one.ins[0] is not None and one.ins[0].dtype.kind == "f"
        if fresh and set(one.attributes) <= set(schema.attributes) and (floating or opset >= 12):
            found.append(one)
    return found


@cache
def results(opset: int) -> dict[str, list[Outcome]]:
    return outcomes(opset, wanted(opset))


@pytest.mark.parametrize(("opset", "label"), [(n, one.label) for n in OPSETS for one in wanted(n)], ids=str)
def test_same_as_onnxruntime(opset: int, label: str) -> None:
    for outcome in results(opset)[label]:
        assert (outcome.got.dtype, outcome.got.shape) == (outcome.want.dtype, outcome.want.shape)
        if outcome.want.dtype.kind == "f":
            np.testing.assert_allclose(outcome.got, outcome.want, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(outcome.got, outcome.want)


def site(*shapes: Shape, dtype: DType = f32) -> Site:
    return Site(tuple(Fact(TensorType(dtype, shape)) for shape in shapes), 1)


def test_overhanging_window_over_a_free_size() -> None:
    w = dims.symbol("w", 4, 9)
    [fact] = MaxPool((2, 2), ceil_mode=1, strides=(3, 3)).infer(site((1, 1, 8, w)))
    assert [dims.evaluate(fact.type.shape[3], {"w": n}) for n in range(4, 10)] == [2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize(
    ("op", "given"),
    [
        (MaxPool((3, 3)), site((1, 2, 2, 8))),
        (MaxPool((4, 2), auto_pad="VALID", ceil_mode=1, dilations=(3, 1)), site((1, 2, 9, 3))),
        (MaxPool((3,)), site((1, 2, 8, 8))),
        (MaxPool((3, 3), storage_order=2), site((1, 2, 8, 8))),
        (MaxPool((3, 3), pads=(1, 1)), site((1, 2, 8, 8))),
        (AveragePool((0, 3)), site((1, 2, 8, 8))),
        (AveragePool((3, 3)), site((1, 2, 8, 8), dtype=i32)),
        (LpPool((3, 3), p=0), site((1, 2, 8, 8))),
        (GlobalAveragePool(), site((2, 8))),
        (MaxRoiPool((2, 2)), site((1, 2, 8, 8), (3, 4))),
    ],
)
def test_contradiction_is_named(op: MaxPool, given: Site) -> None:
    with pytest.raises(Invalid):
        op.infer(given)
