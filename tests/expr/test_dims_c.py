"""Sizes that are known only at run time, as operands of C: each means what it does wherever it stands."""

from __future__ import annotations

import pytest

from mccompile.base.dims import Dim, ceil_div, maximum, symbol
from mccompile.base.marked import plain
from mccompile.expr.dims_c import operand_c, stride_c

N, M = symbol("n", 1, 9), symbol("m", 1, 9)


@pytest.mark.parametrize(
    ("dim", "operand", "stride"),
    [
        (9, "9", "9"),
        (N, "n", "n"),
        (N * 9, "(n * 9)", "n * 9"),
        (N * M, "(m * n)", "m * n"),
        (N - M, "(m * -1 + n)", "(m * -1 + n)"),
        (N + 2, "(n + 2)", "(n + 2)"),
    ],
    ids=str,
)
def test_operands_are_whole(dim: Dim, operand: str, stride: str) -> None:
    """`i % n * 9` is another number than `i % (n * 9)`."""
    assert (plain(operand_c(dim)), plain(stride_c(dim))) == (operand, stride)


@pytest.mark.parametrize("dim", [maximum(N, M) * 3, ceil_div(N, 2), ceil_div(N, 2) * M], ids=str)
def test_functions_of_sizes_are_operands_too(dim: Dim) -> None:
    text = plain(operand_c(dim))
    for n, m in ((1, 9), (4, 3), (9, 1)):
        size = {ceil_div(N, 2): (n + 1) // 2, maximum(N, M) * 3: max(n, m) * 3}.get(dim, (n + 1) // 2 * m)
        chosen = text.replace("?", "and").replace(":", "or").replace("/", "//")
        assert eval(f"100 % {chosen}", {"n": n, "m": m}) == 100 % size
