"""Operators of other domains, each by the examples beside it, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper, parser

from mccompile import backend
from mccompile.base.errors import InternalError, UnsupportedModel
from mccompile.frontend.contributed import contributed, writes
from mccompile.frontend.load import load_proto
from tests.hardware import example, session_here

EXAMPLES = [(domain, name, text) for (domain, name), entry in contributed().items() for text in entry.examples]


@pytest.mark.parametrize(("domain", "name", "text"), EXAMPLES, ids=[name for _, name, _ in EXAMPLES])
def test_an_example_gives_what_onnxruntime_gives(domain: str, name: str, text: str) -> None:
    model = example(domain, text)
    assert [(node.domain, node.op_type) for node in model.graph.node].count((domain, name)) > 0
    chance, inputs = np.random.default_rng(1), {}
    for value in model.graph.input:
        type = value.type.tensor_type
        drawn = chance.uniform(-4, 4, [dim.dim_value for dim in type.shape.dim])
        inputs[value.name] = np.asarray(drawn).astype(helper.tensor_dtype_to_np_dtype(type.elem_type))
    wants = session_here(model).run(None, inputs)
    try:
        results = backend.run_model(model, inputs)
    except UnsupportedModel as error:
        if "pip install --upgrade onnx" in str(error):
            pytest.skip(str(error))
        raise
    for got, want in zip(results, wants, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, 1e-4, 3e-5 * float(np.abs(want[np.isfinite(want)]).max(initial=1)))


@pytest.mark.parametrize(("name", "examples"), [("New", ()), ("QuickGelu", ("g () => () {}",))])
def test_an_operator_without_example_or_written_out_twice_is_refused(name: str, examples: tuple[str, ...]) -> None:
    with pytest.raises(InternalError):
        writes(name, *examples)(lambda body: None)


def test_a_word_that_begins_with_0_gives_zeros() -> None:
    text = next(text for _, name, text in EXAMPLES if name == "WordConvEmbedding").replace("{1, 2, 3,", "{0, 2, 3,")
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> {text}')
    shapes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input]
    rows = backend.run_model(model, [np.ones(shape, np.float32) for shape in shapes])[0]
    assert not rows[0].any() and rows[1:].all()


@pytest.mark.parametrize("dims", [{}, {"a": (1, 9), "b": (1, 9)}], ids=["known", "open"])
def test_a_path_is_that_of_onnxruntime_where_several_are_as_cheap(dims: dict[str, tuple[int, int]]) -> None:
    a, b = dims or (6, 7)
    text = f"g (float[{a},{b}] x) => (int32[2,n] y) {{ y = com.microsoft.DynamicTimeWarping (x) }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> {text}')
    session = onnxruntime.InferenceSession(model.SerializeToString())
    prepared, chance = backend.prepare(model, dims=dims), np.random.default_rng(0)
    for shape in [(6, 7), (9, 2), (1, 5), (4, 1), (9, 9)] if dims else [(6, 7)] * 9:
        costs = chance.integers(-1, 2, shape).astype(np.float32)
        np.testing.assert_array_equal(prepared.run([costs])[0], session.run(None, {"x": costs})[0])


def test_predicted_tokens_are_kept_as_long_as_they_agree() -> None:
    """An n-gram that the source has twice is made longer, one that it lacks ends the search."""
    text = """g (int64[s] x, int64[c] y, int64 m, int64[p] z) => (int64[n] t, int64 i)
        { t, i = com.microsoft.BifurcationDetector <min_ngram_size = 1, max_ngram_size = 3> (x, y, m, z) }"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> {text}')
    prepared = backend.prepare(model, dims={"s": (1, 9), "c": (1, 6), "p": (1, 10)})
    session, chance = onnxruntime.InferenceSession(model.SerializeToString()), np.random.default_rng(0)
    for _ in range(60):
        size, most = int(chance.integers(1, 9)), int(chance.integers(1, 4))
        matched = int(chance.integers(0, size + 1))
        drawn = [chance.integers(0, most, n) for n in (size, chance.integers(1, 6), size + 1 - matched)]
        drawn[2][: (size - matched) // 2] = drawn[0][matched:][: (size - matched) // 2]
        given = [*drawn[:2], np.array(matched), drawn[2]]
        for got, want in zip(
            prepared.run(given), session.run(None, dict(zip("xymz", given, strict=True))), strict=True
        ):
            np.testing.assert_array_equal(got, want)


def test_what_is_missing_is_nothing_of_a_distant_name() -> None:
    """The only class of that domain was proposed in place of what helps."""
    text = "g (float[1,2,6] x, int32[1,2,6] m) => (float[1,2,4] y) { y = com.microsoft.NAME<kernel_shape=[3]>(x, m) }"
    head = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> '
    with pytest.raises(UnsupportedModel, match="--external MaxpoolWithMask=") as missing:
        load_proto(parser.parse_model(head + text.replace("NAME", "MaxpoolWithMask")))
    assert "did you mean" not in str(missing.value)
    with pytest.raises(UnsupportedModel, match=r"did you mean NhwcMaxPool\? Or write the function"):
        load_proto(parser.parse_model(head + text.replace("NAME", "NhwcMaxPol")))
