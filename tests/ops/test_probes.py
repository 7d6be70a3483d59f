"""What a compiler of ONNX is tried with first, each against onnxruntime: loops, scans, Einsum, recurrent layers with
all their operands, shape arithmetic, names that are not identifiers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile import backend
from tests.small_models import compiled

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
CHANCE = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return (CHANCE.standard_normal(shape) / 2).astype(np.float32)


def model(text: str, **weights: np.ndarray) -> ModelProto:
    made = parser.parse_model(f"{HEAD} g {text}")
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    return made


def check(made: ModelProto, *runs: dict[str, np.ndarray]) -> None:
    session = onnxruntime.InferenceSession(made.SerializeToString())
    rep = backend.prepare(made, flags=STRICT)
    for feed in runs:
        for got, want in zip(rep.run(feed), session.run(None, feed), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


BODY = (
    "body = b (int64 i, bool go, float[3,4] now) => (bool stay, float[3,4] next, float[3,4] seen)"
    "{ stay = Identity(go) m = MatMul(now, w) next = Relu(m) seen = Identity(next) }"
)


def test_a_loop_of_five_trips() -> None:
    text = f"(float[3,4] x) => (float[3,4] y, float[5,3,4] z) {{ y, z = Loop<{BODY}>(five, true, x) }}"
    made = model(text, five=np.array(5), true=np.array(True), w=floats(4, 4))
    check(made, {"x": floats(3, 4)})


def test_a_loop_whose_trips_an_input_counts() -> None:
    body = BODY.replace(", float[3,4] seen", "").replace(" seen = Identity(next)", "")
    made = model(
        f"(float[3,4] x, int64 n) => (float[3,4] y) {{ y = Loop<{body}>(n, true, x) }}",
        true=np.array(True), w=floats(4, 4),
    )  # fmt: skip
    x = floats(3, 4)
    check(made, *({"x": x, "n": np.array(trips)} for trips in (5, 0, 1, 2, 30)))


def scan(steps: int) -> ModelProto:
    return model(
        f"(float[2] a, float[2] b, float[2] c, float[{steps},2] x)"
        f" => (float[2] p, float[2] q, float[2] r, float[{steps},2] y)"
        "{ p, q, r, y = Scan<num_scan_inputs=1, body = b (float[2] a0, float[2] b0, float[2] c0, float[2] x0)"
        " => (float[2] a1, float[2] b1, float[2] c1, float[2] y1)"
        "{ s = Add(a0, x0) a1 = Tanh(s) b1 = Mul(a0, b0) c1 = Sub(b0, c0) y1 = Add(c1, a1) }>(a, b, c, x) }"
    )


def test_a_scan_of_seven_steps_and_three_states() -> None:
    check(scan(7), {name: floats(2) for name in "abc"} | {"x": floats(7, 2)})


def test_its_code_does_not_grow_with_the_steps() -> None:
    few, many = (compiled(scan(steps)).files["g.c"].decode().splitlines() for steps in (7, 70))
    assert len(few) == len(many)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4, 5), (2, 3, 5, 2)]),
        ("ii->i", [(4, 4)]),
        ("iij->j", [(3, 3, 2)]),
        ("bij,bjj->b", [(2, 3, 4), (2, 4, 4)]),
        ("ij", [(3, 2)]),
        ("i,i", [(5,), (5,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    names = [f"x{number}" for number in range(len(shapes))]
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] {n}" for n, shape in zip(names, shapes, strict=True))
    arrays = {name: floats(*shape) for name, shape in zip(names, shapes, strict=True)}
    rank = np.einsum(equation, *arrays.values()).ndim
    result = f"float[{','.join(f'd{axis}' for axis in range(rank))}] y" if rank else "float y"
    made = model(f'({inputs}) => ({result}) {{ y = Einsum<equation="{equation}">({", ".join(names)}) }}')
    check(made, arrays)


def test_a_bidirectional_gru_with_lengths() -> None:
    made = model(
        "(float[5,3,4] x, int32[3] n, float[2,3,6] h) => (float[5,2,3,6] y, float[2,3,6] z)"
        '{ y, z = GRU<hidden_size=6,direction="bidirectional",linear_before_reset=1>(x, w, r, b, n, h) }',
        w=floats(2, 18, 4), r=floats(2, 18, 6), b=floats(2, 36),
    )  # fmt: skip
    for lengths in ((5, 1, 3), (2, 5, 4)):
        check(made, {"x": floats(5, 3, 4), "n": np.array(lengths, np.int32), "h": floats(2, 3, 6)})


def test_a_bidirectional_lstm_with_peepholes_and_lengths() -> None:
    made = model(
        "(float[5,3,4] x, int32[3] n, float[2,3,6] h, float[2,3,6] c)"
        " => (float[5,2,3,6] y, float[2,3,6] z, float[2,3,6] k)"
        '{ y, z, k = LSTM<hidden_size=6,direction="bidirectional">(x, w, r, b, n, h, c, p) }',
        w=floats(2, 24, 4), r=floats(2, 24, 6), b=floats(2, 48), p=floats(2, 18),
    )  # fmt: skip
    states = {"h": floats(2, 3, 6), "c": floats(2, 3, 6)}
    check(made, {"x": floats(5, 3, 4), "n": np.array((5, 1, 3), np.int32), **states})


def test_shape_arithmetic() -> None:
    made = model(
        "(float[2,3,8] x) => (float[2,2,12] y, int64[3] s)"
        "{ s = Shape(x) c = Gather(s, first) d = Gather(s, last) h = Div(d, two) m = Gather(s, middle) p = Mul(m, four)"
        "  u = Unsqueeze(c, zero) v = Unsqueeze(h, zero) q = Unsqueeze(p, zero) half = Div(v, two)"
        "  t = Concat<axis=0>(u, half, q) y = Reshape(x, t) }",
        first=np.array(0), last=np.array(2), middle=np.array(1), two=np.array(2), four=np.array(4), zero=np.array([0]),
    )  # fmt: skip
    check(made, {"x": floats(2, 3, 8)})


def test_names_that_are_one_identifier_in_c() -> None:
    made = model("(float[2] a, float[2] b) => (float[2] y) { c = Neg(b) y = Add(a, c) }")
    for entry, name in zip(made.graph.input, ("in/put:0", "in.put-0"), strict=True):
        entry.name = name
    made.graph.node[0].input[0], made.graph.node[1].input[0] = "in.put-0", "in/put:0"
    check(made, {"in/put:0": floats(2), "in.put-0": floats(2)})
