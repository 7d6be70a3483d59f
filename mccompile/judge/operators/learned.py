"""ai.onnx.ml: trees, linear models, support vectors, and what prepares features for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.records import dataclass
from ..rules import Array, NodeSite, NoWitness, judges
from .reductions import softmax

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")


def transformed(scores: Array, how: str) -> Array:
    if how == "SOFTMAX":
        return softmax(scores, -1)
    if how == "LOGISTIC":
        return 1 / (1 + np.exp(-scores))
    if how == "SOFTMAX_ZERO":
        powers = np.where(scores == 0, 0, np.exp(scores - scores.max(-1, keepdims=True)))
        return powers / powers.sum(-1, keepdims=True)
    if how not in ("NONE", ""):
        raise NoWitness(f"post_transform {how}")
    return scores


def labels(at: NodeSite, *names: str) -> Array:
    for name in names:
        if at.attr(name):
            kind: Any = object if isinstance(at.attr(name)[0], str) else np.int64
            return np.array(at.attr(name), kind)
    raise NoWitness("a classifier without labels")


def _numbers(at: NodeSite, name: str) -> list[float]:
    tensor = at.attr(f"{name}_as_tensor")
    return [float(n) for n in (at.attr(name) or ()) or (() if tensor is None else tensor.reshape(-1))]


# -- trees


@dataclass(frozen=True)
class Branch:
    """A node that compares a feature; `members` of a set."""

    feature: int
    mode: str
    value: float
    missing_is_true: bool
    true: Any
    false: Any
    members: tuple[float, ...] = ()

    def goes(self, x: Array) -> bool:
        number = x[self.feature]
        if np.isnan(number) and self.missing_is_true:
            return True
        return bool({
            "BRANCH_LEQ": number <= self.value,
            "BRANCH_LT": number < self.value,
            "BRANCH_GTE": number >= self.value,
            "BRANCH_GT": number > self.value,
            "BRANCH_EQ": number == self.value,
            "BRANCH_NEQ": number != self.value,
            "BRANCH_MEMBER": number in self.members,
        }[self.mode])  # fmt: skip


def leaf(nodes: Mapping[Any, Branch], root: Any, x: Array) -> Any:
    """The key that no branch has."""
    at, seen = root, 0
    while at in nodes:
        at = nodes[at].true if nodes[at].goes(x) else nodes[at].false
        seen += 1
        if seen > len(nodes):
            raise NoWitness("a tree that never ends")
    return at


def _old_trees(at: NodeSite) -> tuple[dict[Any, Branch], list[Any]]:
    """Nodes by tree and number, and the roots."""
    trees, numbers, modes = at.attr("nodes_treeids"), at.attr("nodes_nodeids"), at.attr("nodes_modes")
    values = _numbers(at, "nodes_values")
    missing = at.attr("nodes_missing_value_tracks_true") or [0] * len(trees)
    nodes: dict[Any, Branch] = {}
    roots: dict[Any, Any] = {}
    for n, (tree, number) in enumerate(zip(trees, numbers, strict=True)):
        roots.setdefault(tree, (tree, number))
        if modes[n] != "LEAF":
            yes, no = at.attr("nodes_truenodeids")[n], at.attr("nodes_falsenodeids")[n]
            feature = at.attr("nodes_featureids")[n]
            nodes[tree, number] = Branch(feature, modes[n], values[n], bool(missing[n]), (tree, yes), (tree, no))
    return nodes, list(roots.values())


def _votes(at: NodeSite, kind: str) -> dict[Any, list[tuple[int, float]]]:
    found: dict[Any, list[tuple[int, float]]] = {}
    rows = zip(
        at.attr(f"{kind}_treeids"), at.attr(f"{kind}_nodeids"), at.attr(f"{kind}_ids"),
        _numbers(at, f"{kind}_weights"), strict=True,
    )  # fmt: skip
    for tree, node, target, weight in rows:
        found.setdefault((tree, node), []).append((int(target), weight))
    return found


@judges("ai.onnx.ml::TreeEnsembleRegressor")
def tree_regressor(at: NodeSite) -> Array:
    nodes, roots = _old_trees(at)
    votes, targets = _votes(at, "target"), int(at.attr("n_targets", 1))
    base = np.array(_numbers(at, "base_values") or [0.0] * targets)
    how = at.attr("aggregate_function", "SUM")
    scores = np.array([_aggregated(nodes, roots, votes, x, targets, how) for x in at[0]]).reshape(-1, targets)
    return transformed(scores + base, at.attr("post_transform", "NONE"))


def _aggregated(
    nodes: Mapping[Any, Branch], roots: Sequence[Any], votes: Mapping[Any, Any], x: Array, targets: int, how: str
) -> list[float]:
    taken: list[list[float]] = [[] for _ in range(targets)]
    for root in roots:
        for target, weight in votes.get(leaf(nodes, root, x), ()):
            taken[target].append(weight)
    if how == "AVERAGE":
        return [sum(each) / len(roots) for each in taken]
    if how in ("MIN", "MAX"):
        if not all(taken):
            raise NoWitness("the extreme of no votes")
        return [(min if how == "MIN" else max)(each) for each in taken]
    return [sum(each) for each in taken]


@judges("ai.onnx.ml::TreeEnsembleClassifier")
def tree_classifier(at: NodeSite) -> tuple[Array, Array]:
    """The standard: "Returns the top class for each of N inputs", that of the largest score. Two classes whose votes
    all go to one of them have one score, and the text does not say how it becomes two."""
    names = labels(at, "classlabels_strings", "classlabels_int64s")
    nodes, roots = _old_trees(at)
    votes = _votes(at, "class")
    if len(names) < 3 and len({n for each in votes.values() for n, _ in each}) < 2:
        raise NoWitness("ONNX does not say how one score becomes the scores of two classes")
    base = np.array(_numbers(at, "base_values") or [0.0] * len(names))
    scores = np.array([_aggregated(nodes, roots, votes, x, len(names), "SUM") for x in at[0]]).reshape(-1, len(names))
    scores = scores + base
    return names[np.argmax(scores, 1)], transformed(scores, at.attr("post_transform", "NONE"))


@judges("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(at: NodeSite) -> Array:
    """Keys of leaves are negative: -1 - number."""
    sets: list[list[float]] = [[]]
    for value in np.asarray(at.attr("membership_values", np.zeros(0))).reshape(-1):
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    missing = at.attr("nodes_missing_value_tracks_true") or [0] * len(at.attr("nodes_featureids"))
    splits = np.asarray(at.attr("nodes_splits"), np.float64).reshape(-1)
    nodes = {}
    for n, mode in enumerate(np.asarray(at.attr("nodes_modes")).reshape(-1).tolist()):
        yes, no = at.attr("nodes_truenodeids")[n], at.attr("nodes_falsenodeids")[n]
        yes = -1 - yes if at.attr("nodes_trueleafs")[n] else yes
        no = -1 - no if at.attr("nodes_falseleafs")[n] else no
        members = tuple(sets.pop(0)) if _MODES[mode] == "BRANCH_MEMBER" else ()
        feature = at.attr("nodes_featureids")[n]
        nodes[n] = Branch(feature, _MODES[mode], float(splits[n]), bool(missing[n]), yes, no, members)
    weights = np.asarray(at.attr("leaf_weights"), np.float64).reshape(-1)
    votes = {-1 - n: [(t, float(w))] for n, (t, w) in enumerate(zip(at.attr("leaf_targetids"), weights, strict=True))}
    how = ("AVERAGE", "SUM", "MIN", "MAX")[at.attr("aggregate_function", 1)]
    targets, roots = int(at.attr("n_targets")), at.attr("tree_roots")
    scores = np.array([_aggregated(nodes, roots, votes, x, targets, how) for x in at[0]]).reshape(-1, targets)
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[at.attr("post_transform", 0)]
    return transformed(scores, post)


# -- linear models and support vectors


@judges("ai.onnx.ml::LinearRegressor")
def linear_regressor(at: NodeSite) -> Array:
    targets = at.attr("targets", 1)
    weights = np.array(at.attr("coefficients"), np.float64).reshape(targets, -1)
    scores = at[0].astype(np.float64).reshape(-1, weights.shape[1]) @ weights.T
    return transformed(scores + np.array(at.attr("intercepts") or [0.0]), at.attr("post_transform", "NONE"))


@judges("ai.onnx.ml::LinearClassifier")
def linear_classifier(at: NodeSite) -> tuple[Array, Array]:
    names = labels(at, "classlabels_strings", "classlabels_ints")
    x = np.atleast_2d(at[0].astype(np.float64))
    weights = np.array(at.attr("coefficients"), np.float64).reshape(-1, x.shape[1])
    if len(weights) != len(names):
        raise NoWitness("ONNX does not say how one score becomes the scores of two classes")
    scores = x @ weights.T + np.array(at.attr("intercepts") or [0.0])
    return names[np.argmax(scores, 1)], transformed(scores, at.attr("post_transform", "NONE"))


def _kernel(at: NodeSite, x: Array, vectors: Array) -> Array:
    gamma, coef0, degree = at.attr("kernel_params") or (0.0, 0.0, 0.0)
    kind = at.attr("kernel_type", "LINEAR")
    if kind == "RBF":
        return np.exp(-gamma * ((x[:, None] - vectors[None]) ** 2).sum(-1))
    products = x @ vectors.T
    if kind == "POLY":
        return (gamma * products + coef0) ** degree
    return np.tanh(gamma * products + coef0) if kind == "SIGMOID" else products


@judges("ai.onnx.ml::SVMRegressor")
def svm_regressor(at: NodeSite) -> Array:
    x = np.atleast_2d(at[0].astype(np.float64))
    count = at.attr("n_supports", 0)
    coefficients = np.array(at.attr("coefficients"), np.float64)
    vectors = np.array(at.attr("support_vectors") or (), np.float64)
    if count:
        sums = _kernel(at, x, vectors.reshape(count, -1)) @ coefficients
    else:
        sums = _kernel(at, x, coefficients.reshape(1, -1))[:, 0]
    found = sums + at.attr("rho")[0]
    if at.attr("one_class", 0):
        found = np.where(found > 0, 1.0, -1.0)
    return transformed(found.reshape(-1, 1), at.attr("post_transform", "NONE"))


# -- features


@judges("ai.onnx.ml::ArrayFeatureExtractor")
def array_feature_extractor(at: NodeSite) -> Array:
    found = np.take(at[0], at[1].reshape(-1).astype(np.int64), -1)
    return found.reshape(1, -1) if at[0].ndim == 1 else found


@judges("ai.onnx.ml::Binarizer")
def binarizer(at: NodeSite) -> Array:
    return (at[0] > at.attr("threshold", 0.0)).astype(at[0].dtype)


@judges("ai.onnx.ml::CategoryMapper")
def category_mapper(at: NodeSite) -> Array:
    strings, numbers = at.attr("cats_strings"), at.attr("cats_int64s")
    if at[0].dtype.kind == "O":
        found = dict(zip(strings, numbers, strict=True))
        made = [found.get(each, at.attr("default_int64", -1)) for each in at[0].reshape(-1)]
        return np.array(made, np.int64).reshape(at[0].shape)
    back = dict(zip(numbers, strings, strict=True))
    made = [back.get(int(each), at.attr("default_string", "_Unused")) for each in at[0].reshape(-1)]
    return np.array(made, object).reshape(at[0].shape)


@judges("ai.onnx.ml::FeatureVectorizer")
def feature_vectorizer(at: NodeSite) -> Array:
    parts = []
    for x, size in zip(at.operands, at.attr("inputdimensions"), strict=True):
        rows = np.asarray(x, np.float64)
        rows = rows.reshape(1, -1) if rows.ndim == 1 else rows.reshape(len(rows), -1)
        short = max(size - rows.shape[1], 0)
        parts.append(np.pad(rows[:, :size], [(0, 0), (0, short)]))
    return np.concatenate(parts, 1)


@judges("ai.onnx.ml::Imputer")
def imputer(at: NodeSite) -> Array:
    x = at[0]
    if x.dtype.kind == "f":
        value, new = at.attr("replaced_value_float", 0.0), np.array(at.attr("imputed_value_floats"), np.float64)
        missing = np.isnan(x) if np.isnan(value) else x == value
    else:
        value, new = at.attr("replaced_value_int64", 0), np.array(at.attr("imputed_value_int64s"), x.dtype)
        missing = x == value
    return np.where(missing, new if len(new) == x.shape[-1] else new[0], x)


@judges("ai.onnx.ml::LabelEncoder")
def label_encoder(at: NodeSite) -> Array:
    keys = _column(at, "keys", ("classes_strings",))
    values = _column(at, "values", ())
    if at.version < 2:
        strings = at.attr("classes_strings")
        to_text = at[0].dtype.kind != "O"
        keys, values = (range(len(strings)), strings) if to_text else (strings, range(len(strings)))
    default: Any = at.attr("default_tensor")
    if default is not None:
        default = default.reshape(-1)[0]
        default = default.decode() if isinstance(default, bytes) else default
    elif isinstance(values[0], str):
        default = at.attr("default_string", "_Unused")
    elif isinstance(values[0], float | np.floating):
        default = at.attr("default_float", -0.0)
    else:
        default = at.attr("default_int64", -1)
    table = {_key(k): v for k, v in zip(keys, values, strict=True)}
    made = [table.get(_key(each), default) for each in at[0].reshape(-1)]
    kind: Any = object if isinstance(default, str) else np.float64 if isinstance(default, float | np.floating) else None
    found = np.array(made, kind or getattr(default, "dtype", np.int64))
    return found.reshape(at[0].shape)


def _key(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return "nan" if isinstance(value, float | np.floating) and np.isnan(value) else value


def _column(at: NodeSite, stem: str, more: Sequence[str]) -> Any:
    names = [f"{stem}_{kind}" for kind in ("strings", "int64s", "floats", "tensor")]
    for name in (*names, *more):
        if at.attr(name) is not None:
            found = at.attr(name)
            return [_key(each) for each in found.reshape(-1)] if isinstance(found, np.ndarray) else found
    return []


@judges("ai.onnx.ml::Normalizer")
def normalizer(at: NodeSite) -> Array:
    """ "In all modes, if the divisor is zero, Y == X.\""""
    x, how = at[0].astype(np.float64), at.attr("norm", "MAX")
    if how == "MAX":
        divisor = x.max(-1, keepdims=True)
    elif how == "L1":
        divisor = np.abs(x).sum(-1, keepdims=True)
    else:
        divisor = np.sqrt((x**2).sum(-1, keepdims=True))
    return np.where(divisor == 0, x, x / np.where(divisor == 0, 1, divisor))


@judges("ai.onnx.ml::OneHotEncoder")
def one_hot_encoder(at: NodeSite) -> Array:
    strings = at.attr("cats_strings")
    x = at[0] if strings else at[0].astype(np.int64)
    known = np.array(strings, object) if strings else np.array(at.attr("cats_int64s"), np.int64)
    found = (x[..., None] == known).astype(np.float64)
    if not at.attr("zeros", 1) and not found.any(-1).all():
        raise NoWitness("an element of no category")
    return found


@judges("ai.onnx.ml::Scaler")
def scaler(at: NodeSite) -> Array:
    return (at[0].astype(np.float64) - np.array(at.attr("offset") or [0.0])) * np.array(at.attr("scale") or [1.0])


@judges("ai.onnx.ml::ZipMap")
def zip_map(at: NodeSite) -> Array:
    """As rows of scores, which is what a compiled model gives."""
    return at[0]
