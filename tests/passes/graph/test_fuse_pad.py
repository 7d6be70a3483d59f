from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mccompile.passes.graph.fuse_pad import fuse_pad

W = np.ones((2, 1, 3, 3), np.float32)


def net(pads: str, consumer: str, front: str = "Neg", number: bool = False, size: str = "1,1,8,8") -> str:
    value = "const %v: f32[] = #v\n" if number else ""
    return f"""
        input %x: f32[1,1,6,6]
        const %p: i64[8] = #p
        {value}const %w: f32[2,1,3,3] = #w
        %a: f32[1,1,6,6] = {front}(%x) from "a"
        %b: f32[{size}] = Pad(%a, %p{", %v" if number else ""}) {pads}from "b"
        %y: {consumer} from "y"
        output %y
        """


def fused(consumer: str, front: str = "Neg", fact: str = "", weights: bool = True) -> str:
    return f"""
        {fact}
        input %x: f32[1,1,6,6]
        {"const %w: f32[2,1,3,3] = #w" if weights else ""}
        %a: f32[1,1,6,6] = {front}(%x) from "a"
        %y: {consumer} from "b", "y"
        output %y
        """


AROUND = np.array([0, 0, 1, 1, 0, 0, 1, 1])


def test_into_a_convolution(check: Any) -> None:
    check(
        fuse_pad,
        net("", "f32[1,2,6,6] = Conv(%b, %w)"),
        fused("f32[1,2,6,6] = Conv(%a, %w) {pads=(1, 1, 1, 1)}"),
        p=AROUND,
        w=W,
    )


def test_into_a_convolution_that_pads_already(check: Any) -> None:
    check(
        fuse_pad,
        net("", "f32[1,2,7,8] = Conv(%b, %w) {pads=(0, 1, 1, 1)}", number=True),
        fused("f32[1,2,7,8] = Conv(%a, %w) {pads=(1, 2, 2, 2)}", fact='fact "v is 0"'),
        p=AROUND,
        w=W,
        v=np.float32(0),
    )


@pytest.mark.parametrize(
    ("before", "arrays"),
    [
        (net('{mode="reflect"} ', "f32[1,2,6,6] = Conv(%b, %w)"), {"p": AROUND}),
        (net("", "f32[1,2,6,6] = Conv(%b, %w)", number=True), {"p": AROUND, "v": np.float32(1)}),
        (
            net("", "f32[1,2,2,2] = Conv(%b, %w)", size="1,1,4,4"),
            {"p": np.array([0, 0, -1, -1, 0, 0, -1, -1])},
        ),
        (net("", 'f32[1,2,8,8] = Conv(%b, %w) {auto_pad="SAME_UPPER"}'), {"p": AROUND}),
    ],
    ids=["not with zeros", "with ones", "cut off", "auto_pad"],
)
def test_not_into_a_convolution(check: Any, before: str, arrays: dict[str, np.ndarray]) -> None:
    check(fuse_pad, before, before, w=W, **arrays)


def test_into_an_average_pool_that_then_counts_it(check: Any) -> None:
    before = net("", "f32[1,1,6,6] = AveragePool(%b) {kernel_shape=(3, 3)}").replace("const %w: f32[2,1,3,3] = #w", "")
    after = fused(
        "f32[1,1,6,6] = AveragePool(%a) {count_include_pad=1, kernel_shape=(3, 3), pads=(1, 1, 1, 1)}", weights=False
    )
    check(fuse_pad, before, after, p=AROUND)


def test_into_a_maximum_pool_where_nothing_is_negative(check: Any) -> None:
    pool = "f32[1,1,6,6] = MaxPool({}) {{kernel_shape=(3, 3){}}}"
    before = net("", pool.format("%b", ""), front="Relu").replace("const %w: f32[2,1,3,3] = #w", "")
    after = fused(pool.format("%a", ", pads=(1, 1, 1, 1)"), front="Relu", weights=False)
    check(fuse_pad, before, after, p=AROUND)


def test_into_a_maximum_pool_with_the_lowest_number(check: Any) -> None:
    pool = "f32[1,1,6,6] = MaxPool({}) {{kernel_shape=(3, 3){}}}"
    before = net("", pool.format("%b", ""), number=True).replace("const %w: f32[2,1,3,3] = #w", "")
    after = fused(pool.format("%a", ", pads=(1, 1, 1, 1)"), fact='fact "v is -inf"', weights=False)
    check(fuse_pad, before, after, p=AROUND, v=np.float32(-np.inf))


def test_not_into_a_maximum_pool_over_negative_numbers(check: Any) -> None:
    before = net("", "f32[1,1,6,6] = MaxPool(%b) {kernel_shape=(3, 3)}").replace("const %w: f32[2,1,3,3] = #w", "")
    check(fuse_pad, before, before, p=AROUND)
