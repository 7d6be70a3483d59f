"""Operators of ai.onnx.ml on tables of numbers."""

from __future__ import annotations

from ..builder import Builder, Value
from .registry import makes

ML = "ai.onnx.ml"


def table(g: Builder) -> Value:
    return g.input("float32", (g.integer(1, 3), g.integer(1, 5)), "exact")


def floats(g: Builder, count: int) -> list[float]:
    return [float(n) / 8 for n in g.chance.integers(-16, 17, count)]


@makes("ai.onnx.ml::ArrayFeatureExtractor")
def columns(g: Builder, op: str) -> Value | None:
    x = table(g)
    return g.node(op, [x, g.index(0, x.shape[1] - 1, (g.integer(1, 3),))], domain=ML, exact=True)


@makes("ai.onnx.ml::Binarizer")
def binary(g: Builder, op: str) -> Value | None:
    return g.node(op, [table(g)], domain=ML, threshold=g.pick([0.0, 0.5]), exact=True)


@makes("ai.onnx.ml::FeatureVectorizer")
def joined(g: Builder, op: str) -> Value | None:
    x = table(g)
    return g.node(op, [x, x], domain=ML, inputdimensions=[x.shape[1], x.shape[1]])


@makes("ai.onnx.ml::Imputer")
def imputed(g: Builder, op: str) -> Value | None:
    x = table(g)
    return g.node(op, [x], domain=ML, imputed_value_floats=floats(g, x.shape[1]), replaced_value_float=0.5, exact=True)


@makes("ai.onnx.ml::LinearRegressor")
def regressor(g: Builder, op: str) -> Value | None:
    x, targets = table(g), g.integer(1, 3)
    form = {"coefficients": floats(g, targets * x.shape[1]), "intercepts": floats(g, targets), "targets": targets}
    return g.node(op, [x], domain=ML, exact=True, **form)


@makes("ai.onnx.ml::LinearClassifier")
def classifier(g: Builder, op: str) -> Value | None:
    x, classes = table(g), g.integer(2, 4)
    form = {"coefficients": floats(g, classes * x.shape[1]), "intercepts": floats(g, classes)}
    form |= {"classlabels_ints": list(range(classes)), "post_transform": g.pick(["NONE", "SOFTMAX", "LOGISTIC"])}
    found = g.nodes_(op, [x], 2, domain=ML, **form)
    return found[1] if found else None


@makes("ai.onnx.ml::Normalizer")
def normal(g: Builder, op: str) -> Value | None:
    x = g.input("float32", (g.integer(1, 3), g.integer(1, 5)), "positive")
    return g.node(op, [x], domain=ML, norm=g.pick(["MAX", "L1", "L2"]))


@makes("ai.onnx.ml::OneHotEncoder")
def one_hot(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.index(0, 3, (g.integer(1, 4),))], domain=ML, cats_int64s=[0, 1, 2, 5], zeros=1)


@makes("ai.onnx.ml::Scaler")
def scaled(g: Builder, op: str) -> Value | None:
    x = table(g)
    return g.node(op, [x], domain=ML, offset=floats(g, x.shape[1]), scale=floats(g, x.shape[1]), exact=True)


@makes("ai.onnx.ml::SVMRegressor")
def vectors(g: Builder, op: str) -> Value | None:
    x, count = table(g), g.integer(1, 4)
    form = {"kernel_type": g.pick(["LINEAR", "RBF", "POLY", "SIGMOID"]), "kernel_params": [0.25, 0.5, 2.0]}
    form |= {"support_vectors": floats(g, count * x.shape[1]), "coefficients": floats(g, count), "rho": floats(g, 1)}
    return g.node(op, [x], domain=ML, n_supports=count, **form)


@makes("ai.onnx.ml::SVMClassifier")
def svm(g: Builder, op: str) -> Value | None:
    x = table(g)
    form = {"kernel_type": g.pick(["LINEAR", "RBF"]), "kernel_params": [0.25, 0.5, 2.0], "classlabels_ints": [0, 1]}
    form |= {"support_vectors": floats(g, 2 * x.shape[1]), "coefficients": floats(g, 2), "rho": floats(g, 1)}
    form["post_transform"] = g.pick(["NONE", "LOGISTIC", "SOFTMAX"])
    found = g.nodes_(op, [x], 2, domain=ML, vectors_per_class=[1, 1], **form)
    return found[1] if found else None


def tree(g: Builder, features: int) -> dict[str, list[object]]:
    """One complete tree of depth 2: nodes 0 to 2 ask, 3 to 6 are leaves."""
    return {
        "nodes_treeids": [0] * 7,
        "nodes_nodeids": list(range(7)),
        "nodes_featureids": [g.integer(0, features - 1) for _ in range(3)] + [0] * 4,
        "nodes_modes": [g.pick(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"])] * 3 + ["LEAF"] * 4,
        "nodes_values": [*floats(g, 3), 0.0, 0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 3, 5, 0, 0, 0, 0],
        "nodes_falsenodeids": [2, 4, 6, 0, 0, 0, 0],
    }


@makes("ai.onnx.ml::TreeEnsembleRegressor")
def trees(g: Builder, op: str) -> Value | None:
    x = table(g)
    form = {f"target_{name}": values for name, values in _leaves(g, 1).items()}
    return g.node(op, [x], domain=ML, exact=True, n_targets=1, **tree(g, x.shape[1]), **form)


@makes("ai.onnx.ml::TreeEnsembleClassifier")
def tree_classes(g: Builder, op: str) -> Value | None:
    x, classes = table(g), g.integer(3, 4)  # labels of two classes are left to judgement: docs/fuzzing.md
    form = {f"class_{name}": values for name, values in _leaves(g, classes).items()}
    more = {"classlabels_int64s": list(range(classes)), "post_transform": g.pick(["NONE", "SOFTMAX"])}
    found = g.nodes_(op, [x], 2, domain=ML, **tree(g, x.shape[1]), **form, **more)
    return found[1] if found else None


def _leaves(g: Builder, kinds: int) -> dict[str, list[object]]:
    rows = [(leaf, kind) for leaf in range(3, 7) for kind in range(kinds)]
    return {
        "treeids": [0] * len(rows),
        "nodeids": [leaf for leaf, _ in rows],
        "ids": [kind for _, kind in rows],
        "weights": [abs(n) + 0.125 * k for k, n in enumerate(floats(g, len(rows)))],
    }
