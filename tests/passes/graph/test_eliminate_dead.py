from __future__ import annotations

from typing import Any

from mccompile.passes.graph.eliminate_dead import eliminate_dead


def test_what_nobody_reads_goes_away(check: Any) -> None:
    check(
        eliminate_dead,
        """
        input %x: f32[4]
        %a: f32[4] = Relu(%x) from "a"
        %b: f32[4] = Neg(%a) from "b"
        %y: f32[4] = Abs(%x) from "y"
        output %y
        """,
        """
        input %x: f32[4]
        %y: f32[4] = Abs(%x) from "y"
        output %y
        """,
    )


def test_an_optional_result_that_nobody_reads_is_not_computed(check: Any) -> None:
    check(
        eliminate_dead,
        """
        input %x: f32[4]
        %y: f32[4], %mask: bool[4] = Dropout(%x) from "drop"
        output %y
        """,
        """
        input %x: f32[4]
        %y: f32[4], none = Dropout(%x) from "drop"
        output %y
        """,
    )


def test_results_that_the_operator_must_give_stay(check: Any) -> None:
    text = """
        input %x: f32[4]
        %a: f32[2], %b: f32[2] = Split(%x) {num_outputs=2} from "cut"
        output %a
        """
    check(eliminate_dead, text, text)
