"""TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble of ai.onnx.ml: decision trees.

Reading a node turns its attributes into constant operands (tables of nodes and of weights at leaves): what was learnt
lies in the blob.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.dtypes import DType, f32, f64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.tree_ensemble import MODES
from ..kinds.tree_ensemble import TreeEnsemble as TreeKind
from ..program.ir import View
from .api import Constant, Fact, Invalid, Lowering, OnnxNode, Operator, Site
from .rules.elementwise import wide
from .rules.scores import TRANSFORMS, Labels, class_labels, classified, give_classes, transform_of, transformed

_COMBINE = {"SUM": "sum", "AVERAGE": "average", "MIN": "min", "MAX": "max"}
_FIRST = 1  # operand 0 is x; then come the tables in the order of the kind, then the base values


@dataclass
class Forest:
    """Trees on their way into tables. `yes` and `no` of a leaf: the first of its weights and the one after the last."""

    roots: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    mode: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)

    def branch(self, feature: int, threshold: float, mode: int, missing: int) -> int:
        """A node whose ways are set later; its position."""
        if feature < 0:
            raise Invalid(f"a node looks at feature {feature}")
        return self._add(feature, threshold, mode, missing)

    def _add(self, feature: int, threshold: float, mode: int, missing: int) -> int:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.mode.append(mode)
        self.missing.append(missing)
        self.yes.append(-1)
        self.no.append(-1)
        return len(self.feature) - 1

    def leaf(self, weights: Sequence[tuple[int, float]]) -> int:
        position = self._add(-1, 0.0, 0, 0)
        self.yes[position] = len(self.target)
        self.target += [target for target, _ in weights]
        self.weight += [weight for _, weight in weights]
        self.no[position] = len(self.target)
        return position

    def order(self, features: int, targets: int) -> list[int]:
        """All nodes that walks reach, each before those it leads to. Raises unless every walk ends at a leaf and every
        number names something that is there."""
        if any(number >= features for number in self.feature):
            raise Invalid(f"a node looks at feature {max(self.feature)}, and x has {features}")
        if any(not 0 <= number < targets for number in self.target):
            raise Invalid(f"a leaf speaks of target {max(self.target)} of {targets}")
        done, above = dict[int, None](), set[int]()
        waiting = list(self.roots)
        while waiting:
            position = waiting[-1]
            ways = [self.yes[position], self.no[position]] if self.feature[position] >= 0 else []
            if position in done or position in above:
                done[waiting.pop()] = None
                above.discard(position)
                continue
            if any(way == position or way in above for way in ways):
                raise Invalid("a tree has a cycle")
            above.add(position)
            waiting += [way for way in ways if way not in done]
        return list(reversed(done))

    def rearrange(self, order: Sequence[int]) -> None:
        """Lays the nodes down in this order; those that are not in it are left out."""
        place = {position: number for number, position in enumerate(order)}
        self.roots = [place[root] for root in self.roots]
        for ways in (self.yes, self.no):
            ways[:] = [way if leaf < 0 else place.get(way, -1) for way, leaf in zip(ways, self.feature, strict=True)]
        columns: list[list[Any]] = [self.feature, self.threshold, self.mode, self.missing, self.yes, self.no]
        for column in columns:
            column[:] = [column[position] for position in order]

    def tables(
        self, node: OnnxNode, dtype: DType, base: Sequence[float], features: int, targets: int
    ) -> dict[str, Any]:
        """Sets the node's operands; gives the attributes that tell how the kind is to read them."""
        self.rearrange(self.order(features, targets))
        longest = max(len(self.feature), len(self.target), features)
        position = np.int16 if longest < 2**15 else np.int32
        inner = [mode for mode, feature in zip(self.mode, self.feature, strict=True) if feature >= 0]
        mixed = len(set(inner)) > 1
        arrays = [
            np.array(self.roots, position),
            np.array(self.feature, position),
            np.array(self.threshold).astype(dtype.numpy),
            np.array(self.yes, position),
            np.array(self.no, position),
            np.array(self.target, position),
            np.array(self.weight).astype(dtype.numpy),
        ]
        if mixed:
            arrays.append(np.array(self.mode, np.int8))
        if any(self.missing):
            arrays.append(np.array(self.missing, np.uint8))
        if base:
            arrays.append(np.array(base).astype(dtype.numpy))
        for place, array in enumerate(arrays, _FIRST):
            node.set_input(place, node.constant(array))
        uses = ("modes",) * mixed + ("missing",) * any(self.missing)
        return {"mode": MODES[inner[0]] if inner and not mixed else MODES[0], "uses": uses, "base": len(base)}


def _numbers(attributes: dict[str, Any], name: str) -> list[float]:
    """An attribute of floats, or the tensor that newer versions have in its place; taken out."""
    plain, tensor = attributes.pop(name, ()), attributes.pop(f"{name}_as_tensor", None)
    if isinstance(tensor, Constant):
        return [float(value) for value in tensor.array.reshape(-1)]
    return [float(value) for value in plain]


def _read_nodes(attributes: dict[str, Any], kind: str) -> tuple[Forest, list[int]]:
    """The trees of a classifier (`kind` is class) or regressor (target), and which targets their leaves speak of."""
    ids = list(zip(attributes.pop("nodes_treeids", ()), attributes.pop("nodes_nodeids", ()), strict=False))
    columns = {
        name: attributes.pop(f"nodes_{name}", ()) for name in ("featureids", "modes", "truenodeids", "falsenodeids")
    }
    missing = attributes.pop("nodes_missing_value_tracks_true", ()) or (0,) * len(ids)
    values = _numbers(attributes, "nodes_values")
    _numbers(attributes, "nodes_hitrates")
    names = [attributes.pop(f"{kind}_{name}", ()) for name in ("treeids", "nodeids", "ids")]
    weights = _numbers(attributes, f"{kind}_weights")
    if any(len(column) != len(ids) for column in (*columns.values(), missing, values)) or not ids:
        raise Invalid("the attributes about nodes are not of one length")
    if any(len(column) != len(weights) for column in names):
        raise Invalid(f"the attributes about {kind}es are not of one length")
    at_leaf: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, leaf, target, weight in zip(*names, weights, strict=True):
        at_leaf.setdefault((tree, leaf), []).append((target, weight))
    place = {node: position for position, node in enumerate(ids)}
    if len(place) != len(ids):
        raise Invalid("two nodes of one tree have the same id")
    forest = Forest()
    roots: dict[int, int] = {}  # of a tree: its first node
    for position, (node, mode) in enumerate(zip(ids, columns["modes"], strict=True)):
        roots.setdefault(node[0], position)
        if mode == "LEAF":
            forest.leaf(at_leaf.get(node, []))
            continue
        if mode.removeprefix("BRANCH_") not in MODES:
            raise Invalid(f"a node has mode {mode!r}")
        number = MODES.index(mode.removeprefix("BRANCH_"))
        forest.branch(columns["featureids"][position], values[position], number, missing[position])
        ways = [(node[0], columns[name][position]) for name in ("truenodeids", "falsenodeids")]
        if any(way not in place for way in ways):
            raise Invalid(f"node {node[1]} of tree {node[0]} leads to a node that is not there")
        forest.yes[position], forest.no[position] = (place[way] for way in ways)
    forest.roots += roots.values()
    return forest, list(names[2])


def _features(node: OnnxNode) -> tuple[int, DType]:
    """How many features x has, and the type in which they are compared."""
    x = node.inputs[0].type if node.inputs and node.inputs[0] else None
    if x is None or x.rank not in (1, 2) or not isinstance(x.shape[-1], int):
        raise Invalid(f"x is {x}, not [rows, features]")
    return x.shape[-1], f64 if x.dtype is f64 else f32


@dataclass(frozen=True)
class Trees(Operator, abstract=True):
    """What the three have in common."""

    no_gradient = "trees change in steps"
    targets: int = 1
    combine: str = "sum"
    mode: str = "LEQ"
    uses: tuple[str, ...] = ()
    base: int = 0  # how many base values there are
    transform: str = "NONE"

    def rows(self, site: Site) -> Any:
        x = site.type(0)
        return x.shape[0] if x.rank == 2 else 1

    def sums(self, to: Lowering) -> View:
        """[rows, targets], without base values."""
        x = to.input(0)
        x = to.reshape(x, (self.rows(to.site), x.shape[-1]))
        tables = [to.input(number) for number in range(_FIRST, _FIRST + 7 + len(self.uses))]
        dtype = tables[2].buffer.dtype
        kind = TreeKind(self.combine, self.mode, self.uses)
        return to.call(kind, [to.cast(x, dtype), *tables], TensorType(dtype, (x.shape[0], self.targets)))[0]

    def base_values(self, to: Lowering) -> View | None:
        return to.input(_FIRST + 7 + len(self.uses)) if self.base else None

    def with_base(self, to: Lowering, sums: View) -> View:
        base = self.base_values(to)
        return sums if base is None else to.binary("add", sums, base)

    writable = False  # operands and tables cannot be turned back


@dataclass(frozen=True)
class TreeEnsembleRegressor(Trees):
    domain = "ai.onnx.ml"
    versions = (1, 3)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        attributes = node.attributes
        features, dtype = _features(node)
        targets, how = attributes.pop("n_targets", 1), attributes.pop("aggregate_function", "SUM")
        transform, base = transform_of(node), _numbers(attributes, "base_values")
        if how not in _COMBINE or len(base) not in (0, targets):
            raise Invalid(f"aggregate_function is {how!r}, and there are {len(base)} base values for {targets} targets")
        forest, _ = _read_nodes(attributes, "target")
        return cls(targets, _COMBINE[how], transform=transform, **forest.tables(node, dtype, base, features, targets))

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(f32, (self.rows(site), self.targets)))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.cast(transformed(to, self.with_base(to, self.sums(to)), self.transform), f32))


@dataclass(frozen=True)
class TreeEnsembleClassifier(Trees):
    """With two labels whose leaves speak of one class only, the sum is the score of that class; of the other one it is
    1 minus that where all weights are probabilities, and its negative otherwise (`positive`)."""

    domain = "ai.onnx.ml"
    versions = (1, 3)
    labels: Labels = ()
    binary: bool = False
    positive: bool = False

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        attributes = node.attributes
        features, dtype = _features(node)
        labels = class_labels(node, "classlabels_int64s", "classlabels_strings")
        transform, base = transform_of(node), _numbers(attributes, "base_values")
        forest, classes = _read_nodes(attributes, "class")
        binary = len(labels) == 2 and len(set(classes)) == 1
        if binary:
            forest.target = [0] * len(forest.target)
        targets = 1 if binary else len(labels)
        if len(base) not in ((0, 1, 2) if binary else (0, targets)):
            raise Invalid(f"there are {len(base)} base values for {len(labels)} classes")
        if binary and len(base) == 2:
            base = base[1:]
        tables = forest.tables(node, dtype, base, features, targets)
        positive = all(weight >= 0 for weight in forest.weight)
        return cls(targets, labels=labels, transform=transform, binary=binary, positive=positive, **tables)

    def infer(self, site: Site) -> list[Fact]:
        rows = self.rows(site)
        return classified(self.labels, rows, len(self.labels))[: site.outputs]

    def lower(self, to: Lowering) -> None:
        sums = self.with_base(to, self.sums(to))
        half = 0.5 if self.positive else 0.0
        give_classes(to, sums, self.labels, self.transform, half if self.binary else None, self.positive)


@dataclass(frozen=True)
class TreeEnsemble(Trees):
    """Version 5: nodes and leaves have tables of their own, and a node may ask whether a value is one of a set."""

    domain = "ai.onnx.ml"
    versions = (5,)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        attributes = node.attributes
        features, dtype = _features(node)
        targets = attributes.pop("n_targets", 1)
        how, transform = attributes.pop("aggregate_function", 1), attributes.pop("post_transform", 0)
        if how not in range(4) or transform not in range(len(TRANSFORMS)):
            raise Invalid(f"aggregate_function {how} and post_transform {transform} mean nothing")
        forest = _read_ensemble(attributes)
        combine = ("average", "sum", "min", "max")[how]
        return cls(
            targets, combine, transform=TRANSFORMS[transform], **forest.tables(node, dtype, (), features, targets)
        )

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if not x.dtype.is_float:
            raise Invalid(f"x is {x}")
        return [Fact(TensorType(x.dtype, (self.rows(site), self.targets)))]

    def lower(self, to: Lowering) -> None:
        sums = self.sums(to)
        assert sums.buffer.dtype is wide(to.type().dtype)
        to.set(0, to.cast(transformed(to, sums, self.transform), to.type().dtype))


_MEMBER = len(MODES)


def _read_ensemble(attributes: dict[str, Any]) -> Forest:
    def array(name: str) -> list[Any]:
        value = attributes.pop(name, ())
        return list(value.array.reshape(-1)) if isinstance(value, Constant) else list(value)

    feature, modes, splits = array("nodes_featureids"), array("nodes_modes"), array("nodes_splits")
    ways = {name: array(f"nodes_{name}") for name in ("truenodeids", "trueleafs", "falsenodeids", "falseleafs")}
    missing = array("nodes_missing_value_tracks_true") or [0] * len(feature)
    array("nodes_hitrates")
    leaf_target, leaf_weight = array("leaf_targetids"), array("leaf_weights")
    if any(len(column) != len(feature) for column in (modes, splits, missing, *ways.values())):
        raise Invalid("the attributes about nodes are not of one length")
    if len(leaf_target) != len(leaf_weight):
        raise Invalid("the attributes about leaves are not of one length")
    sets: list[list[float]] = [[]]
    for value in array("membership_values"):
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    members = iter(sets)
    of_node = [
        next(members, []) if mode == _MEMBER else [float(split)] for mode, split in zip(modes, splits, strict=True)
    ]
    forest = Forest()

    def leaf(number: int) -> int:
        if not 0 <= number < len(leaf_target):
            raise Invalid(f"a node leads to leaf {number} of {len(leaf_target)}")
        return forest.leaf([(int(leaf_target[number]), float(leaf_weight[number]))])

    found: dict[int, int] = {}  # position of each node that is laid down

    def grow(start: int) -> int:
        """Lays down what hangs below a node; its position. A set becomes a chain of nodes, one for each element."""
        waiting: list[tuple[int, list[int], list[int]]] = [
            (start, forest.yes, [])
        ]  # node, and the ways that lead to it
        while waiting:
            number, side, parents = waiting.pop()
            if not 0 <= number < len(feature):
                raise Invalid(f"node {number} is not there")
            if number not in found:
                chain = lay_down(number)
                found[number] = chain[0]
                for name, own_side, positions in (("true", forest.yes, chain), ("false", forest.no, chain[-1:])):
                    way = int(ways[f"{name}nodeids"][number])
                    if ways[f"{name}leafs"][number]:
                        end = leaf(way)
                        for position in positions:
                            own_side[position] = end
                    else:
                        waiting.append((way, own_side, positions))
            for position in parents:
                side[position] = found[number]
        return found[start]

    def lay_down(number: int) -> list[int]:
        mode, values = int(modes[number]), of_node[number]
        if not 0 <= mode <= _MEMBER or not values:
            raise Invalid(f"node {number} has mode {mode} and the set {values}")
        test = MODES.index("EQ") if mode == _MEMBER else mode
        chain = [forest.branch(int(feature[number]), value, test, int(missing[number])) for value in values]
        for position, following in pairwise(chain):
            forest.no[position] = following
        return chain

    for root in attributes.pop("tree_roots"):
        only_leaf = ways["trueleafs"][root] and ways["falseleafs"][root] if 0 <= root < len(feature) else False
        same = only_leaf and ways["truenodeids"][root] == ways["falsenodeids"][root]
        forest.roots.append(leaf(int(ways["truenodeids"][root])) if same else grow(int(root)))
    return forest
