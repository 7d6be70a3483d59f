"""What passes that insert nodes leave behind goes away."""

from __future__ import annotations

from typing import Any

import numpy as np

from mccompile.passes.graph.clean_up import clean_up


def test_transposes_cancel_constants_fold_and_dead_nodes_go(check: Any) -> None:
    check(
        clean_up,
        """
        input %x: f32[1,2,3]
        const %c: f32[1,3,2] = #c
        %a: f32[1,3,2] = Transpose(%x) {perm=(0, 2, 1)} from "a"
        %b: f32[1,2,3] = Transpose(%a) {perm=(0, 2, 1)} from "b"
        %t: f32[1,2,3] = Transpose(%c) {perm=(0, 2, 1)} from "t"
        %d: f32[1,2,3] = Neg(%x) from "d"
        %y: f32[1,2,3] = Mul(%b, %t) from "y"
        output %y
        """,
        """
        input %x: f32[1,2,3]
        const %t: f32[1,2,3] = #turned
        %y: f32[1,2,3] = Mul(%x, %t) from "y"
        output %y
        """,
        c=np.arange(2, 8, dtype=np.float32).reshape(1, 3, 2),
        turned=np.arange(2, 8, dtype=np.float32).reshape(1, 3, 2).transpose(0, 2, 1),
    )
