"""Results whose size follows from data, or is given before a run: true sizes are reported, later operators follow."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile import backend
from mccompile.base.errors import CheckFailed, UnsupportedModel, WrongUse
from mccompile.frontend.load import load_proto

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def model(text: str, **weights: np.ndarray) -> ModelProto:
    made = parser.parse_model(HEAD + text)
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def check(made: ModelProto, *runs: dict[str, np.ndarray], **options: object) -> None:
    session = onnxruntime.InferenceSession(made.SerializeToString())
    rep = backend.prepare(made, flags=STRICT, **options)
    for given in runs:
        feed = {name: np.asarray(array) for name, array in given.items()}
        for got, want in zip(rep.run(feed), session.run(None, feed), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            assert got.dtype == want.dtype


def test_nonzero_from_none_to_all() -> None:
    made = model("g (float[2,3] x) => (int64[2,n] y) { y = NonZero(x) }")
    some = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    check(made, {"x": some}, {"x": np.zeros((2, 3), np.float32)}, {"x": np.ones((2, 3), np.float32)})


def test_operators_after_a_measured_size() -> None:
    made = model(
        "g (float[4,3] x, bool[4] c) => (float[n,3] y, float[m,2] z)"
        "{ a = Compress<axis=0>(x, c) b = Relu(a) d = Concat<axis=0>(b, x, a) y = Add(d, s) z = MatMul(a, w) }",
        s=np.array([1, 2, 3], np.float32),
        w=np.arange(6, dtype=np.float32).reshape(3, 2),
    )
    x = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    for flags in ([1, 0, 1, 1], [0, 0, 1, 0]):
        check(made, {"x": x, "c": np.array(flags, bool)})


@pytest.mark.parametrize("sorted_", [0, 1])
def test_unique(sorted_: int) -> None:
    results = "(float[n] y, int64[n] a, int64[12] b, int64[n] c)"
    made = model(f"g (float[3,4] x) => {results} {{ y, a, b, c = Unique<sorted={sorted_}>(x) }}")
    x = np.array([[3, 1, 3, 2], [2, 2, -1, 3], [1, 0, 0, 0]], np.float32)
    check(made, {"x": x}, {"x": -x}, {"x": np.zeros((3, 4), np.float32)})


def test_non_max_suppression() -> None:
    made = model(
        "g (float[1,40,4] b, float[1,2,40] s, int64[1] k, float[1] o, float[1] t) => (int64[n,3] y)"
        "{ y = NonMaxSuppression(b, s, k, o, t) }"
    )
    random = np.random.default_rng(1)
    boxes, scores = (random.random(shape, np.float32) for shape in ((1, 40, 4), (1, 2, 40)))
    for most, overlap, threshold in ((3, 0.2, 0.1), (50, 0.9, 0.0), (2, 0.0, 2.0), (7, 0.1, 0.5)):
        scalars = {"o": np.array([overlap], np.float32), "t": np.array([threshold], np.float32)}
        check(made, {"b": boxes, "s": scores, "k": np.array([most], np.int64), **scalars})


def test_sizes_given_before_a_run() -> None:
    made = model(
        "g (float[batch,3] x) => (float[batch,2] y, float[batch,3] z) { z = Sigmoid(x) a = Gemm(z, w) y = Relu(a) }",
        w=np.arange(6, dtype=np.float32).reshape(3, 2) - 3,
    )
    random = np.random.default_rng(2)
    inputs = [{"x": random.standard_normal((size, 3)).astype(np.float32)} for size in (8, 1, 5)]
    check(made, *inputs, dims={"batch": (1, 8)})
    rep = backend.prepare(made, dims={"batch": (1, 8)})
    for size in (0, 9):
        with pytest.raises(CheckFailed, match="outside the bounds"):
            rep.run({"x": np.zeros((size, 3), np.float32)})


def test_pictures_of_a_batch_that_is_not_fixed() -> None:
    random = np.random.default_rng(3)
    made = model(
        "g (float[batch,3,7,7] x) => (float[batch,4] y)"
        "{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = MaxPool<kernel_shape=[2,2]>(b) d = GlobalAveragePool(c)"
        " y = Flatten(d) }",
        w=random.standard_normal((4, 3, 3, 3)).astype(np.float32),
    )
    inputs = [{"x": random.standard_normal((size, 3, 7, 7)).astype(np.float32)} for size in (3, 1)]
    check(made, *inputs, dims={"batch": (1, 3)})


def test_a_bound_keeps_buffers_small_and_ends_a_run_that_exceeds_it() -> None:
    made = model(
        "g (float[40,3] x, bool[40] c) => (float[n,3] y, int64[2,m] z)"
        "{ z = NonZero(x) a = Compress<axis=0>(x, c) y = Relu(a) }"
    )
    x = np.zeros((40, 3), np.float32)
    x[[3, 7], 1] = 1, -2
    flags = np.zeros(40, np.bool_)
    flags[[3, 5, 39]] = True
    check(made, {"x": x, "c": flags}, bounds={"z": (4,), "a": (3,)})
    rep = backend.prepare(made, bounds={"z": (4,), "a": (3,)})
    for name, wrong in (("x", np.ones((40, 3), np.float32)), ("c", np.ones(40, np.bool_))):
        with pytest.raises(CheckFailed, match="size"):
            rep.run({"x": x, "c": flags} | {name: wrong})


def test_a_dimension_that_the_file_names_is_bounded() -> None:
    made = model(
        "g (float[1,6,4] b, float[1,2,6] s, int64[1] k, float[1] o, float[1] t) => (int64[selected,3] y)"
        "{ y = NonMaxSuppression(b, s, k, o, t) }"
    )
    random = np.random.default_rng(1)
    feed = {"b": random.random((1, 6, 4), np.float32), "s": random.random((1, 2, 6), np.float32)}
    feed |= {"k": np.array([3]), "o": np.array([0.2], np.float32), "t": np.array([0.1], np.float32)}
    check(made, feed, bounds={"selected": (6,)})
    with pytest.raises(CheckFailed, match="size"):
        backend.prepare(made, bounds={"selected": (2,)}).run({**feed, "o": np.array([1.0], np.float32)})


def test_a_bound_that_nothing_goes_by_is_refused() -> None:
    made = model("g (float[2,3] x) => (int64[2,n] y) { y = NonZero(x) }")
    with pytest.raises(WrongUse, match=r"nothing is bounded by 'z'.*\n.*\n.*follow from data are those of y"):
        backend.prepare(made, bounds={"z": (4,)})


X = np.arange(24, dtype=np.float32).reshape(4, 6) - 7
COMPUTED = {
    "top_k": (
        "(float[4,6] x, int64[1] k) => (float[4,n] y, int64[4,n] i) { y, i = TopK(x, k) }",
        [{"x": X, "k": np.array([k])} for k in (6, 1, 3)],
        {"x": X, "k": np.array([7])},
        {},
    ),
    "range": (
        "(int64 a, int64 b, int64 c) => (int64[n] y) { r = Range(a, b, c) y = Neg(r) }",
        [{"a": np.int64(a), "b": np.int64(b), "c": np.int64(c)} for a, b, c in ((0, 9, 1), (5, -4, -2), (3, 3, 1))],
        {"a": np.int64(0), "b": np.int64(11), "c": np.int64(1)},
        {"r": (10,)},
    ),
    "range_of_floats": (
        "(float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }",
        [{"a": np.float32(a), "b": np.float32(b), "c": np.float32(c)} for a, b, c in ((0, 1, 0.25), (2, -1, -0.7))],
        {"a": np.float32(0), "b": np.float32(1), "c": np.float32(1e-30)},
        {"n": (10,)},
    ),
    "zeros": (
        "(int64[2] s) => (float[n,m] y) { z = ConstantOfShape(s) y = Cos(z) }",
        [{"s": np.array(s)} for s in ((3, 5), (1, 1), (0, 4))],
        {"s": np.array((4, 5))},
        {"z": (3, 5)},
    ),
    "slice": (
        "(float[4,6] x, int64[1] a, int64[1] b) => (float[4,n] y, float[m,6] z)"
        "{ s = Slice(x, a, b, one) y = Relu(s) z = Slice(x, a, b, zero, two) }",
        [{"x": X, "a": np.array([a]), "b": np.array([b])} for a, b in ((0, 6), (1, -1), (-3, 99), (5, 2))],
        None,
        {},
    ),
    "expand": (
        "(float[4,1] x, int64[3] s) => (float[n,4,m] y) { e = Expand(x, s) y = Relu(e) }",
        [{"x": X[:, :1], "s": np.array(s)} for s in ((2, 4, 3), (1, 1, 1), (3, 1, 5))],
        {"x": X[:, :1], "s": np.array((4, 4, 5))},
        {"e": (3, 4, 5)},
    ),
    "reshape": (
        "(float[4,6] x, int64[2] s) => (float[n,m] y) { r = Reshape(x, s) y = Relu(r) }",
        [{"x": X, "s": np.array(s)} for s in ((8, 3), (-1, 12), (4, -1), (0, 0))],
        {"x": X, "s": np.array((1, 24))},
        {"r": (8, 12)},
    ),
    "flat": (
        "(float[4,6] x, int64[1] s) => (float[24] y) { r = Reshape(x, s) y = Relu(r) }",
        [{"x": X, "s": np.array([s])} for s in (24, -1)],
        {"x": X, "s": np.array([23])},
        {},
    ),
    "slice_within_a_bound": (
        "(float[4,6] x, int64[1] a, int64[1] b) => (float[4,n] y) { y = Slice(x, a, b, one) }",
        [{"x": X, "a": np.array([a]), "b": np.array([b])} for a, b in ((0, 2), (4, 99))],
        {"x": X, "a": np.array([0]), "b": np.array([3])},
        {"y": (2,)},
    ),
    "tile": (
        "(float[4,6] x, int64[2] r) => (float[n,m] y) { t = Tile(x, r) y = Relu(t) }",
        [{"x": X, "r": np.array(r)} for r in ((1, 1), (3, 2), (0, 1), (2, 1))],
        {"x": X, "r": np.array([4, 1])},
        {"t": (15, 12)},
    ),
    "one_hot": (
        "(int64[3] x, int64 d, float[2] v) => (float[n,3] y) { y = OneHot<axis=0>(x, d, v) }",
        [{"x": np.array([0, -1, 4]), "d": np.array(d), "v": X[0, :2]} for d in (5, 7, 1)],
        {"x": np.array([0, -1, 4]), "d": np.array(8), "v": X[0, :2]},
        {"n": (7,)},
    ),
    "split": (
        "(float[4,6] x, int64[3] s) => (float[4,p] a, float[4,q] b, float[4,2] c) { a, b, c = Split<axis=1>(x, s) }",
        [{"x": X, "s": np.array(s)} for s in ((1, 3, 2), (0, 4, 2), (4, 0, 2))],
        {"x": X, "s": np.array([1, 4, 1])},
        {},
    ),
    "split_within_a_bound": (
        "(float[4,6] x, int64[2] s) => (float[4,p] a, float[4,q] b) { a, c = Split<axis=1>(x, s) b = Relu(c) }",
        [{"x": X, "s": np.array(s)} for s in ((2, 4), (0, 6))],
        {"x": X, "s": np.array([3, 3])},
        {"p": (2,)},
    ),
    "resize_by_sizes": (  # of as many channels as are declared, which a convolution needs
        "(float[1,2,4,3] x, int64[4] s) => (float[1,1,h,w] y)"
        '<float[1,2,h,w] r> { r = Resize<mode = "linear">(x, , , s) y = Conv(r, ones) }',
        [{"x": X.reshape(1, 2, 4, 3), "s": np.array((1, 2, *s))} for s in ((4, 3), (9, 8), (1, 2))],
        {"x": X.reshape(1, 2, 4, 3), "s": np.array([1, 2, 10, 3])},
        {"h": (9,), "w": (8,)},
    ),
    "resize_by_scales": (
        '(float[1,2,4,3] x, float[4] s) => (float[1,2,h,w] y) { y = Resize<mode = "nearest">(x, , s) }',
        [
            {"x": X.reshape(1, 2, 4, 3), "s": np.array((1, 1, *s), np.float32)}
            for s in ((1, 1), (2.25, 2.9), (0.25, 0.4))
        ],
        {"x": X.reshape(1, 2, 4, 3), "s": np.array([1, 1, 1, np.inf], np.float32)},
        {"y": (1, 2, 9, 8)},
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_sizes_that_operands_say(name: str) -> None:
    text, runs, too_much, bounds = COMPUTED[name]
    weights = {key: np.array([number]) for key, number in (("zero", 0), ("one", 1), ("two", 2))}
    weights["ones"] = np.ones((1, 2, 1, 1), np.float32)
    made = model(f"g {text}", **{key: array for key, array in weights.items() if f" {key}" in text})
    check(made, *runs, bounds=bounds)
    if too_much is not None:
        with pytest.raises(CheckFailed, match="size"):
            backend.prepare(made, bounds=bounds).run(too_much)


def test_a_size_without_a_bound_says_which_option_gives_one() -> None:
    made = model("g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }")
    with pytest.raises(UnsupportedModel, match="--bound y=100"):
        load_proto(made)


def test_the_bound_that_an_error_proposes_is_near_the_size_of_the_operand() -> None:
    """100 along each of four axes would be 400 MB; numbers that the file declares stay."""
    made = model("g (float[1,2,4,3] x, int64[4] r) => (float[a,2,h,w] y) { y = Tile(x, r) }")
    with pytest.raises(UnsupportedModel, match="--bound y=2x2x8x6"):
        load_proto(made)
    x = X.reshape(1, 2, 4, 3)
    check(made, *({"x": x, "r": np.array(r)} for r in ((1, 1, 1, 1), (2, 1, 2, 2))), bounds={"y": (2, 2, 8, 6)})


def test_detections_that_are_chosen_among_those_that_were_found() -> None:
    """Sizes that follow from sizes that follow from data: masks, the best of what is left, suppression, and so on."""
    made = model(
        "g (float[30,4] boxes, float[30] scores) => (float[n,4] y, float[n] z, int64 count)"
        "{ m = Greater(scores, t) p = NonZero(m) q = Squeeze(p, zero) b = Gather(boxes, q) s = Gather(scores, q)"
        "  size = Shape(s) k = Min(size, ten) best, i = TopK(s, k) c = Gather(b, i)"
        "  c1 = Unsqueeze(c, zero) s1 = Unsqueeze(best, both) kept = NonMaxSuppression(c1, s1, most, half)"
        "  w = Gather<axis=1>(kept, two) y = Gather(c, w) z = Gather(best, w) count = Size(z) }",
        t=np.array(0.4, np.float32), zero=np.array([0]), ten=np.array([10]), both=np.array([0, 1]), two=np.array(2),
        most=np.array([5]), half=np.array([0.5], np.float32),
    )  # fmt: skip
    random = np.random.default_rng(4)
    boxes = random.random((30, 4), np.float32)
    runs = [{"boxes": boxes, "scores": random.random(30, np.float32) * scale} for scale in (1.0, 0.5, 0.42)]
    check(made, *runs)
    check(made, *runs, bounds={"p": (30,), "kept": (5,)})


def test_places_in_a_tensor_whose_size_is_given_before_a_run() -> None:
    made = model(
        "g (float[batch,3] x) => (int64[2,n] y, float[n] z) { y = NonZero(x) t = Transpose(y) z = GatherND(x, t) }"
    )
    random = np.random.default_rng(5)
    inputs = [{"x": random.integers(0, 2, (batch, 3)).astype(np.float32)} for batch in (8, 1, 5)]
    check(made, *inputs, dims={"batch": (1, 8)})


_INTO_NOTHING = {
    "arg_max": "y = ArgMax<axis=0>(a)",
    "top_k": "y, i = TopK<axis=0>(a, one)",
    "gather": "y = Gather<axis=0>(a, zero)",
    "gather_elements": "p = Constant<value=int64[1,3] {0, 0, 0}>() y = GatherElements<axis=0>(a, p)",
    "gather_nd": "p = Constant<value=int64[1,1] {0}>() y = GatherND(a, p)",
    "scatter_nd": "p = Constant<value=int64[1,1] {0}>() r = Slice(x, zero, one) y = ScatterND(a, p, r)",
    "pad_edge": 'p = Constant<value_ints=[1, 0, 0, 0]>() y = Pad<mode="edge">(a, p)',
    "pad_reflect": 'p = Constant<value_ints=[0, 0, 1, 0]>() y = Pad<mode="reflect">(a, p)',
}


@pytest.mark.parametrize("name", sorted(_INTO_NOTHING))
def test_an_element_of_an_axis_without_any_ends_the_run(name: str) -> None:
    made = model(
        "g (float[4,3] x, bool[4] c) => (y) { zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()"
        f" a = Compress<axis=0>(x, c) {_INTO_NOTHING[name]} }}"
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    check(made, {"x": x, "c": np.array([0, 1, 0, 1], bool)})
    with pytest.raises(CheckFailed, match="a size is outside"):
        backend.prepare(made).run({"x": x, "c": np.zeros(4, bool)})


def test_a_branch_that_would_take_from_nothing_may_be_left_alone() -> None:
    made = model(
        "g (float[4] x, bool[4] c) => (float[1] y) { a = Compress<axis=0>(x, c) n = Size(a)"
        " none = Constant<value_int=0>() some = Greater(n, none) y = If(some)"
        " <then_branch = t () => (float[1] p) { k = Constant<value_ints=[1]>() p, i = TopK(a, k) },"
        " else_branch = e () => (float[1] q) { q = Constant<value_floats=[-1.0]>() }> }"
    )
    x = np.array([1, 5, 2, 3], np.float32)
    check(made, *({"x": x, "c": np.array(flags, bool)} for flags in ([0, 0, 0, 0], [1, 0, 1, 0])))


def test_nothing_is_taken_from_nothing() -> None:
    made = model(
        "g (float[4,3] x, bool[4] c, bool[4] d) => (float[m,3] y) { a = Compress<axis=0>(x, c)"
        " p = NonZero(d) k = Constant<value_ints=[0]>() q = Squeeze(p, k) y = Gather<axis=0>(a, q) }"
    )
    none = np.zeros(4, bool)
    check(made, {"x": np.ones((4, 3), np.float32), "c": none, "d": none})


def test_sizes_that_are_found_twice_and_sizes_that_are_assumed_to_be_equal() -> None:
    made = model(
        "g (float[4,3] x, bool[4] c, bool[4] d) => (float[m,3] y, float[k] z, float[q,3] w) {"
        " k = Constant<value_ints=[1]>() f = Constant<value_ints=[-1, 3]>() p = NonZero(c) r = NonZero(c)"
        " p1 = Transpose(p) r1 = Transpose(r) a = GatherND(x, p1) b = GatherND(x, r1) y = Add(a, b)"
        " e = Compress<axis=0>(x, d) s = ReduceSum<keepdims=0>(e, k) t = ReduceSum<keepdims=0>(b, k) z = Mul(s, t)"
        " n = Shape(e) h = Reshape(b, n) w = Neg(h) }"
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    check(made, *({"x": x, "c": np.array(c, bool), "d": np.array(c[::-1], bool)} for c in ([1, 0, 1, 1], [0, 0, 1, 0])))
    with pytest.raises(CheckFailed, match="a size is outside"):
        backend.prepare(made).run({"x": x, "c": np.array([1, 1, 1, 0], bool), "d": np.array([0, 1, 1, 0], bool)})


@pytest.mark.parametrize(
    "total",
    ["flags = Cast<to=7>(mask) n = ReduceSum<keepdims=0>(flags)", "flat = Reshape(mask, all) f = Cast<to=7>(flat)"
     " n = ReduceSum(f)"],
    ids=["mask", "flat"],
)  # fmt: skip
def test_a_sum_of_a_mask_is_the_size_of_where_it_is_true(total: str) -> None:
    """torch writes `x[mask] = value` so."""
    made = model(
        "g (float[4,3] x, float value) => (float[4,3] y) { mask = Greater(x, value) at = NonZero(mask)"
        f" places = Transpose<perm=[1,0]>(at) {total} size = Reshape(n, all) given = Expand(value, size)"
        " y = ScatterND(x, places, given) }",
        all=np.array([-1]),
    )
    x = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    check(made, *({"x": x, "value": np.float32(value)} for value in (1.5, -9, 20)))


def test_a_sum_of_a_mask_is_a_size_where_nothing_else_reads_the_places() -> None:
    made = model(
        "g (bool[4] mask) => (float[n] y) { at = NonZero(mask) flags = Cast<to=7>(mask) n = ReduceSum(flags)"
        " y = Expand(one, n) }",
        one=np.ones(1, np.float32),
    )
    check(made, {"mask": np.array([1, 0, 1, 1], bool)}, {"mask": np.zeros(4, bool)})


def test_a_sum_is_no_size_of_another_mask() -> None:
    made = model(
        "g (bool[4] other) => (float[n] y, int64[1,m] at) { mask = Not(other) at = NonZero(mask)"
        " flags = Cast<to=7>(other) n = ReduceSum(flags) y = Expand(one, n) }",
        one=np.ones(1, np.float32),
    )
    with pytest.raises(UnsupportedModel, match="computed at run time"):
        load_proto(made)


def test_updates_of_a_size_that_is_assumed_to_be_that_of_the_indices() -> None:
    made = model(
        "g (float[4] x, bool[4] c, bool[4] d) => (float[4] y) {"
        " p = NonZero(c) p1 = Transpose(p) u = Compress<axis=0>(x, d) y = ScatterND(x, p1, u) }"
    )
    x = np.arange(4, dtype=np.float32)
    check(made, {"x": x, "c": np.array([1, 0, 1, 0], bool), "d": np.array([0, 1, 0, 1], bool)})
    with pytest.raises(CheckFailed, match="a size is outside"):
        backend.prepare(made).run({"x": x, "c": np.array([1, 0, 0, 0], bool), "d": np.array([0, 1, 0, 1], bool)})
