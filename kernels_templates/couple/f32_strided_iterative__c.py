"""couple in portable C: pairwise coupling (Wu, Lin and Weng, 2004) iterates over the classes of each row until its
probabilities converge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.couple import OFF, ROUNDS, Couple


class CoupleRounds(Kernel):
    kind = Couple

    def cases(self) -> Sequence[Case]:
        def case(classes: int, rows: int = 3, **options: Any) -> Case:
            pairs = classes * (classes - 1) // 2
            likely = np.random.default_rng(classes).uniform(0.05, 0.95, (rows, pairs)).astype(np.float32)
            types = TensorType(f32, (rows, pairs)), TensorType(f32, (rows, classes))
            kind, name = Couple(classes), f"of_{classes}"
            return Case(name, kind, types[:1], types[1:], values={0: likely}, error=1e-5, **options)

        return [case(2), case(3, 9), case(5, permute={0: (1, 0)}), case(12, 2, permute_outs={0: (1, 0)})]

    def match(self, call: Call, target: Target) -> No | Needs:
        if {view.buffer.dtype for view in (*call.ins, *call.outs)} != {f32}:
            return No("gates are coupled in 32-bit floats only")
        classes = call.of(Couple).classes
        return Needs(scratch=f32.nbytes(classes * (classes + 2)))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(
            upper(call.outs[0].shape[0]) * call.of(Couple).classes ** 2 * 100 * target.machine.element, code=500
        )

    def context(self, call: Call) -> Mapping[str, Any]:
        x, y, classes = call.ins[0], call.outs[0], call.of(Couple).classes
        return {
            "rows": y.shape[0],
            "classes": classes,
            "share": literal_c(1 / classes, f32),
            "off": literal_c(OFF / classes, f32),
            "rounds": ROUNDS,
            "load": load_c(f32, "x", index_c(x.strides, ["row", "pair"])),
            "store": store_c(f32, "y", index_c(y.strides, ["row", "t"]), "p[t]"),
        }

    def label(self, call: Call) -> str:
        return f"couple_{call.outs[0].shape[1]}"
