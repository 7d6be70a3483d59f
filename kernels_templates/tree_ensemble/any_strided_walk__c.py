"""tree_ensemble in portable C: from the root of each tree down to a leaf, whose weights are added to the result.

Where a core overlaps what does not wait for each other, several walk at once and without branches on numbers: in one
tree for as many rows or, of few rows, in as many trees for one. Who has come to a leaf waits there for the others, and
leaves are added up in the order of the trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f32, f64, i8, i16, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.codegen.traffic import has_traffic
from mccompile.expr.scalar_c import literal_c, load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types
from mccompile.kinds.tree_ensemble import MODES, TreeEnsemble

_OPERATORS = dict(zip(MODES, ("<=", "<", ">=", ">", "==", "!="), strict=True))
_STARTS = {"sum": 0.0, "average": 0.0, "min": float("inf"), "max": float("-inf")}
WALKERS = 8  # at once
BLOCK = 64  # rows that go down a tree before the next one
ONE, OVERLAPPED = 100, 30  # elements of work of a row in a tree


class StridedWalk(Kernel):
    kind = TreeEnsemble

    def cases(self) -> Sequence[Case]:
        cases = [_case(mode.lower(), TreeEnsemble(mode=mode)) for mode in MODES]
        cases += [_case(how, TreeEnsemble(how)) for how in ("average", "min", "max")]
        cases.append(_case("modes_missing", TreeEnsemble(uses=("modes", "missing"))))
        cases.append(_case("f64", TreeEnsemble(mode="LT"), wide=True))
        missing = TreeEnsemble(uses=("missing",))
        cases += [_case("missing", missing), _case("missing_of_few", missing, rows=3)]
        cases += [_case("few", TreeEnsemble("average"), rows=1), _case("few_single", TreeEnsemble(), targets=1, rows=2)]
        cases += [_case(f"single_{how}", TreeEnsemble(how), targets=1) for how in ("sum", "average", "min")]
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call, *call.ins[1:]) or supports_types(call)
        if reason:
            return No(reason)
        if not call.ins[0].buffer.dtype.is_plain or not call.outs[0].buffer.dtype.is_plain:
            return No("16-bit floats are not compared in vectors")
        overlaps = has_traffic(target) and "modes" not in call.of(TreeEnsemble).uses
        return Needs(blocks=(WALKERS,) if overlaps else ())

    def cost(self, call: Call, target: Target) -> Cost:
        rows, trees = call.ins[0].shape[0], call.ins[1].shape[0]
        each = OVERLAPPED if call.blocks else ONE
        return Cost(upper(rows) * static(trees) * each * target.machine.element, code=300)

    def label(self, call: Call) -> str:
        return f"trees_{call.ins[1].shape[0]}"

    def unpassed(self, call: Call) -> frozenset[str]:
        """Leaves of a single target need not say which."""
        return frozenset() if static(call.outs[0].shape[1]) > 1 else frozenset({"target"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind = call.kind
        assert isinstance(kind, TreeEnsemble)
        views = dict(zip(kind.names, call.ins, strict=True))
        out = call.outs[0]
        several = not self.unpassed(call)

        def at(name: str, *counters: str) -> str:
            view = views[name]
            return load_c(view.buffer.dtype, name, index_c(view.strides, counters))

        by_trees = upper(out.shape[0]) < WALKERS
        return {
            "walkers": call.blocks[0] if call.blocks else 0,
            "by_trees": by_trees,
            "block": BLOCK,
            "from_root": at("roots", "(tree + walker)" if by_trees else "tree"),
            "rows": out.shape[0],
            "several": several,
            "targets": static(out.shape[1]),
            "trees": static(views["roots"].shape[0]),
            "y_k": index_c(out.strides, ["row", "k"]) if several else index_c(out.strides[:1], ["row"]),
            "start": literal_c(_STARTS[kind.combine], out.buffer.dtype),
            "type": views["x"].buffer.dtype.compute_c,
            "sum_type": out.buffer.dtype.compute_c,
            "root": at("roots", "tree"),
            "feature": at("feature", "node"),
            "value": at("x", "row", f"(mcc_index){at('feature', 'node')}"),
            "value_of": at("x", "row" if by_trees else "(first + walker)", "(feature_at < 0 ? 0 : feature_at)"),
            "limit": at("threshold", "node"),
            "yes": at("yes", "node"),
            "no": at("no", "node"),
            "target": at("target", "leaf"),
            "weight": at("weight", "leaf"),
            "modes": at("modes", "node") if "modes" in kind.uses else "",
            "missing": at("missing", "node") if "missing" in kind.uses else "",
            "operator": _OPERATORS[kind.mode],
            "combine": kind.combine,
        }


def _case(name: str, kind: TreeEnsemble, wide: bool = False, targets: int = 4, rows: int = 9) -> Case:
    """Two trees over three features: a node with two leaves, and a chain of two; leaves have one weight or two. Where
    it matters, a third of the numbers is missing."""
    dtype = f64 if wide else f32
    position = i32 if wide else i16
    vector = [TensorType(position, (n,)) for n in (2, 8, 8, 8, 6)]
    roots, feature, yes, no, target = vector
    ins = [
        TensorType(dtype, (rows, 3)),
        roots,
        feature,
        TensorType(dtype, (8,)),
        yes,
        no,
        target,
        TensorType(dtype, (6,)),
    ]
    ins += [TensorType({"modes": i8, "missing": u8}[use], (8,)) for use in kind.uses]
    numbers = {
        1: [0, 3],
        2: [1, -1, -1, 0, -1, 2, -1, -1],
        3: [0.5, 0, 0, -0.5, 0, 1, 0, 0],
        4: [1, 0, 1, 4, 2, 6, 4, 5],
        5: [2, 1, 2, 5, 4, 7, 5, 6],
        6: [number % targets for number in (0, 1, 0, 1, 3, 1)],
    }
    values = {i: np.array(v).astype(ins[i].dtype.numpy) for i, v in numbers.items()}
    if kind.uses == ("missing",):
        x = np.linspace(-2, 2, 3 * rows, dtype=dtype.numpy)
        x[::3] = np.nan
        values[0] = np.random.default_rng(0).permutation(x).reshape(rows, 3)
    out = TensorType(dtype, (rows, targets))
    return Case(
        name, kind, tuple(ins), (out,), values=values, ranges={8: (0, 5 if "modes" in kind.uses else 1), 9: (0, 1)}
    )
