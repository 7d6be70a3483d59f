"""State kept inside a model: step after step it answers as onnxruntime with the state handed through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile import option_texts
from mccompile.base.dtypes import u8
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.passes.io.io_forms import InputForm, OutputForm
from mccompile.toolchain.run import Model
from tests.thorough import some

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
CHANCE = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return (CHANCE.standard_normal(shape) / 2).astype(np.float32)


def model(text: str, **weights: np.ndarray) -> ModelProto:
    made = parser.parse_model(f"{HEAD} g {text}")
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


LSTM = model(
    "(float[1,1,5] x, float[1,1,6] h, float[1,1,6] c) => (float[1,1,1,6] y, float[1,1,6] h_next, float[1,1,6] c_next)"
    "{ y, h_next, c_next = LSTM<hidden_size=6>(x, w, r, b, , h, c) }",
    w=floats(1, 24, 5), r=floats(1, 24, 6), b=floats(1, 48),
)  # fmt: skip
TWO_GRUS = model(
    "(float[4,1,5] x, float[2,1,6] h) => (float[4,1,6] y, float[2,1,6] g)"
    "{ h0, h1 = Split<axis=0>(h) a, g0 = GRU<hidden_size=6>(x, w, r, b, , h0) s = Squeeze(a, one)"
    "  z, g1 = GRU<hidden_size=6>(s, v, r, b, , h1) y = Squeeze(z, one) g = Concat<axis=0>(g0, g1) }",
    w=floats(1, 18, 5), r=floats(1, 18, 6), b=floats(1, 36), v=floats(1, 18, 6), one=np.array([1]),
)  # fmt: skip
CAUSAL = model(
    "(float[1,3,8] x, float[1,3,4] past, float[1,4,2] later) => (float[1,2,8] y, float[1,3,4] p, float[1,4,2] l)"
    "{ a = Concat<axis=2>(past, x) b = Conv(a, w) c = Relu(b) p = Slice(a, at, end, axis)"
    "  d = Concat<axis=2>(later, c) y = Conv(d, v) l = Slice(d, at, end, axis) }",
    w=floats(4, 3, 5), v=floats(2, 4, 3), at=np.array([8]), end=np.array([99]), axis=np.array([2]),
)  # fmt: skip
CACHE = model(  # keys and values of the last five steps; the newest comes at the end
    "(float[1,4] x, float[5,4] k, float[5,4] v) => (float[1,4] y, float[5,4] k2, float[5,4] v2)"
    "{ key = MatMul(x, wk) value = MatMul(x, wv) k1 = Concat<axis=0>(k, key) v1 = Concat<axis=0>(v, value)"
    "  k2 = Slice(k1, one, end) v2 = Slice(v1, one, end) t = Transpose<perm=[1,0]>(k2) s = MatMul(x, t)"
    "  a = Softmax(s) y = MatMul(a, v2) }",
    wk=floats(4, 4), wv=floats(4, 4), one=np.array([1]), end=np.array([99]),
)  # fmt: skip
SHIFTED = model(  # a state that becomes another one, two that change places, one that never changes
    "(float[3] x, float[3] a, float[3] b, float[3] c, float[3] d, float[3] e)"
    " => (float[3] y, float[3] a2, float[3] b2, float[3] c2, float[3] d2, float[3] e2)"
    "{ s = Add(a, b) t = Add(s, c) u = Add(t, d) v = Sub(u, e) y = Add(v, x) a2 = Identity(b) b2 = Add(x, w)"
    "  c2 = Identity(d) d2 = Add(c, x) e2 = Identity(e) }",
    w=floats(3),
)
COUNTER = model(
    "(float[2] x, int64[1] n) => (float[2] y, int64[1] m){ m = Add(n, one) f = Cast<to=1>(m) y = Mul(x, f) }",
    one=np.array([1]),
)
OLD = model(  # outputs that show the old state, the new one, and what was given
    "(float[2,3] x, float[2,3] s) => (float[2,3] y, float[1,3] old, float[6] flat, float[2,3] same, float[3,2] turned,"
    " float[2,3] given, float[1,3] new)"
    "{ y = Add(s, x) old = Slice(s, nought, one, nought) flat = Reshape(s, six) same = Identity(s)"
    "  turned = Transpose(s) given = Identity(x) new = Slice(y, one, two, nought) }",
    nought=np.array([0]), one=np.array([1]), two=np.array([2]), six=np.array([6]),
)  # fmt: skip
PASSED = model(  # new states that are inputs, parts of them, constants, each other's views, or one value
    "(float[2,3] x, float[2,3] a, float[1,3] b, float[3,2] c, float[6] d, float[2,3] e, float[2,3] f, float[2,3] g)"
    " => (float[2,3] a2, float[1,3] b2, float[3,2] c2, float[6] d2, float[2,3] e2, float[2,3] f2, float[2,3] g2,"
    "     float[6] y, float[2,3] z)"
    "{ a2 = Identity(x) b2 = Slice(x, one, two, nought) c2 = Reshape(d, c_shape) d2 = Reshape(a, six)"
    "  e2 = Add(w, w) f2 = Add(e, x) g2 = Identity(f2) y = Reshape(c, six) z = Add(f, g) }",
    nought=np.array([0]), one=np.array([1]), two=np.array([2]), six=np.array([6]), c_shape=np.array([3, 2]),
    w=floats(2, 3),
)  # fmt: skip
STATES: dict[str, tuple[ModelProto, dict[str, str]]] = {
    "lstm": (LSTM, {"h_next": "h", "c_next": "c"}),
    "grus": (TWO_GRUS, {"g": "h"}),
    "causal": (CAUSAL, {"p": "past", "l": "later"}),
    "cache": (CACHE, {"k2": "k", "v2": "v"}),
    "shifted": (SHIFTED, {f"{name}2": name for name in "abcde"}),
    "counter": (COUNTER, {"m": "n"}),
    "old": (OLD, {"y": "s"}),
    "passed": (PASSED, {f"{name}2": name for name in "abcdefg"}),
}


def compiled(made: ModelProto, states: dict[str, str], **options: object) -> Package:
    dims = options.pop("dims", None)
    return compile_graph(load_proto(made, dims=dims), Options(state=states, **options), "streaming")


def built(package: Package, folder: Path) -> Model:
    package.write(folder / "out")
    return Model.build(folder / "out", flags=STRICT)


class Stepwise:
    """onnxruntime with the state handed from step to step."""

    def __init__(self, made: ModelProto, states: dict[str, str]) -> None:
        self.session = onnxruntime.InferenceSession(made.SerializeToString())
        self.states = states
        types = {i.name: (i.shape, np.int64 if "int64" in i.type else np.float32) for i in self.session.get_inputs()}
        self.now = {before: np.zeros(*types[before]) for before in states.values()}

    def step(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = [output.name for output in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(None, inputs | self.now), strict=True))
        self.now = {before: found.pop(after) for after, before in self.states.items()}
        return found


def inputs_of(made: ModelProto, states: dict[str, str], seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    given = [entry for entry in made.graph.input if entry.name not in states.values()]
    shapes = {entry.name: [dim.dim_value for dim in entry.type.tensor_type.shape.dim] for entry in given}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def same(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    assert got.keys() == want.keys()
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-5, err_msg=name)


@some(1, "optimize", [True, False])
@pytest.mark.parametrize("name", STATES)
def test_steps_are_those_of_a_model_whose_state_is_handed_through(name: str, optimize: bool, tmp_path: Path) -> None:
    made, states = STATES[name]
    rep, reference = built(compiled(made, states, optimize=optimize), tmp_path), Stepwise(made, states)
    assert [t.name for t in rep.report.inputs] == [e.name for e in made.graph.input if e.name not in states.values()]
    for seed in range(7):
        inputs = inputs_of(made, states, seed)
        same(rep.run(inputs), reference.step(inputs))


@pytest.mark.parametrize("options", [{"keep_inputs": True}, {"external": ("*",)}], ids=["keep_inputs", "external"])
@pytest.mark.parametrize("name", ["old", "passed", "shifted"])
def test_steps_do_not_depend_on_where_inputs_and_outputs_lie(
    name: str, options: dict[str, object], tmp_path: Path
) -> None:
    made, states = STATES[name]
    rep, reference = built(compiled(made, states, **options), tmp_path), Stepwise(made, states)
    for seed in range(3):
        inputs = inputs_of(made, states, seed)
        same(rep.run(inputs), reference.step(inputs))


@pytest.mark.parametrize("name", STATES)
def test_only_the_state_matters_between_runs(name: str, tmp_path: Path) -> None:
    """The rest of the arena is overwritten with rubbish; saved state goes into another instance and back."""
    made, states = STATES[name]
    rep, reference = built(compiled(made, states), tmp_path), Stepwise(made, states)
    for seed in range(5):
        inputs = inputs_of(made, states, seed)
        state = rep.save_state()
        rep.reset(poison=0x5A + seed)
        rep.load_state(state)
        same(rep.run(inputs), reference.step(inputs))
    rep.reset(poison=0x77)
    inputs = inputs_of(made, states, 9)
    same(rep.run(inputs), Stepwise(made, states).step(inputs))


def test_state_is_written_where_it_is_kept() -> None:
    """Nothing is copied where all that reads the old state has run before the new one is made."""
    package = compiled(*STATES["lstm"])
    assert "memcpy" not in package.files["streaming.c"].decode().split("streaming_run")[1]


def test_the_step_of_an_axis_of_one_element_is_no_matter(tmp_path: Path) -> None:
    """Beside an operand that is read transposed, where broadcasting a dimension of one gave views other steps."""
    made = model(
        "(float[1,5,3] x, float[1,3,5] k) => (float[1,3,5] k2)"
        "{ a = Transpose<perm=[0,2,1]>(x) b = Squeeze(k, one) c = Expand(b, shape) k2 = Add(a, c) }",
        one=np.array([0]), shape=np.array([1, 3, 5]),
    )  # fmt: skip
    package = compiled(made, {"k2": "k"})
    assert "memcpy" not in package.files["streaming.c"].decode().split("streaming_run")[1]
    rep, reference = built(package, tmp_path), Stepwise(made, {"k2": "k"})
    for _ in range(3):
        inputs = {"x": floats(1, 5, 3)}
        same(rep.run(inputs), reference.step(inputs))


TURNED = model(  # a static cache as PyTorch exports it: the place is the outermost axis of what is scattered into
    "(float[1,2,1,3] x, int64[1] at, float[1,2,5,3] k) => (float[1,2,1] y, float[1,2,5,3] k2)"
    "{ a = Transpose<perm=[2,1,0,3]>(k) b = Transpose<perm=[2,1,0,3]>(x) i = Unsqueeze(at, one) c = ScatterND(a, i, b)"
    "  k2 = Transpose<perm=[2,1,0,3]>(c) s = ReduceSum<keepdims=0>(k2, axes) y = Unsqueeze(s, axes) }",
    one=np.array([1]), axes=np.array([2]),
)  # fmt: skip
CLEARED = model(  # what becomes the state is changed once more in its place, as GroupQueryAttention does
    "(float[1,3] x, int64[1] at, float[5,3] k) => (float[3] y, float[5,3] k2)"
    "{ i = Unsqueeze(at, one) c = ScatterND(k, i, x) b = Less(places, at) d = Unsqueeze(b, one) k2 = Where(d, c, low)"
    "  y = ReduceSum<keepdims=0>(k2, nought) }",
    one=np.array([1]), nought=np.array([0]), places=np.arange(5) - 1, low=np.array(0, np.float32),
)  # fmt: skip


@pytest.mark.parametrize("name", ["turned", "cleared"])
def test_a_state_that_is_scattered_into_is_written_in_place(name: str, tmp_path: Path) -> None:
    made = {"turned": TURNED, "cleared": CLEARED}[name]
    package = compiled(made, {"k2": "k"})
    assert "memcpy" not in package.files["streaming.c"].decode().split("streaming_run")[1]
    (scatter,) = [step for step in package.plan.steps() if step.function.call.kind.name == "scatter"]
    assert scatter.arguments[0].address == scatter.arguments[1].address  # so it copies nothing either
    rep, reference = built(package, tmp_path), Stepwise(made, {"k2": "k"})
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    for at in (0, 1, 2, 1, 4):
        inputs = {"x": floats(*shape), "at": np.array([at])}
        same(rep.run(inputs), reference.step(inputs))


def test_state_of_a_batch_that_is_not_fixed_is_forgotten_when_the_batch_changes(tmp_path: Path) -> None:
    made = model(
        "(float[1,batch,5] x, float[1,batch,6] h) => (float[1,1,batch,6] y, float[1,batch,6] g)"
        "{ y, g = GRU<hidden_size=6>(x, w, r, b, , h) }",
        w=floats(1, 18, 5), r=floats(1, 18, 6), b=floats(1, 36),
    )  # fmt: skip
    rep = built(compiled(made, {"g": "h"}, dims={"batch": (1, 4)}), tmp_path)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for batch in (3, 4, 2):
        h = np.zeros((1, batch, 6), np.float32)
        for seed in range(3):
            x = np.random.default_rng(seed).standard_normal((1, batch, 5)).astype(np.float32)
            want, h = session.run(None, {"x": x, "h": h})
            same(rep.run({"x": x}), {"y": want})


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ({"y": "h"}, "output 'y' is f32[1,1,1,6], input 'h' is f32[1,1,6]"),
        ({"z": "h"}, "there is no output 'z'"),
        ({"h_next": "z"}, "there is no input 'z'"),
        ({"h_nxt": "h"}, "did you mean --state h_next=h?"),
        ({"h": "h_next"}, "did you mean --state h_next=h?"),
        ({"h_next": "h", "c_next": "h"}, "output 'h_next' becomes it already"),
    ],
)
def test_what_cannot_be_a_state_is_refused(states: dict[str, str], told: str) -> None:
    with pytest.raises(WrongUse) as error:
        compiled(LSTM, states)
    assert told in str(error.value)


@pytest.mark.parametrize(
    "asked",
    [
        {"inputs": {"h": InputForm(dtype=u8)}},
        {"outputs": {"h_next": OutputForm(argmax=True)}},
        {"external": ("h",)},
        {"external": ("h_next",)},
    ],
    ids=["input", "output", "an input outside", "an output outside"],
)
def test_programs_do_not_pass_states(asked: dict[str, Any]) -> None:
    with pytest.raises(WrongUse, match=r"'h(_next)?' is a state") as error:
        compiled(LSTM, {"h_next": "h", "c_next": "c"}, **asked)
    assert "fix    leave out --" in str(error.value)


def test_an_output_with_an_equals_sign_is_told() -> None:
    made = model("(float[1] x, float[1] h) => (float[1] y, float[1] g) { y = Neg(x) g = Add(x, h) }")
    made.graph.node[1].output[0] = made.graph.output[1].name = "y=z"
    with pytest.raises(WrongUse, match="a name of a state has ="):
        compiled(made, option_texts.states(("y=z=h",)))
    compiled(made, {"y=z": "h"})


def test_states_whose_text_was_cut_at_another_comma() -> None:
    """Of `h_next=h,1,c_next=c,1` option_texts reads that `1,c_next` is an output."""
    made = ModelProto()
    made.CopyFrom(LSTM)
    for entry in made.graph.input[1:]:
        entry.name += ",1"
    made.graph.node[0].input[5:] = ["h,1", "c,1"]
    compiled(made, option_texts.states(("h_next=h,1", "c_next=c,1")))
    with pytest.raises(WrongUse, match="did you mean --state h_next=h,1 --state c_next=c,1\\?"):
        compiled(made, option_texts.states(("h_next=h,1,c_next=c,1",)))
