"""Loops as exporters write them, against onnxruntime: counters, conditions and trip counts that are scalars or vectors
of one element in any mixture, and slices of tables at the counter. One model holds all mixtures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile import backend
from mccompile.base.errors import MccError
from mccompile.driver import Options
from tests.small_models import compiled

from .test_control_flow import agrees

HEAD = '<ir_version: 8, opset_import: ["": 18]> g '
X = np.arange(12, dtype=np.float32).reshape(4, 3)
MIXTURES = list(product(["", "[1]"], repeat=3))


def model(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


def test_the_counter_is_read_as_the_body_declares_it() -> None:
    loops = []
    for n, (trips, go, counter) in enumerate(MIXTURES):
        operands = f"{'nv' if trips else 'n'}, {'cv' if go else 'c'}"
        loops.append(
            f"y{n} = Loop({operands}) <body = b (int64{counter} i, bool{go} c_in) => (bool{go} c_out, r)"
            " { c_out = Identity(c_in) r = Gather<axis=0>(x, i) } >"
        )
    outputs = ", ".join(f"y{n}" for n in range(len(MIXTURES)))
    constants = "int64 n = {4}, int64[1] nv = {4}, bool c = {1}, bool[1] cv = {1}"
    agrees(model(f"(float[4,3] x) => ({outputs}) <{constants}> {{ {' '.join(loops)} }}"), [X])


def test_the_condition_is_handed_on_in_any_form() -> None:
    loops, outputs, inputs = [], [], []
    for n, (given, outer, counted) in enumerate(MIXTURES):
        shape = "one" if outer else "none"
        inputs.append(f"bool{given} c{n}, int64{counted} n{n}")
        outputs.append(f"y{n}, s{n}")
        loops.append(
            f"y{n}, s{n} = Loop(n{n}, c{n}, b) <body = b (int64{counted} i, bool{given} c_in, float[1] b_in) =>"
            f" (bool{outer} c_out, b_out, s) {{ b_out = Add(b_in, b_in) less = Less(b_out, ten)"
            f" both = And(less, c_in) c_out = Reshape(both, {shape}) f = Cast<to=1>(i) s = Add(f, b_out) }} >"
        )
    made = model(
        f"(float[1] b, {', '.join(inputs)}) => ({', '.join(outputs)})"
        f" <int64[1] one = {{1}}, int64[0] none = {{}}, float[1] ten = {{10}}> {{ {' '.join(loops)} }}"
    )
    feeds = []
    for go, trips in ((True, 5), (True, 2), (False, 3)):
        feed = [np.array([1.5], np.float32)]
        for given, _, counted in MIXTURES:
            feed += [np.full((1,) if given else (), go), np.full((1,) if counted else (), trips, np.int64)]
        feeds.append(feed)
    agrees(made, *feeds, bounds={f"n{n}": [5] for n in range(len(MIXTURES))})


def test_slices_at_the_counter() -> None:
    loops, outputs = [], []
    for n, (counter, table) in enumerate(product(["", "[1]"], ["k", "t", "now"])):
        place = "i1 = Identity(i)" if counter else "i1 = Unsqueeze(i, zero)"
        outputs.append(f"y{n}, z{n}")
        loops.append(
            f"y{n}, z{n} = Loop(n, c, a, t) <body = b (int64{counter} i, bool c_in, int64[1] acc, int64[4] now) =>"
            f" (c_out, acc2, next) <int64[1] one = {{1}}> {{ {place} j = Add(i1, one) r = Slice({table}, i1, j)"
            " acc2 = Add(acc, r) next = Add(now, k) c_out = Identity(c_in) } >"
        )
    constants = "int64 n = {4}, bool c = {1}, int64[1] zero = {0}, int64[4] k = {5, 6, 7, 9}"
    made = model(f"(int64[4] t, int64[1] a) => ({', '.join(outputs)}) <{constants}> {{ {' '.join(loops)} }}")
    agrees(made, [np.array([1, 2, 3, 4]), np.array([10])])


def test_a_loop_over_a_sequence_counts_in_vectors() -> None:
    made = model(
        "(float[4,3] x) => (y) <int64 n = {3}, bool[1] c = {1}> { s = SequenceEmpty()"
        " list = Loop(n, c, s) <body = b (int64[1] i, bool[1] c_in, seq(float) before) => (c_out, after)"
        " { c_out = Identity(c_in) row = Gather<axis=0>(x, i) after = SequenceInsert(before, row) } >"
        " y = ConcatFromSequence<axis=0>(list) }"
    )
    agrees(made, [X])


@pytest.mark.parametrize("known", [False, True])
def test_a_branch_with_inputs_is_refused(known: bool) -> None:
    given, constant = ("", "<bool c = {1}>") if known else (", bool c", "")
    made = model(
        f"(float[2] x{given}) => (y) {constant} {{ y = If(c) <then_branch = t (float[2] v) => (a) {{ a = Abs(x) }},"
        " else_branch = e () => (b) { b = Neg(x) } > }"
    )
    with pytest.raises(MccError, match=r"its then_branch has inputs \('v'\)"):
        backend.prepare(made)


def test_slices_of_the_run_with_a_declared_result_of_lower_rank() -> None:
    """What exporters declare of a slice whose axis they squeeze behind it is but a comment."""
    made = model(
        "(float[4,3] x, int64[1] s, int64[1] e) => (float[3] y, z, w) <int64 n = {2}, bool c = {1},"
        " int64[1] zero = {0}, float[3] part> { y = Slice(x, s, e) part = Slice(x, s, e, zero) z = Squeeze(part, zero)"
        " w = Loop(n, c) <body = b (int64 i, bool g) => (h, float[3] r) { h = Identity(g) i1 = Unsqueeze(i, zero)"
        " from = Add(s, i1) to = Add(e, i1) r = Slice(x, from, to) } > }"
    )
    agrees(made, [X, np.array([1]), np.array([2])], [X, np.array([-3]), np.array([-2])])
    ready = backend.prepare(made, flags=("-O0",))
    with pytest.raises(MccError, match="outside the bounds"):  # two rows cannot be squeezed
        ready.run([X, np.array([1]), np.array([3])])


@pytest.mark.parametrize("target", ["generic", "x86-64-v3", "cortex-m55", "riscv64v"])
def test_weights_that_trips_slice_are_not_packed(target: str) -> None:
    """Kernels that pack their weights see only those of one trip."""
    made = model("""(float[3,4] x, float[2,4,4] w) => (float[3,4] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[3,4] now, float[4,4] m) => (float[3,4] next)
            { next = MatMul(now, m) }> (x, w)
    }""")
    weights = np.random.default_rng(1).standard_normal((2, 4, 4)).astype(np.float32)
    made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    del made.graph.input[1]
    if target == "generic":
        agrees(made, [X.reshape(3, 4)], target=target)
    else:
        assert compiled(made, Options(target=target)).files
