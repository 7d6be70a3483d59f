"""States that grow, as caches of decoders do: run after run they answer as onnxruntime that is handed all of it, and
nothing of them is copied."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.graph.text import constants_of, read, show
from mccompile.ops.api import resolve
from mccompile.passes.memory.state import declare_states
from mccompile.toolchain.run import Model

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
CHANCE = np.random.default_rng(5)
HEADS = {"cut": np.array([1, -1, 2, 3]), "flat": np.array([1, -1, 6]), "three": np.array([0, 3, 1])}


def model(text: str, opset: int = 17, **weights: np.ndarray) -> ModelProto:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def floats(*shape: int) -> np.ndarray:
    return (CHANCE.standard_normal(shape) / 2).astype(np.float32)


def decoder(new: str = "1") -> ModelProto:
    """Attention of two heads over all tokens so far, in the order of the operators that PyTorch's exporter has."""
    return model(
        f"(float[1,{new},6] x, int64[1,total] mask, float[1,2,past,3] k, float[1,2,past,3] v)"
        f" => (float[1,{new},6] y, float[1,2,all,3] k2, float[1,2,all,3] v2)"
        "{ q0 = MatMul(x, wq) q1 = Reshape(q0, cut) q = Transpose<perm=[0,2,1,3]>(q1)"
        "  n0 = MatMul(x, wk) n1 = Reshape(n0, cut) n = Transpose<perm=[0,2,1,3]>(n1) k2 = Concat<axis=2>(k, n)"
        "  m0 = MatMul(x, wv) m1 = Reshape(m0, cut) m = Transpose<perm=[0,2,1,3]>(m1) v2 = Concat<axis=-2>(v, m)"
        "  t = Transpose<perm=[0,1,3,2]>(k2) s = MatMul(q, t) g = Cast<to=9>(mask) w = Where(g, s, low)"
        "  a = Softmax(w) b = MatMul(a, v2) c = Transpose<perm=[0,2,1,3]>(b) y = Reshape(c, flat) }",
        wq=floats(6, 6), wk=floats(6, 6), wv=floats(6, 6), low=np.array(-1e9, np.float32),
        cut=HEADS["cut"], flat=HEADS["flat"],
    )  # fmt: skip


CACHE = {"k2": "k", "v2": "v"}
SHAPES = {"mask": (1, "past + 1")}


def compiled(made: ModelProto, states: dict[str, str], dims: dict[str, tuple[int, int]], **options: object) -> Package:
    shapes = options.pop("shapes", None)
    return compile_graph(load_proto(made, dims=dims, shapes=shapes), Options(state=states, **options), "decoder")


def built(package: Package, folder: Path) -> Model:
    package.write(folder / "out")
    return Model.build(folder / "out", flags=STRICT)


def body(package: Package) -> str:
    return package.files["decoder.c"].decode().split("decoder_run")[1]


def room(array: np.ndarray, size: int) -> np.ndarray:
    """With rubbish behind, which nobody may read."""
    return np.concatenate([array, np.full((*array.shape[:-1], size - array.shape[-1]), 1, array.dtype)], axis=-1)


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"keep_inputs": True}], ids=["plain", "slow", "kept"])
def test_tokens_are_those_of_a_model_that_is_handed_its_past(options: dict[str, object], tmp_path: Path) -> None:
    made = decoder()
    rep = built(compiled(made, CACHE, {"past": (0, 5)}, shapes=SHAPES, **options), tmp_path)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    k = v = np.zeros((1, 2, 0, 3), np.float32)
    for token in range(6):
        x = floats(1, 1, 6)
        mask = np.ones((1, token + 1), np.int64)
        mask[:, : token // 2] = 0
        y, k, v = session.run(None, {"x": x, "mask": mask, "k": k, "v": v})
        np.testing.assert_allclose(rep.run({"x": x, "mask": room(mask, 6)})["y"], y, rtol=1e-5, atol=1e-6)
    state = rep.save_state()
    with pytest.raises(CheckFailed, match="size"):
        rep.run({"x": x, "mask": np.ones((1, 6), np.int64)})
    assert rep.save_state() == state  # nothing is written where there is no room


def test_nothing_is_copied() -> None:
    package = compiled(decoder(), CACHE, {"past": (0, 63)}, shapes=SHAPES)
    assert "memcpy" not in body(package)
    kept = {state.tensor.name: state for state in package.plan.states}
    assert [str(kept[name].tensor.type) for name in ("k", "v", "past")] == ["f32[1,2,64,3]"] * 2 + ["i64[1]"]
    assert all(state.made == state.tensor.address for state in package.plan.states)
    written = [s.function.call for s in package.plan.items if getattr(s, "function", None)]
    writes = [call for call in written if call.kind.name == "scatter"]
    assert len(writes) == 2
    assert all(call.ins[0].shape == (1, 2, 64, 3) and call.ins[1].shape == (1, 2, 1, 3) for call in writes)
    assert package.plan.given == ()


def test_runs_of_several_tokens_and_of_one(tmp_path: Path) -> None:
    """Prompt and tokens; nothing is reset where the number of tokens changes."""
    made = decoder("new")
    rep = built(compiled(made, CACHE, {"past": (0, 9), "new": (1, 4)}, shapes={"mask": (1, "past + new")}), tmp_path)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    k = v = np.zeros((1, 2, 0, 3), np.float32)
    for new in (4, 1, 1, 3, 1):
        x, mask = floats(1, new, 6), np.ones((1, k.shape[2] + new), np.int64)
        y, k, v = session.run(None, {"x": x, "mask": mask, "k": k, "v": v})
        np.testing.assert_allclose(rep.run({"x": x, "mask": room(mask, 13)})["y"], y, rtol=1e-5, atol=1e-6)


def test_another_batch_resets_the_states_and_more_tokens_do_not(tmp_path: Path) -> None:
    made = model(
        "(float[more,batch,2] x, float[past,batch,2] k) => (float[batch,2] y, float[all,batch,2] k2)"
        "{ k2 = Concat<axis=0>(k, x) y = ReduceSum<keepdims=0>(k2, nought) }",
        nought=np.array([0]),
    )  # fmt: skip
    package = compiled(made, {"k2": "k"}, {"past": (0, 7), "more": (1, 3), "batch": (1, 3)})
    assert "Another batch than before resets the state." in package.files["decoder.h"].decode()
    rep = built(package, tmp_path)
    before, total = 3, np.zeros((3, 2), np.float32)
    for more, batch in ((2, 3), (1, 3), (3, 3), (1, 2), (2, 2), (3, 1)):
        x = np.round(floats(more, batch, 2) * 8)
        total = x.sum(axis=0) + (total if batch == before else 0)
        before = batch
        assert np.array_equal(rep.run({"x": x})["y"], total)


def test_positions_follow_from_the_length(tmp_path: Path) -> None:
    """An exporter that computes them from the shape of the past; the state has another axis and type."""
    made = model(
        "(int8[1,2] x, int8[past,2] k) => (int64[1] y, int8[all,2] k2, int32[1,2] z)"
        "{ k2 = Concat<axis=0>(k, x) p = Shape(k) y = Slice(p, nought, one) c = Cast<to=6>(k2)"
        "  z = ReduceSum<keepdims=1>(c, nought) }",
        nought=np.array([0]), one=np.array([1]),
    )  # fmt: skip
    rep = built(compiled(made, {"k2": "k"}, {"past": (0, 3)}), tmp_path)
    total = np.zeros((1, 2), np.int32)
    for token in range(4):
        x = np.array([[token, -3 * token]], np.int8)
        total += x
        got = rep.run({"x": x})
        assert got["y"].tolist() == [token] and np.array_equal(got["z"], total)


def test_a_state_is_cut_back_where_its_length_is(tmp_path: Path) -> None:
    """State that was saved, with a smaller length, goes on from there."""
    made = decoder()
    package = compiled(made, CACHE, {"past": (0, 5)}, shapes=SHAPES)
    rep = built(package, tmp_path)
    mask, xs = np.ones((1, 6), np.int64), [floats(1, 1, 6) for _ in range(4)]
    first = [rep.run({"x": x, "mask": mask})["y"] for x in xs]
    state = bytearray(rep.save_state())
    assert [t.name for t in rep.report.states] == ["k", "v", "past"]
    assert state[-8:] == (4).to_bytes(8, "little")
    state[-8:] = (2).to_bytes(8, "little")
    rep.load_state(bytes(state))
    again = [rep.run({"x": x, "mask": mask})["y"] for x in xs[2:]]
    assert all(np.array_equal(a, b) for a, b in zip(again, first[2:], strict=True))


def test_a_state_that_is_read_as_it_was_is_right_all_the_same(tmp_path: Path) -> None:
    made = model(
        "(float[1,2] x, float[past,2] k) => (float[all,2] k2, float[1,2] y)"
        "{ k2 = Concat<axis=0>(k, x) a = ReduceSum<keepdims=1>(k2, nought) b = ReduceSum<keepdims=1>(k, nought)"
        "  y = Sub(a, b) }",
        nought=np.array([0]),
    )  # fmt: skip
    rep = built(compiled(made, {"k2": "k"}, {"past": (0, 3)}), tmp_path)
    for _ in range(4):
        x = np.round(floats(1, 2) * 8)
        assert np.array_equal(rep.run({"x": x})["y"], x)


def test_several_parts_and_other_names_of_the_result(tmp_path: Path) -> None:
    made = model(
        "(float[1,2] x, float[past,2] k) => (float[2] y, float[all,2] k3)"
        "{ k2 = Concat<axis=0>(k, x, x) k3 = Identity(k2) y = ReduceSum<keepdims=0>(k2, nought) }",
        nought=np.array([0]),
    )  # fmt: skip
    package = compiled(made, {"k3": "k"}, {"past": (0, 4)})
    assert "memcpy" not in body(package)
    rep, total = built(package, tmp_path), np.zeros(2, np.float32)
    for _ in range(3):
        x = np.round(floats(1, 2) * 8)
        total += 2 * x[0]
        assert np.array_equal(rep.run({"x": x})["y"], total)


def test_texts_of_graphs_say_lengths() -> None:
    graph = load_proto(decoder(), dims={"past": (0, 5)}, shapes=SHAPES)
    declare_states(graph, CACHE)
    text = show(graph)
    assert "length %past = n_past" in text
    assert show(read(text, resolve, constants_of(graph))) == text


JOINED = (
    "(float[1,2] x, float[past,2] k, float[{m},2] o) => (float[1,2] y, float[a,2] k2, float[b,2] o2)"
    "{{ k2 = Concat<axis=0>({order}) o2 = Concat<axis=0>(o, x{more}) y = Add(x, x) }}"
)
SHOWN = (
    "(float[1,2] x, float[past,2] k, float[past,2] o) => (float[a,2] k2, float[past,2] {}, float[past,2] y)"
    "{{ k2 = Concat<axis=0>(k, x) y = Relu(o) }}"
)


@pytest.mark.parametrize(
    ("text", "states", "dims", "told"),
    [
        (JOINED.format(m="3", order="x, k", more=""), {"k2": "k"}, {}, "'k2' is not a Concat of 'k' and what is new"),
        (JOINED.format(m="3", order="k, x", more=""), {"k2": "k"}, {"past": (1, 4)}, "--dim past=0..4"),
        (JOINED.format(m="past", order="k, x", more=", x"), {"k2": "k", "o2": "o"}, {}, "adds 2 elements to it and 1"),
        (JOINED.format(m="3", order="k, x", more=""), {"o2": "o"}, {}, "--shape o=past,2 --dim past=0..3"),
        (JOINED.format(m="0", order="k, x", more=""), {"o2": "o"}, {}, "--shape o=past,2 --dim past=0..255"),
        (SHOWN.format("k"), {"k2": "k"}, {}, "take 'k' out of the model's outputs"),
        (SHOWN.format("o"), {"k2": "k"}, {}, "take 'o' out of the model's outputs"),
    ],
)
def test_what_cannot_grow_is_refused(
    text: str, states: dict[str, str], dims: dict[str, tuple[int, int]], told: str
) -> None:
    with pytest.raises(WrongUse) as error:
        compiled(model(text), states, {"past": (0, 4)} | dims)
    assert told in str(error.value)


def test_an_input_as_long_as_a_state_may_be_channels_last() -> None:
    made = model("""(float[1,p] past, float[1,1] new, float[p,4,8] x) => (float[1,q] present, float[p,4,1] y) {
        present = Concat <axis = 1> (past, new)
        y = GlobalAveragePool (x)
    }""")
    package = compiled(made, {"present": "past"}, {"p": (0, 2)}, io_layout="nhwc")
    (x,) = (tensor for tensor in package.plan.inputs if tensor.name == "x")
    assert x.type.static_shape[1:] == (8, 4)
