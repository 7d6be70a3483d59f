from __future__ import annotations

from typing import Any

import numpy as np

from mccompile.passes.graph.eliminate_common_subexpressions import eliminate_common_subexpressions


def test_the_same_computation_is_done_once(check: Any) -> None:
    check(
        eliminate_common_subexpressions,
        """
        input %x: f32[4]
        %a: f32[4] = LeakyRelu(%x) {alpha=0.5} from "a"
        %b: f32[4] = LeakyRelu(%x) {alpha=0.5} from "b"
        %c: f32[4] = Neg(%a) from "c"
        %d: f32[4] = Neg(%b) from "d"
        %y: f32[4] = Add(%c, %d) from "y"
        output %y
        """,
        """
        input %x: f32[4]
        %a: f32[4] = LeakyRelu(%x) {alpha=0.5} from "a", "b"
        %c: f32[4] = Neg(%a) from "c", "d"
        %y: f32[4] = Add(%c, %c) from "y"
        output %y
        """,
    )


def test_other_attributes_or_operands_make_another_computation(check: Any) -> None:
    text = """
        input %x: f32[4]
        input %z: f32[4]
        %a: f32[4] = LeakyRelu(%x) {alpha=0.0} from "a"
        %b: f32[4] = LeakyRelu(%x) {alpha=-0.0} from "b"
        %c: f32[4] = LeakyRelu(%z) {alpha=0.0} from "c"
        %y: f32[4] = Sum(%a, %b, %c) from "y"
        output %y
        """
    check(eliminate_common_subexpressions, text, text)


def test_equal_constants_are_kept_once_and_that_is_recorded(check: Any) -> None:
    check(
        eliminate_common_subexpressions,
        """
        input %x: f32[2]
        const %v: f32[2] = #v
        const %w: f32[2] = #w
        const %u: f32[2] = #u
        %a: f32[2] = Add(%x, %v) from "a"
        %b: f32[2] = Mul(%a, %w) from "b"
        %y: f32[2] = Add(%b, %u) from "y"
        output %y
        """,
        """
        fact "w equals v"
        input %x: f32[2]
        const %v: f32[2] = #v
        const %u: f32[2] = #u
        %a: f32[2] = Add(%x, %v) from "a"
        %b: f32[2] = Mul(%a, %v) from "b"
        %y: f32[2] = Add(%b, %u) from "y"
        output %y
        """,
        v=np.array([1, 2], np.float32),
        w=np.array([1, 2], np.float32),
        u=np.array([1, 3], np.float32),
    )


def test_two_outputs_that_are_the_same_stay_two(check: Any) -> None:
    text = """
        input %x: f32[4]
        %a: f32[4] = Relu(%x) from "a"
        %b: f32[4] = Relu(%x) from "b"
        output %a
        output %b
        """
    check(eliminate_common_subexpressions, text, text)


def test_no_tensor_is_computed_for_its_shape(check: Any) -> None:
    check(
        eliminate_common_subexpressions,
        """
        dim n in 1..8
        input %x: f32[n,4]
        %s: i64[1] = Shape(%x) {start=0, end=1} from "s"
        %a: f32[n,4] = Neg(%x) from "a"
        %t: i64[1] = Shape(%a) {start=-2, end=1} from "t"
        %u: i64[2] = Shape(%a) from "u"
        %v: i64[4] = Concat(%s, %t, %u) {axis=0} from "v"
        output %v
        """,
        """
        dim n in 1..8
        input %x: f32[n,4]
        %s: i64[1] = Shape(%x) {start=0, end=1} from "s", "t"
        %a: f32[n,4] = Neg(%x) from "a"
        %u: i64[2] = Shape(%a) from "u"
        %v: i64[4] = Concat(%s, %s, %u) {axis=0} from "v"
        output %v
        """,
    )
