"""If, Loop and Scan against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from mccompile import backend
from mccompile.base.errors import MccError
from tests.small_models import compiled

Typed = Sequence[tuple[str, int, Sequence[int]]]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
CHANCE = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return CHANCE.uniform(-1, 1, shape).astype(np.float32)


def node(op: str, ins: str, outs: str, **attributes: Any) -> NodeProto:
    names = [name if name != "-" else "" for name in ins.split()]
    return helper.make_node(op, names, outs.split(), name=f"{outs.split()[0]}/{op}", **attributes)


def graph(nodes: Sequence[NodeProto], ins: Typed, outs: Typed, **constants: np.ndarray) -> GraphProto:
    inputs, outputs = ([helper.make_tensor_value_info(*typed) for typed in side] for side in (ins, outs))
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    return helper.make_graph(nodes, "net", inputs, outputs, tensors)


def model(nodes: Sequence[NodeProto], ins: Typed, outs: Typed, **constants: np.ndarray) -> ModelProto:
    whole = graph(nodes, ins, outs, **constants)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def agrees(made: ModelProto, *feeds: Sequence[np.ndarray], **options: Any) -> None:
    """With and without the optional passes, and whatever lay in the memory before."""
    session = onnxruntime.InferenceSession(made.SerializeToString())
    names = [value.name for value in made.graph.input]
    for optimize in (True, False):
        prepared = backend.prepare(made, optimize=optimize, **options)
        for arrays in (*feeds, *feeds):
            feed = dict(zip(names, arrays, strict=True))
            wants = session.run(None, feed)
            for got, want in zip(prepared.run(feed), wants, strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


# -- If


def _branches(then: NodeProto, otherwise: NodeProto, shape: Sequence[int] = (2, 3)) -> NodeProto:
    return node(
        "If", "c", "r",
        then_branch=graph([then], [], [("t", FLOAT, shape)]),
        else_branch=graph([otherwise], [], [("e", FLOAT, shape)]),
    )  # fmt: skip


def test_one_branch_runs_and_both_write_the_same_result() -> None:
    choice = _branches(node("Mul", "h x", "t"), node("Identity", "h", "e"))
    made = model(
        [node("Exp", "x", "h"), choice, node("Add", "r h", "y")],
        [("x", FLOAT, (2, 3)), ("c", BOOL, ())], [("y", FLOAT, (2, 3))],
    )  # fmt: skip
    agrees(made, (floats(2, 3), np.array(True)), (floats(2, 3), np.array(False)))


def test_branches_inside_of_branches() -> None:
    inner = node(
        "If", "d", "t",
        then_branch=graph([node("Neg", "x", "a")], [], [("a", FLOAT, (2, 3))]),
        else_branch=graph([node("Identity", "w", "b")], [], [("b", FLOAT, (2, 3))]),
    )  # fmt: skip
    made = model(
        [_branches(inner, node("Abs", "x", "e")), node("Identity", "r", "y")],
        [("x", FLOAT, (2, 3)), ("c", BOOL, ()), ("d", BOOL, ())], [("y", FLOAT, (2, 3))], w=floats(2, 3),
    )  # fmt: skip
    agrees(made, *((floats(2, 3), np.array(c), np.array(d)) for c in (True, False) for d in (True, False)))


def test_results_of_two_ranks_are_refused() -> None:
    then = graph([node("Identity", "x", "t")], [], [("t", FLOAT, (2, 3))])
    otherwise = graph([node("Reshape", "x six", "e")], [], [("e", FLOAT, (6,))], six=np.array([6]))
    choice = node("If", "c", "y", then_branch=then, else_branch=otherwise)
    made = helper.make_model(
        graph([choice], [("x", FLOAT, (2, 3)), ("c", BOOL, ())], [("y", FLOAT, ())]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    with pytest.raises(MccError, match=r"f32\[2,3\] in one branch and f32\[6\] in the other"):
        backend.prepare(made)


def test_a_branch_that_cannot_run_ends_the_run_with_an_error() -> None:
    """Exporters leave branches in a model that do not fit its sizes and are never taken."""
    choice = _branches(node("Neg", "x", "t"), node("MatMul", "x x", "e"))
    made = model([choice, node("Identity", "r", "y")], [("x", FLOAT, (2, 3)), ("c", BOOL, ())], [("y", FLOAT, (2, 3))])
    prepared = backend.prepare(made)
    x = floats(2, 3)
    np.testing.assert_array_equal(prepared.run((x, np.array(True)))[0], -x)
    with pytest.raises(MccError, match="cannot run the branch"):
        prepared.run((x, np.array(False)))


# -- Loop


def _loop(trips: int | None, ends: bool = False, collects: bool = True) -> ModelProto:
    """h <- relu(h w), until a sum gets large if it `ends`; collects h + x."""
    nodes = [
        node("MatMul", "h w", "hw"),
        node("Relu", "hw", "h2"),
        node("ReduceSum", "h2", "s", keepdims=0),
        node("Less", "s limit", "small"),
        node("Identity", "small" if ends else "c", "c2"),
        node("Add", "h2 x", "o"),
    ]
    outs: list[tuple[str, int, Sequence[int]]] = [("c2", BOOL, ()), ("h2", FLOAT, (2, 4))]
    results: list[tuple[str, int, Sequence[int]]] = [("y", FLOAT, (2, 4))]
    if collects:
        outs.append(("o", FLOAT, (2, 4)))
        results.append(("all", FLOAT, (trips or 0, 2, 4)))
    body = graph(nodes, [("i", INT64, ()), ("c", BOOL, ()), ("h", FLOAT, (2, 4))], outs)
    constants = {"w": floats(4, 4), "limit": np.array(2.5, np.float32), "true": np.array(True)}
    ins: list[tuple[str, int, Sequence[int]]] = [("x", FLOAT, (2, 4))]
    if trips is None:
        ins.append(("M", INT64, ()))
    else:
        constants["M"] = np.array(trips)
    around = [node("Exp", "x", "e"), node("Loop", "M true e", "r all" if collects else "r", body=body)]
    return model([*around, node("Neg", "r", "y")], ins, results, **constants)


def test_a_carried_number_is_compared_as_it_is_in_each_trip() -> None:
    """It begins with a constant."""
    body = graph(
        [
            node("Identity", "c_in", "c_out"),
            node("Less", "zero n_in", "is_late"),
            node("Where", "is_late up v_in", "more"),
            node("Add", "v_in more", "v_out"),
            node("Add", "n_in one", "n_out"),
        ],
        [("i", INT64, ()), ("c_in", BOOL, ()), ("n_in", INT64, ()), ("v_in", FLOAT, (2,))],
        [("c_out", BOOL, ()), ("n_out", INT64, ()), ("v_out", FLOAT, (2,))],
        one=np.array(1),
        zero=np.array(0),
        up=np.array(10, np.float32),
    )
    made = model(
        [node("Loop", "M - first x", "n y", body=body)],
        [("x", FLOAT, (2,))],
        [("y", FLOAT, (2,))],
        M=np.array(4),
        first=np.array(0),
    )
    agrees(made, [floats(2)])


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_known_number_of_trips(trips: int) -> None:
    agrees(_loop(trips), (floats(2, 4),))


def test_the_number_of_trips_is_an_input() -> None:
    agrees(_loop(None, collects=False), *((floats(2, 4), np.array(trips)) for trips in (0, 1, 2, 5)))


@pytest.mark.parametrize("trips", [1, 9])
def test_a_condition_ends_the_loop(trips: int) -> None:
    agrees(_loop(trips, ends=True, collects=False), (floats(2, 4),), (floats(2, 4) / 8,))


def test_what_no_trip_collects_is_empty_whatever_the_condition() -> None:
    agrees(_loop(0, ends=True), (floats(2, 4),))


@pytest.mark.parametrize(("around", "inside"), [("loop", "loop"), ("a/loop", "a_loop"), ("loop_2", "loop")])
def test_loops_in_loops_of_one_name(around: str, inside: str) -> None:
    inner = graph(
        [node("Cast", "j", "fj", to=FLOAT), node("Add", "g fj", "g2"), node("Identity", "d", "d2")],
        [("j", INT64, ()), ("d", BOOL, ()), ("g", FLOAT, (4,))],
        [("d2", BOOL, ()), ("g2", FLOAT, (4,))],
    )
    outer = graph(
        [
            node("Gather", "x i", "row", axis=0),
            node("Add", "h row", "h1"),
            node("Identity", "c", "c2"),
            helper.make_node("Loop", ["M2", "", "h1"], ["h2"], name=inside, body=inner),
        ],
        [("i", INT64, ()), ("c", BOOL, ()), ("h", FLOAT, (4,))],
        [("c2", BOOL, ()), ("h2", FLOAT, (4,))],
    )
    made = model(
        [
            node("ReduceSum", "x", "x0", keepdims=0),
            node("Expand", "x0 four", "x1"),
            helper.make_node("Loop", ["M1", "", "x1"], ["y"], name=around, body=outer),
        ],
        [("x", FLOAT, (3, 4))],
        [("y", FLOAT, (4,))],
        M1=np.array(2),
        M2=np.array(3),
        four=np.array([4]),
    )
    agrees(made, [floats(3, 4)])


def test_loops_in_loops_with_values_that_change_places() -> None:
    inner = graph(
        [
            node("Add", "g half_h", "g1"),
            node("Cast", "j", "fj", to=FLOAT),
            node("Add", "g1 fj", "g2"),
            node("Gather", "x j", "row", axis=0),
            node("Add", "g2 row", "g3"),
            node("Identity", "d", "d2"),
        ],
        [("j", INT64, ()), ("d", BOOL, ()), ("g", FLOAT, (4,))],
        [("d2", BOOL, ()), ("g3", FLOAT, (4,))],
    )
    outer = graph(
        [
            node("Mul", "h half", "half_h"),
            node("Loop", "M2 - half_h", "g_last", body=inner),
            node("Cast", "i", "fi", to=FLOAT),
            node("Add", "g_last fi", "h2"),
            node("Identity", "c", "c2"),
            node("Add", "k h", "k2"),
            node("Identity", "k", "k_old"),
        ],
        [("i", INT64, ()), ("c", BOOL, ()), ("h", FLOAT, (4,)), ("k", FLOAT, (4,))],
        [("c2", BOOL, ()), ("k2", FLOAT, (4,)), ("h2", FLOAT, (4,)), ("k_old", FLOAT, (4,))],
    )
    for first, second in ((3, 4), (4, 3), (1, 3), (3, 1)):
        made = model(
            [node("Relu", "x0", "r"), node("Loop", "M1 - r r", "a b all", body=outer)],
            [("x0", FLOAT, (4,)), ("x", FLOAT, (5, 4))],
            [("a", FLOAT, (4,)), ("b", FLOAT, (4,)), ("all", FLOAT, (first, 4))],
            M1=np.array(first), M2=np.array(second), half=np.array(0.5, np.float32),
        )  # fmt: skip
        agrees(made, (floats(4), floats(5, 4)))


def test_sizes_that_change_from_trip_to_trip_are_refused() -> None:
    body = graph(
        [node("Concat", "h h", "h2", axis=0), node("Identity", "c", "c2")],
        [("i", INT64, ()), ("c", BOOL, ()), ("h", FLOAT, (2,))],
        [("c2", BOOL, ()), ("h2", FLOAT, (4,))],
    )
    whole = graph([node("Loop", "M - x", "y", body=body)], [("x", FLOAT, (2,))], [("y", FLOAT, (16,))], M=np.array(3))
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(MccError, match="from trip to trip"):
        backend.prepare(made)


def test_a_loop_without_end_is_refused() -> None:
    body = graph(
        [node("Neg", "h", "h2"), node("Identity", "c", "c2")],
        [("i", INT64, ()), ("c", BOOL, ()), ("h", FLOAT, (2,))],
        [("c2", BOOL, ()), ("h2", FLOAT, (2,))],
    )
    made = model([node("Loop", "- - x", "y", body=body)], [("x", FLOAT, (2,))], [("y", FLOAT, (2,))])
    with pytest.raises(MccError, match="never ends"):
        backend.prepare(made)


# -- Scan


def _scan(trips: int, **attributes: Any) -> ModelProto:
    body = graph(
        [
            node("Add", "a x", "a2"),
            node("Mul", "b a2", "ba"),
            node("Tanh", "ba", "b2"),
            node("Add", "n one", "n2"),
            node("Concat", "a2 b2", "o", axis=0),
            node("Identity", "z", "o2"),
        ],
        [("a", FLOAT, (3,)), ("b", FLOAT, (3,)), ("n", FLOAT, ()), ("x", FLOAT, (3,)), ("z", FLOAT, (2,))],
        [("a2", FLOAT, (3,)), ("b2", FLOAT, (3,)), ("n2", FLOAT, ()), ("o", FLOAT, (6,)), ("o2", FLOAT, (2,))],
    )
    turned = "scan_input_axes" in attributes
    return model(
        [node("Scan", "a0 b0 n0 xs zs", "A B N O Z", body=body, num_scan_inputs=2, **attributes)],
        [
            ("a0", FLOAT, (3,)), ("b0", FLOAT, (3,)), ("n0", FLOAT, ()),
            ("xs", FLOAT, (3, trips) if turned else (trips, 3)), ("zs", FLOAT, (trips, 2)),
        ],
        [
            ("A", FLOAT, (3,)), ("B", FLOAT, (3,)), ("N", FLOAT, ()),
            ("O", FLOAT, (6, trips) if turned else (trips, 6)), ("Z", FLOAT, (trips, 2)),
        ],
        one=np.array(1, np.float32),
    )  # fmt: skip


def test_scan_of_three_states_and_two_inputs() -> None:
    agrees(_scan(7), (floats(3), floats(3), floats(), floats(7, 3), floats(7, 2)))


def test_scan_along_other_axes_and_backwards() -> None:
    made = _scan(
        8, scan_input_axes=[1, 0], scan_input_directions=[1, 0], scan_output_axes=[1, 0], scan_output_directions=[1, 1]
    )
    agrees(made, (floats(3), floats(3), floats(), floats(3, 8), floats(8, 2)))


def test_the_code_does_not_grow_with_the_number_of_trips() -> None:
    few, many = (compiled(_scan(trips)).files["net.c"].count(b"\n") for trips in (7, 70))
    assert few == many


def test_branches_of_different_sizes() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[4,3] x, bool[4] c, float[2] q) => (float[n,3] y, int64[k] z) {"
        " kept = Compress<axis=0>(x, c) f = ReduceSum<keepdims=0>(q) zero = Constant<value_float=0.0>()"
        " go = Greater(f, zero) a, z = If(go) <then_branch = t () => (float[p,3] p, int64[r] pz) {"
        " p = Neg(kept) s = Shape(kept) one = Constant<value_ints=[5, 6, 7]>() pz = Concat<axis=0>(s, one) },"
        " else_branch = e () => (float[2,3] q1, int64[0] qz) {"
        " q1 = Constant<value=float[2,3] {1, 2, 3, 4, 5, 6}>() qz = Constant<value=int64[0] {}>() }> y = Abs(a) }"
    )
    session, rep = onnxruntime.InferenceSession(made.SerializeToString()), backend.prepare(made)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for flags in ([1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]):
        for sign in (1, -1):
            feed = {"x": x, "c": np.array(flags, bool), "q": np.array([sign, 0], np.float32)}
            for got, want in zip(rep.run(feed), session.run(None, feed), strict=True):
                assert got.shape == want.shape
                np.testing.assert_array_equal(got, want)


def test_a_name_that_is_several_outputs() -> None:
    relu, copy = node("Relu", "x", "y"), node("Identity", "y", "z")
    outs = [("y", FLOAT, [3]), ("x", FLOAT, [3]), ("y", FLOAT, [3]), ("z", FLOAT, [3]), ("k", FLOAT, [2])]
    agrees(model([relu, copy], [("x", FLOAT, [3])], outs, k=floats(2)), [floats(3)])


ROWS = """<ir_version: 10, opset_import: ["" : 21]>
rows (float[4] x) => (y, s) <float[3,4] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[1] zero = {0},
    int64[1] one = {1}, int64 n = {TRIPS}, bool c = {1}, int64[1] axis = {0}>
{ y, s = Loop (n, c, x) <body: graph = body (int64 i, bool going, float[4] v) => (going_on, w, collected) {
    begin = Unsqueeze (i, zero) end = Add (begin, one) row = Slice (table, begin, end)
    some = ReduceSum <keepdims = 0> (row, axis) w = Add (v, some) going_on = Identity (going)
    collected = Identity (WHAT) }> }"""


def _rows(trips: int, what: str) -> ModelProto:
    return parser.parse_model(ROWS.replace("TRIPS", str(trips)).replace("WHAT", what))


@pytest.mark.parametrize("trips", [2, 3, 5])
def test_a_row_of_a_table_in_each_trip(trips: int) -> None:
    """From the end of the table on there is none."""
    agrees(_rows(trips, "w"), [floats(4)])


def test_rows_that_are_not_in_every_trip_are_not_collected() -> None:
    with pytest.raises(MccError, match=r"(?s)what it collects is f32\[.*,4\] in each trip"):
        backend.prepare(_rows(5, "row"))


def test_of_no_trip_nothing_is_collected() -> None:
    (_, found) = backend.prepare(_rows(0, "row")).run({"x": floats(4)})
    assert found.size == 0 and found.ndim == 3


@pytest.mark.parametrize("samples", [1, 3])
def test_a_scan_of_opset_8_over_samples(samples: int) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 8]>
g (float[{samples},2] start, float[{samples},3,2] x) => (float[{samples},2] last, float[{samples},3,2] all)
{{ last, all = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] v) => (t, o) {{ t = Add(s, v) o = Mul(t, v) }}>
("", start, x) }}"""
    agrees(parser.parse_model(text), [floats(samples, 2), floats(samples, 3, 2)])
