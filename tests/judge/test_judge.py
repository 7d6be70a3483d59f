"""The judge alone: what it says where references disagree, what it does not know, and how rounding moves results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from mccompile.frontend.judged import judged
from mccompile.frontend.supported import supported
from mccompile.judge.rules import CHOICES, NoWitness, Unspecified, rules
from mccompile.judge.run import Rounding, judge

HEAD = '<ir_version: 9, opset_import: ["": 19, "com.microsoft": 1, "ai.onnx.ml": 3]>\n'


def says(text: str, shaken: Rounding | None = None, choice: int | None = None, **feeds: Any) -> list[Any]:
    return list(judge(judged(parser.parse_model(HEAD + text)), feeds, shaken, choice).values())


def test_corners_are_those_of_the_resized_tensor() -> None:
    """ "x_original = x_resized * (length_original - 1) / (length_resized - 1)": 3 times 1.7 are 5 elements."""
    attributes = 'mode = "linear", coordinate_transformation_mode = "align_corners"'
    text = f"g (float[3] x) => (float[5] y) <float[1] s = {{1.7}}> {{ y = Resize <{attributes}> (x, , s) }}"
    (y,) = says(text, x=np.array([0, 2, 6], np.float32))
    np.testing.assert_allclose(y, [0, 1, 2, 4, 6])


def test_floats_are_real_numbers() -> None:
    """In float32 the sum is 0."""
    text = "g (float[3] x) => (float[1] y) { y = ReduceSum <keepdims = 1> (x) }"
    (y,) = says(text, x=np.array([1e8, 1, -1e8], np.float32))
    assert y.dtype == np.float64 and y.tolist() == [1.0]


def test_the_top_class_is_that_of_the_largest_score() -> None:
    """ "Returns the top class for each of N inputs": of scores -3 and -1 the second."""
    node = (
        "ai.onnx.ml.TreeEnsembleClassifier <class_ids = [0, 1], class_nodeids = [0, 0], class_treeids = [0, 0],"
        " class_weights = [-3.0, -1.0], classlabels_int64s = [7, 9], nodes_falsenodeids = [0],"
        ' nodes_featureids = [0], nodes_modes = ["LEAF"], nodes_nodeids = [0], nodes_treeids = [0],'
        ' nodes_truenodeids = [0], nodes_values = [0.0], post_transform = "NONE"> (x)'
    )
    label, scores = says(f"g (float[1,1] x) => (int64[1] l, float[1,2] s) {{ l, s = {node} }}", x=np.zeros((1, 1)))
    assert label.tolist() == [9] and scores.tolist() == [[-3.0, -1.0]]


def test_an_operator_may_be_older_than_its_first_version_in_the_standard() -> None:
    """ThresholdedRelu was experimental until opset 10; files of opset 7 have it, and onnxruntime runs them."""
    model = '<ir_version: 3, opset_import: ["": 7]> g (float[3] x) => (float[3] y) { y = ThresholdedRelu (x) }'
    (y,) = judge(judged(parser.parse_model(model)), {"x": np.array([-2.0, 0.5, 2.0])}).values()
    assert y.tolist() == [0, 0, 2]


@pytest.mark.parametrize("past", [0, 2])
def test_queries_see_the_keys_up_to_their_own_position_behind_the_past(past: int) -> None:
    """onnxruntime counts positions of queries from the past on, however many keys come with them."""
    before = f", float[1,1,{past},1] pk, float[1,1,{past},1] pv" if past else ""
    text = f"""g (float[1,2,1] q, float[1,3,1] k, float[1,3,1] v{before}) => (float[1,2,1] y) {{
        y = com.microsoft.MultiHeadAttention <num_heads = 1, unidirectional = 1> (
            q, k, v, , , , {"pk, pv" if past else ", "})
    }}"""
    numbers = np.arange(past + 3, dtype=np.float64).reshape(1, 1, past + 3, 1)
    feeds = {"q": np.zeros((1, 2, 1)), "k": np.zeros((1, 3, 1)), "v": numbers[:, 0, past:]}
    (y,) = says(text, **feeds, **({"pk": np.zeros((1, 1, past, 1)), "pv": numbers[:, :, :past]} if past else {}))
    np.testing.assert_allclose(y.ravel(), [np.arange(past + 1).mean(), np.arange(past + 2).mean()])


def test_functions_of_the_standard_and_of_models_are_written_out() -> None:
    text = """g (float[2] x) => (float[2] y) { y = own.twice (x) }
    <domain: "own", opset_import: ["" : 19]> twice (a) => (b) { b = Add (a, a) }"""
    model = parser.parse_model(HEAD.replace('"":', '"own": 1, "":') + text)
    (y,) = judge(judged(model), {"x": np.array([1.0, 2.5], np.float32)}).values()
    assert y.tolist() == [2.0, 5.0]


def test_what_has_no_rule_has_no_witness() -> None:
    with pytest.raises(NoWitness, match="ImageDecoder is not judged"):
        says("g (uint8[2] x) => (uint8[1,1,3] y) { y = ImageDecoder (x) }", x=np.zeros(2, np.uint8))
    with pytest.raises(Unspecified, match="divided by zero"):
        says("g (int64[1] x) => (int64[1] y) { y = Div (x, x) }", x=np.zeros(1, np.int64))


OPEN = [
    ("int8[3] x) => (int8[3] y) { y = Div (x, x) }", [0, 3, -4], [{0, -1, -128, 127}, {1}, {1}]),
    (
        "int32[2] x) => (int32[2] y) <int32 m = {-1}> { y = Div (x, m) }",
        [-(2**31), 5],
        [{-(2**31), 2**31 - 1, 0}, {-5}],
    ),
    ("int8[2] x) => (int8[2] y) { y = Mod (x, x) }", [0, 3], [{0, -1}, {0}]),
    (
        'uint8[2] x) => (uint8[2] y) <uint8[2] k = {9, 7}> { y = BitShift <direction = "LEFT"> (x, k) }',
        [3, 3],
        [{0, 6, 3}, {128}],
    ),
    ("int32[2] x) => (int32[2] y) <float k = {0.5}> { y = Pow (x, k) }", [9, 2], [{3}, {1, 2}]),
    (
        "float[4] x) => (uint8[4] y) { y = Cast <to = 2> (x) }",
        [-1.5, 300.25, np.nan, 7.75],
        [{0, 255}, {0, 44, 255}, {0, 255}, {7}],
    ),
    (
        "float[3] x) => (int64[3] y) { y = Cast <to = 7> (x) }",
        [np.inf, 2.0**63, 2.0**40],
        [{0, -(2**63), 2**63 - 1}, {0, -(2**63), 2**63 - 1}, {2**40}],
    ),
    (
        "float[2] x) => (int8[2] y) <float s = {0.5}, int8 z = {3}> { y = QuantizeLinear (x, s, z) }",
        [np.nan, np.inf],
        [{0, 127, -128}, {127}],
    ),
]


@pytest.mark.parametrize(("text", "x", "wanted"), OPEN)
def test_what_the_standard_leaves_open_is_any_of_what_implementations_make(
    text: str, x: list[float], wanted: list[set[int]]
) -> None:
    feeds = {"x": np.array(x).astype(text.split("[")[0].replace("float", "float32"))}
    with pytest.raises(Unspecified):
        says(f"g ({text}", **feeds)
    found = [says(f"g ({text}", None, choice, **feeds)[0] for choice in CHOICES]
    assert [{int(each) for each in element} for element in zip(*found, strict=True)] == wanted


@pytest.mark.parametrize(("type", "large"), [("float", 3e38), ("float16", 60000.0), ("double", 1e300)])
def test_a_result_beyond_the_range_of_its_type_is_infinite_or_kept(type: str, large: float) -> None:
    """Implementations that fuse the two products never make the large number."""
    text = f"g ({type}[2] x, {type} l) => ({type}[2] y) {{ a = Mul(x, l) y = Div(a, l) }}"
    dtype = "float32" if type == "float" else type
    feeds = {"x": np.array([large, 1], dtype), "l": np.array(16, dtype)}
    found = {tuple(says(text, None, choice, **feeds)[0]) for choice in CHOICES}
    kept = tuple(feeds["x"].astype(np.float64))
    assert found == ({kept} if type == "double" else {kept, (np.inf, 1.0)})
    assert tuple(says(text, **feeds)[0]) == kept


def test_rounding_moves_what_its_type_does_not_hold() -> None:
    """3 * 0.5 is exact in float32, 3 / 10 is not; of a tie either neighbour comes out."""

    def chances() -> Iterator[Rounding]:
        return (Rounding(np.random.default_rng(n)) for n in range(20))

    text = (
        "g (float[1] x) => (float[1] a, float[1] b) <float h = {0.5}, float t = {10.0}> { a = Mul(x, h) b = Div(x, t) }"
    )
    found = [says(text, chance, x=np.array([3], np.float32)) for chance in chances()]
    assert {a.item() for a, _ in found} == {1.5}
    assert len({b.item() for _, b in found}) == 20 and max(abs(b.item() - 0.3) for _, b in found) < 1e-7
    text = "g (float[1] x) => (float[1] y) <float t = {0.1}> { m = Mul(x, t) y = Round(m) }"
    assert {says(text, chance, x=np.array([5], np.float32))[0].item() for chance in chances()} == {0.0, 1.0}


def test_rounding_moves_further_runs_by_the_same() -> None:
    text = "g (float[1] x) => (float[1] y) <float t = {10.0}> { y = Div(x, t) }"
    rounding = Rounding(np.random.default_rng(0))

    def moved(x: float) -> float:
        given = np.array([x], np.float32)
        return float(says(text, rounding, x=given)[0].item()) - float(given[0]) / 10

    first = moved(3)
    assert moved(3) == first != 0
    rounding.forgotten()
    assert moved(3) != first


def test_every_rule_is_of_an_operator_that_is_compiled() -> None:
    known = {*supported(), *(schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "")}
    assert rules().keys() <= known


@pytest.mark.parametrize(
    "node",
    [
        "RandomNormal <shape = [3, 4], seed = 2.0, mean = 1.0, scale = 3.0> ()",
        "RandomUniformLike <seed = 5.0, low = -1.0> (x)",
        "Dropout <seed = 4> (x, r, t)",
    ],
)
def test_drawn_numbers_are_those_of_the_standards_evaluator(node: str) -> None:
    text = f"g (float[3,4] x) => (float[3,4] y) <float r = {{0.25}}, bool t = {{1}}> {{ y = {node} }}"
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (wanted,) = ReferenceEvaluator(parser.parse_model(HEAD + text)).run(None, {"x": x})
    np.testing.assert_allclose(says(text, x=x)[0], wanted, rtol=1e-5, atol=1e-5)


def test_bernoulli_and_multinomial_follow_their_shares() -> None:
    """A quarter of ones; classes with the logarithms of 1, 2 and 1."""
    x = np.full((100, 100), 0.25, np.float32)
    (ones,) = says("g (float[100,100] x) => (float[100,100] y) { y = Bernoulli <seed = 1.0> (x) }", x=x)
    assert abs(ones.mean() - 0.25) < 0.02
    text = "g (float[1,3] x) => (int32[1,9000] y) { y = Multinomial <seed = 1.0, sample_size = 9000> (x) }"
    (classes,) = says(text, x=np.log(np.array([[1, 2, 1]], np.float32)))
    np.testing.assert_allclose(np.bincount(classes[0]) / 9000, [0.25, 0.5, 0.25], atol=0.02)


def test_numbers_without_a_seed_are_not_judged() -> None:
    with pytest.raises(NoWitness, match="without a seed"):
        says("g (float[2] x) => (float[2] y) { y = Bernoulli (x) }", x=np.zeros(2))
