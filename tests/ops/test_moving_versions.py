"""Every version of every operator that moves or makes data gives what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx
import pytest

from .bundle import One, Outcome, outcomes

# each at which one of these operators changed
OPSETS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24)
RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = RANDOM.standard_normal((2, 8, 3, 5)).astype(np.float32)
BYTES = RANDOM.integers(0, 255, (1, 2, 4, 6)).astype(np.uint8)
HALF = X.astype(np.float16)


COMPUTED = {"Resize", "Upsample", "Range", "GridSample", "RoiAlign", "Col2Im"}  # by sums and products, which round


def since(name: str, opset: int) -> int:
    """The version of an operator that an opset means; 0 where it has none, or has dropped it."""
    try:
        schema = onnx.defs.get_schema(name, max_inclusive_version=opset, domain="")
    except onnx.defs.SchemaError:
        return 0
    return 0 if schema.deprecated else int(schema.since_version)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def given(op: str, x: list[np.ndarray | None], name: str, value: np.ndarray, attribute: bool, **more: object) -> One:
    """What was an attribute once and is a constant operand now."""
    label = f"{op}_{'_'.join(map(str, value.reshape(-1))) or 'none'}_{'_'.join(map(str, more.values()))}"
    label = "".join(c if c.isalnum() else "_" for c in label)
    if attribute:
        return One(label, op, x, {name: value.tolist(), **more})
    return One(label, op, [*x, value], more, frozenset({len(x)}))


def shapes(opset: int) -> Iterator[One]:
    yield One("Reshape", "Reshape", [X, ints(0, -1)], {}, frozenset({1}))
    yield One("Reshape_scalar", "Reshape", [X[:1, :1, :1], ints()], {}, frozenset({1}))
    if opset >= 14:
        yield One("Reshape_zero", "Reshape", [X[:0], ints(0, 5)], {"allowzero": 1}, frozenset({1}))
    for axis in (0, 1, 3, *((-1,) if opset >= 11 else ())):
        yield One(f"Flatten_{axis}".replace("-", "m"), "Flatten", [X], {"axis": axis})
    old = opset < 13
    yield given("Squeeze", [IMAGE[:1, :, :1]], "axes", ints(0, 2), old)
    yield One("Squeeze_all", "Squeeze", [IMAGE[:1, :, :1]])
    yield given("Unsqueeze", [X], "axes", ints(0, 3), old)
    if opset >= 11:
        yield given("Unsqueeze", [X], "axes", ints(-1, 1), old)
    yield One("Transpose", "Transpose", [X])
    yield One("Transpose_perm", "Transpose", [IMAGE], {"perm": [0, 2, 3, 1]})
    yield One("Transpose_f16", "Transpose", [HALF], {"perm": [1, 0, 2]})
    yield One("Shape", "Shape", [X])
    yield One("Size", "Size", [X])
    if opset >= 15:
        yield One("Shape_part", "Shape", [IMAGE], {"start": -3, "end": 3})


def joined(opset: int) -> Iterator[One]:
    yield One("Concat", "Concat", [X, X[:, :1], X[:, 1:]], {"axis": 1})
    yield One("Concat_last", "Concat", [BYTES, BYTES[..., :1]], {"axis": 3})
    yield One("Concat_one", "Concat", [X], {"axis": 0})
    if opset >= 13:
        yield One("Split", "Split", [X, ints(1, 3)], {"axis": 2}, frozenset({1}), outs=2)
    else:
        yield One("Split", "Split", [X], {"axis": 2, "split": [1, 3]}, outs=2)
    if opset < 18:
        yield One("Split_equal", "Split", [X], {"axis": 1}, outs=3)
    else:
        yield One("Split_uneven", "Split", [IMAGE], {"axis": 3, "num_outputs": 3}, outs=3)
    bounds = [
        ("plain", (1, 0), (3, 2), (2, 0), (1, 1)),
        ("far", (-100, -2), (100, 2**40), (1, 2), (1, 1)),
        ("backwards", (-1, 100), (0, -100), (1, 2), (-1, -2)),
        ("nothing", (3,), (1,), (2,), (1,)),
    ]
    for name, starts, ends, axes, steps in bounds:
        if opset >= 10:
            more = [np.array(v, np.int64) for v in (starts, ends, axes, steps)]
            yield One(f"Slice_{name}", "Slice", [X, *more], {}, frozenset(range(1, 5)))
        elif min(steps) > 0:
            yield One(f"Slice_{name}", "Slice", [X], {"starts": starts, "ends": ends, "axes": axes})
    yield One("Tile", "Tile", [X, ints(2, 1, 3)], {}, frozenset({1}))
    yield One("Expand", "Expand", [X[:, :1], ints(5, 1, 3, 1)], {}, frozenset({1}))
    for mode in ("constant", "reflect", "edge", *(("wrap",) if opset >= 19 else ())):
        pads = ints(0, 0, 1, 2, 0, 0, 1, 3)
        if opset < 11:
            yield One(f"Pad_{mode}", "Pad", [IMAGE], {"mode": mode, "pads": pads.tolist(), "value": 1.5})
            continue
        value = np.array(1.5, np.float32) if mode == "constant" else None
        yield One(f"Pad_{mode}", "Pad", [IMAGE, pads, value], {"mode": mode}, frozenset({1, 2}))
    if opset >= 11:
        computed = np.array(-2.5, np.float32)
        yield One("Pad_negative", "Pad", [IMAGE, ints(0, -2, -1, 1, 0, 1, 2, -3), computed], {}, frozenset({1}))
    if opset >= 18:
        yield One("Pad_axes", "Pad", [IMAGE, ints(1, 2, 3, 4), None, ints(-1, 1)], {}, frozenset({1, 3}))
        yield One("CenterCropPad", "CenterCropPad", [IMAGE, ints(4, 8, 3, 2)], {}, frozenset({1}))
        yield One("CenterCropPad_axes", "CenterCropPad", [IMAGE, ints(6, 3)], {"axes": [2, 1]}, frozenset({1}))


def blocks(opset: int) -> Iterator[One]:
    yield One("DepthToSpace", "DepthToSpace", [IMAGE], {"blocksize": 2})
    if opset >= 11:
        yield One("DepthToSpace_CRD", "DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "CRD"})
    yield One("SpaceToDepth", "SpaceToDepth", [IMAGE.reshape(2, 5, 4, 6)], {"blocksize": 2})


def indexed(opset: int) -> Iterator[One]:
    some = ints(2, 0, 1, 1)
    wild = np.array([[2, -1], [0, -3]], np.int32) if opset >= 11 else np.array([[2, 1], [0, 0]], np.int32)
    for constant in (frozenset({1}), frozenset[int]()):
        name = "constant" if constant else "computed"
        yield One(f"Gather_{name}", "Gather", [X, some], {"axis": 1}, constant)
        yield One(f"Gather_matrix_{name}", "Gather", [X, wild], {"axis": 1}, constant)
        yield One(f"Gather_scalar_{name}", "Gather", [X, np.array(2)], {"axis": 2}, constant)
        yield One(f"Gather_bytes_{name}", "Gather", [BYTES, ints(3, 1, 2)], {"axis": 2}, constant)
        places = RANDOM.integers(0, 4, (2, 2, 3))
        yield One(f"GatherElements_{name}", "GatherElements", [X, places], {"axis": 2}, constant)
        yield One(f"GatherND_{name}", "GatherND", [X, np.array([[[1, 2]], [[0, -1]]])], {}, constant)
        yield One(f"ScatterElements_{name}", "ScatterElements", [X, places, X[:2, :2, :3]], {"axis": 2}, constant)
        if opset < 11:
            yield One(f"Scatter_{name}", "Scatter", [X, places, X[:2, :2, :3]], {"axis": 2}, constant)
        yield One(f"ScatterND_{name}", "ScatterND", [X, np.array([[1, 2], [0, -3]]), X[0, :2]], {}, constant)
        if opset >= 12:
            batched = [IMAGE, RANDOM.integers(0, 3, (2, 8, 4, 1))]
            yield One(f"GatherND_batch_{name}", "GatherND", batched, {"batch_dims": 2}, constant)
    for reduction in ("add", "mul", *(("max", "min") if opset >= 18 else ())):
        if opset >= 16:
            operands = [X, ints(0, 1, 0, -1).reshape(1, 4, 1), X[:1, 1:2].reshape(1, 4, 1)]
            yield One(f"ScatterElements_{reduction}", "ScatterElements", operands, {"axis": 1, "reduction": reduction})
            rows = [X, ints(1, 0, 1).reshape(3, 1), np.stack([X[0], X[1], X[0]])]
            yield One(f"ScatterND_{reduction}", "ScatterND", rows, {"reduction": reduction})
    pick = np.array([True, False, True, True])
    yield One("Compress", "Compress", [X, pick], {"axis": 2}, frozenset({1}))
    yield One("Compress_flat", "Compress", [X, np.array([False, True, True, False, True])], {}, frozenset({1}))
    lengths = ints(2, 1, 3)
    yield One("ReverseSequence", "ReverseSequence", [X, lengths[:2]], {"batch_axis": 0, "time_axis": 1})
    yield One("ReverseSequence_time", "ReverseSequence", [X.transpose(1, 2, 0)[:, :3], lengths[:3]], {})


def made(opset: int) -> Iterator[One]:
    for axis in (-1, 0, 1):
        operands = [np.array([[0, 3], [-1, 7]]), np.array(4), np.array([2.5, -1], np.float32)]
        yield One(f"OneHot_{axis}".replace("-", "m"), "OneHot", operands, {"axis": axis}, frozenset({1}))
    yield One("EyeLike", "EyeLike", [X[0]], {"k": 1})
    yield One("EyeLike_i32", "EyeLike", [X[0]], {"k": -1, "dtype": 6})
    if opset >= 14:
        yield One("Trilu", "Trilu", [X])
        yield One("Trilu_lower", "Trilu", [X, np.array(-1)], {"upper": 0})
    one = onnx.numpy_helper.from_array(np.array([3], np.int32))
    yield One("ConstantOfShape", "ConstantOfShape", [ints(2, 3)], {"value": one}, frozenset({0}))
    for name, dtype, bounds in (("i64", np.int64, (10, -3, -4)), ("f32", np.float32, (0.5, 3.2, 0.4))):
        yield One(f"Range_{name}", "Range", [np.array(v, dtype) for v in bounds], {}, frozenset({0, 1, 2}))
    ties = np.array([[3, 1, 3, 2, 3, 0], [0, 0, 0, 0, 0, 1]], np.float32)
    if opset < 10:
        yield One("TopK", "TopK", [ties], {"k": 4}, outs=2)
        return
    yield One("TopK", "TopK", [ties, ints(4)], {}, frozenset({1}), outs=2)
    yield One("TopK_all", "TopK", [IMAGE, ints(8)], {"axis": 1}, frozenset({1}), outs=2)
    if opset >= 11:
        yield One("TopK_least", "TopK", [ties, ints(5)], {"largest": 0}, frozenset({1}), outs=2)
        numbers = RANDOM.integers(-50, 50, (4, 300))
        yield One("TopK_long", "TopK", [numbers, ints(17)], {}, frozenset({1}), outs=2)


def resized(opset: int) -> Iterator[One]:
    whole, broken = np.array([1, 1, 2, 3], np.float32), np.array([1, 1, 0.6, 0.4], np.float32)
    mixed = np.array([1, 1, 0.7, 1.6], np.float32)
    for name, scales in (("whole", whole), ("broken", broken), ("mixed", mixed)):
        for mode in ("nearest", "linear"):
            if opset < 9 and (scales >= 1).all():
                yield One(f"Upsample_{mode}_{name}", "Upsample", [IMAGE], {"mode": mode, "scales": scales.tolist()})
            elif opset == 9 and (scales >= 1).all():
                yield One(f"Upsample_{mode}_{name}", "Upsample", [IMAGE, scales], {"mode": mode}, frozenset({1}))
            elif opset == 10:
                yield One(f"Resize_{mode}_{name}", "Resize", [IMAGE, scales], {"mode": mode}, frozenset({1}))
    if opset < 11:
        return
    none = np.array([], np.float32)
    for way in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for mode in ("nearest", "linear", "cubic"):
            attributes = {"mode": mode, "coordinate_transformation_mode": way}
            operands = [IMAGE, none, none, ints(2, 8, 7, 4)]
            yield One(f"Resize_{mode}_{way}", "Resize", operands, attributes, frozenset({1, 2, 3}))
    for how in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        for name, scales in (("whole", whole), ("broken", broken), ("mixed", mixed)):
            operands = [IMAGE, none, scales]
            yield One(f"Resize_{how}_{name}", "Resize", operands, {"nearest_mode": how}, frozenset({1, 2}))
    attributes = {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}
    yield One("Resize_outside", "Resize", [IMAGE, none, mixed], attributes, frozenset({1, 2}))
    region = np.array([0, 0, 0.1, 0.7, 1, 1, 1.3, 0.2], np.float32)
    for mode in ("nearest", "linear"):
        crop = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
        yield One(f"Resize_crop_{mode}", "Resize", [IMAGE, region, none, ints(2, 8, 5, 7)], crop, frozenset({1, 2, 3}))
    three = RANDOM.standard_normal((1, 1, 3, 4, 5)).astype(np.float32)
    operands = [three, none, none, ints(1, 1, 5, 3, 7)]
    yield One("Resize_three", "Resize", operands, {"mode": "linear"}, frozenset({1, 2, 3}))
    if opset >= 18:
        for policy in ("not_larger", "not_smaller"):
            attributes = {"keep_aspect_ratio_policy": policy, "axes": [3, 2], "mode": "linear"}
            operands = [IMAGE, None, None, ints(9, 8)]
            yield One(f"Resize_{policy}", "Resize", operands, attributes, frozenset({3}))
        yield One("Resize_up", "Resize", [IMAGE, None, whole], {"mode": "linear", "antialias": 1}, frozenset({2}))


def sampled(opset: int) -> Iterator[One]:
    grid = RANDOM.uniform(-1.6, 1.6, (2, 4, 6, 2)).astype(np.float32)
    modes = ("bilinear", "nearest", "bicubic") if opset < 20 else ("linear", "nearest", "cubic")
    for mode in modes:
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
                yield One(f"GridSample_{mode}_{padding}_{align}", "GridSample", [IMAGE, grid], attributes)
    rois = np.array([[0, 0, 4, 2], [1.2, 0.3, 2.9, 2.7], [-3, -1, 9, 8], [3, 2, 1, 1]], np.float32)
    for name, more in (("plain", {}), ("fine", {"sampling_ratio": 2, "spatial_scale": 0.5}), ("most", {"mode": "max"})):
        attributes = {"output_height": 3, "output_width": 2, **more}
        yield One(f"RoiAlign_{name}", "RoiAlign", [IMAGE, rois, ints(0, 1, 1, 0)], attributes)
    if opset >= 18:
        columns = RANDOM.standard_normal((2, 12, 9)).astype(np.float32)
        attributes = {"strides": [2, 1], "pads": [1, 0, 1, 0], "dilations": [1, 2]}
        yield One("Col2Im", "Col2Im", [columns, ints(4, 5), ints(2, 2)], attributes, frozenset({1, 2}))
    if opset >= 24:
        rows = RANDOM.standard_normal((2, 8, 2, 5)).astype(np.float32)
        yield One("TensorScatter", "TensorScatter", [IMAGE, rows, ints(1, 0)], {})
        yield One("TensorScatter_around", "TensorScatter", [IMAGE, rows, ints(2, 1)], {"mode": "circular"})


def wanted(opset: int) -> list[One]:
    """What changed with this opset (everything at the first), and is valid there."""
    families = (shapes, joined, blocks, indexed, made, resized, sampled)
    ones = [one for family in families for one in family(opset)]
    return [one for one in ones if since(one.op, opset) and (since(one.op, opset) == opset or opset == OPSETS[0])]


@cache
def results(opset: int) -> dict[str, list[Outcome]]:
    return outcomes(opset, wanted(opset))


CASES = [(opset, one.label) for opset in OPSETS for one in wanted(opset)]


@pytest.mark.parametrize(("opset", "label"), CASES, ids=str)
def test_same_as_onnxruntime(opset: int, label: str) -> None:
    for outcome in results(opset)[label]:
        got, want = outcome.got, outcome.want
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if label.split("_")[0] in COMPUTED:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)
