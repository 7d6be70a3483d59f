"""The operators of ai.onnx.ml against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, ValueInfoProto, helper

from mccompile import backend
from mccompile.base.errors import MccError
from tests.small_trees import NODES

ML = "ai.onnx.ml"
CHANCE = np.random.default_rng(11)
X = CHANCE.uniform(-2, 2, (7, 3)).astype(np.float32)


def _model(node: NodeProto, arrays: list[np.ndarray]) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(node.input, arrays, strict=True)
    ]
    graph = helper.make_graph([node], "ml", inputs, [ValueInfoProto(name=name) for name in node.output])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _agrees(op: str, *arrays: np.ndarray, outs: int = 1, **attributes: Any) -> None:
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outs)], domain=ML, **attributes)
    model = _model(node, list(arrays))
    feed = dict(zip(names, arrays, strict=True))
    wants = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    for got, want in zip(backend.run_model(model, feed), wants, strict=True):
        if want.dtype == object:
            assert got.tolist() == want.tolist()
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert got.dtype == want.dtype and got.shape == want.shape


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_linear_classifiers(transform: str) -> None:
    shape: dict[str, Any] = {"coefficients": CHANCE.uniform(-1, 1, 9).tolist(), "intercepts": [0.1, -0.2, 0.3]}
    _agrees("LinearClassifier", X, outs=2, classlabels_ints=[4, 0, 9], post_transform=transform, **shape)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_classifiers_of_two_labels_and_one_row(transform: str) -> None:
    shape: dict[str, Any] = {"coefficients": [0.5, -1.0, 0.25], "intercepts": [0.1]}
    _agrees("LinearClassifier", X, outs=2, classlabels_ints=[0, 1], post_transform=transform, **shape)


def test_linear_regressors() -> None:
    _agrees("LinearRegressor", X, coefficients=[0.5, -1.0, 0.25, 1, 2, 3], intercepts=[0.1, 0.2], targets=2)


def test_scaler_and_its_single_values() -> None:
    _agrees("Scaler", X, offset=[0.5, -1.0, 2.0], scale=[2.0, 3.0, 0.5])
    _agrees("Scaler", X.astype(np.int64), offset=[0.5], scale=[2.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer_keeps_rows_of_zeros(norm: str) -> None:
    x = X.copy()
    x[1], x[2] = -np.abs(x[1]) - 0.5, 0
    x[3] = 1e-30  # whose squares are 0
    _agrees("Normalizer", x, norm=norm)


def test_binarizer() -> None:
    _agrees("Binarizer", X, threshold=0.3)


def test_imputer_replaces_nan_and_numbers() -> None:
    x = X.copy()
    x[1, 1] = np.nan
    _agrees("Imputer", x, imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    _agrees("Imputer", np.array([[1, 7], [7, 2]]), imputed_value_int64s=[5], replaced_value_int64=7)


def test_features_are_joined_and_picked() -> None:
    _agrees("FeatureVectorizer", X, X[:, :2].copy(), inputdimensions=[3, 2])
    _agrees("ArrayFeatureExtractor", X, np.array([2, 0], np.int64))


def test_categories() -> None:
    _agrees("OneHotEncoder", np.array([3, 8, 5, 1], np.int64), cats_int64s=[8, 5, 3])
    _agrees(
        "LabelEncoder", np.array([3, 8, 1], np.int64), keys_int64s=[8, 3], values_floats=[0.5, 1.5], default_float=9.0
    )
    _agrees("LabelEncoder", np.array([0.5, 2, 1.5], np.float32), keys_floats=[0.5, 1.5], values_int64s=[7, 8])


LEAVES = [[0, 0, 1, 1, 1], [1, 2, 1, 3, 4]]


@pytest.mark.parametrize("combine", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_of_numbers(combine: str) -> None:
    weights: dict[str, Any] = {  # every leaf speaks of both: onnxruntime leaves base values out where none does
        "target_treeids": LEAVES[0] * 2,
        "target_nodeids": LEAVES[1] * 2,
        "target_ids": [0] * 5 + [1] * 5,
        "target_weights": [0.5, -1, 2, 3, -0.25, 1, 2, 3, 4, 5],
        "base_values": [0.5, 1.0],
        "n_targets": 2,
    }
    if combine in ("MIN", "MAX"):
        weights |= {name: weights[name][:5] for name in weights if name.startswith("target")}
        weights |= {"base_values": [0.5], "n_targets": 1}
    _agrees("TreeEnsembleRegressor", X, aggregate_function=combine, **NODES, **weights)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_trees_of_classes(transform: str) -> None:
    weights: dict[str, Any] = {"class_treeids": LEAVES[0], "class_nodeids": LEAVES[1], "class_ids": [0, 1, 2, 1, 0]}
    weights |= {"class_weights": [0.5, 1, 2, 3, 0.25], "classlabels_int64s": [5, 6, 7]}
    _agrees("TreeEnsembleClassifier", X, outs=2, post_transform=transform, **NODES, **weights)


@pytest.mark.parametrize(("first", "transform"), [(0.1, "NONE"), (-0.7, "NONE"), (-0.7, "LOGISTIC"), (0.1, "LOGISTIC")])
def test_trees_of_two_classes_that_speak_of_one(first: float, transform: str) -> None:
    weights: dict[str, Any] = {"class_treeids": LEAVES[0], "class_nodeids": LEAVES[1], "class_ids": [0] * 5}
    weights |= {"class_weights": [first, 0.2, 0.4, 0.05, 0.6], "classlabels_int64s": [0, 1]}
    _agrees("TreeEnsembleClassifier", X, outs=2, post_transform=transform, **NODES, **weights)


def test_a_feature_that_is_missing_takes_its_own_way() -> None:
    x = X.copy()
    x[0, 1] = x[3, 0] = np.nan
    weights: dict[str, Any] = {"target_treeids": LEAVES[0], "target_nodeids": LEAVES[1], "target_ids": [0] * 5}
    weights |= {
        "n_targets": 1,
        "target_weights": [0.5, -1, 2, 3, -0.25],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0],
    }
    _agrees("TreeEnsembleRegressor", x, **NODES, **weights)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel: str) -> None:
    vectors: dict[str, Any] = {"support_vectors": CHANCE.uniform(-1, 1, 12).tolist(), "kernel_type": kernel}
    vectors["kernel_params"] = [0.5, 0.1, 2.0]
    _agrees("SVMRegressor", X, coefficients=[1, -0.5, 0.25, 2], rho=[0.3], n_supports=4, **vectors)
    classes: dict[str, Any] = {"vectors_per_class": [2, 1, 1], "classlabels_ints": [0, 1, 2], "rho": [0.1, -0.2, 0.3]}
    _agrees("SVMClassifier", X, outs=2, coefficients=[1, -0.5, 0.25, 2, -1, 0.5, 0.75, -2], **classes, **vectors)


@pytest.mark.parametrize("counts", [[2, 2], [2, 1, 1], [1, 1, 1, 1]])
def test_support_vectors_with_probabilities(counts: list[int]) -> None:
    pairs = len(counts) * (len(counts) - 1) // 2
    draw = CHANCE.uniform(-1, 1, 12 + 4 * (len(counts) - 1) + 3 * pairs).tolist()
    more: dict[str, Any] = {"support_vectors": draw[:12], "kernel_type": "RBF", "kernel_params": [0.5, 0.1, 2.0]}
    more |= {"vectors_per_class": counts, "classlabels_ints": list(range(len(counts)))}
    factors = draw[-3 * pairs :]
    more |= {"rho": factors[:pairs], "prob_a": factors[pairs : 2 * pairs], "prob_b": factors[2 * pairs :]}
    _agrees("SVMClassifier", X, outs=2, coefficients=draw[12 : 12 + 4 * (len(counts) - 1)], **more)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_support_vectors_of_two_classes(transform: str) -> None:
    vectors: dict[str, Any] = {"support_vectors": CHANCE.uniform(-1, 1, 12).tolist()}
    vectors["kernel_params"] = [0.5, 0.0, 3.0]
    classes: dict[str, Any] = {"vectors_per_class": [2, 2], "classlabels_ints": [0, 1], "rho": [0.1]}
    classes |= {"post_transform": transform, "kernel_type": "RBF"}
    _agrees("SVMClassifier", X, outs=2, coefficients=[1, -0.5, 0.25, -2], **classes, **vectors)


def test_nan_belongs_to_the_second_of_two_classes() -> None:
    x = np.array([[1, 2], [np.nan, 1], [-1, -2]], np.float32)
    vectors: dict[str, Any] = {"support_vectors": [1.0] * 4, "kernel_type": "LINEAR", "kernel_params": [0.0] * 3}
    classes: dict[str, Any] = {"vectors_per_class": [1, 1], "classlabels_ints": [0, 1], "rho": [0.1]}
    _agrees("SVMClassifier", x, outs=2, coefficients=[1.0, 1.0], **classes, **vectors)


def test_what_goes_in_a_circle_is_refused() -> None:
    nodes = NODES | {"nodes_truenodeids": [0, 0, 0, 1, 0, 3, 0, 0]}
    weights: dict[str, Any] = {"target_treeids": LEAVES[0], "target_nodeids": LEAVES[1], "target_ids": [0] * 5}
    weights["target_weights"] = [1.0] * 5
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **nodes, **weights)
    with pytest.raises(MccError, match="cycle"):
        backend.prepare(_model(node, [X]))


def test_labels_may_be_strings() -> None:
    three = {"classlabels_strings": ["no", "maybe", "yes"], "intercepts": [0.1, 0, -0.2]}
    _agrees("LinearClassifier", X, outs=2, coefficients=np.linspace(-1, 1, 9).tolist(), **three)
    two = {"classlabels_strings": ["no", "yes"], "intercepts": [0.1]}
    _agrees("LinearClassifier", X, outs=2, coefficients=[1.0, -0.5, 0.25], post_transform="LOGISTIC", **two)


def test_both_kinds_of_labels_are_refused() -> None:
    weights: dict[str, Any] = {"coefficients": [1.0] * 6, "classlabels_strings": ["a", "b"], "classlabels_ints": [1, 2]}
    node = helper.make_node("LinearClassifier", ["x"], ["y", "z"], domain=ML, **weights)
    with pytest.raises(MccError, match="one of classlabels_ints and classlabels_strings"):
        backend.prepare(_model(node, [X]))


WORDS = np.array([["b", "a"], ["", "ü"], ["c", "b"]], object)


def test_encoders_of_strings() -> None:
    numbers = np.array([[1, 2, 9]])
    _agrees("LabelEncoder", WORDS, keys_strings=["a", "b", "ü"], values_floats=[0.5, 1.5, 2.5], default_float=-1.0)
    _agrees("LabelEncoder", WORDS, keys_strings=["a", "b", "ü"], values_strings=["x", "yy", ""], default_string="none")
    _agrees("LabelEncoder", numbers, keys_int64s=[1, 2], values_strings=["one", "two"])
    _agrees("CategoryMapper", WORDS, cats_strings=["a", "b"], cats_int64s=[7, 8], default_int64=5)
    _agrees("CategoryMapper", numbers, cats_strings=["a", "b"], cats_int64s=[1, 2], default_string="?")
    _agrees("OneHotEncoder", WORDS, cats_strings=["a", "c", "ü"])
    _agrees("ArrayFeatureExtractor", WORDS, np.array([1]))
