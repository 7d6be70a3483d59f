"""Loops that nest too deep are functions of their own, handed what they read and pointers to what they write."""

from __future__ import annotations

import pytest

from mccompile.base.marked import plain
from mccompile.emit import parts
from mccompile.emit.declarations import declared
from mccompile.emit.layout import blocks
from mccompile.emit.parts import in_parts

OUTER = parts.DEEPEST - 1  # branches around the loops


def printed(before: str, inside: str) -> str:
    """A function with two loops in each other, where one may be."""
    around = "\n".join(f"if (x[{n}] > 0.0f) {{" for n in range(OUTER))
    loop = f"for (mcc_index j = 0; j < 4; ++j) {{\nfor (mcc_index k = 0; k < 4; ++k) {{\n{inside}\n}}\n}}"
    ends = "}\n" * OUTER
    text = f"void f(float *y, const float *x)\n{{\n{around}\n{before}\n{loop}\ny[0] = sum;\n{ends}}}"
    return plain(in_parts(blocks(text), "f", {"y": "float *y", "x": "const float *x"}))


def deepest(text: str) -> int:
    depths = [text.count("{", 0, end) - text.count("}", 0, end) for end in range(len(text))]
    return max(depths)


SUM = "\n".join(["sum += x[j] * w[k];"] * 6)


def test_a_loop_is_handed_what_it_reads_and_pointers_to_what_it_writes() -> None:
    text = printed("float sum = 0.0f;\nconst float *const w = x + 4, *v = x;", SUM)
    assert "MCC_PART void f_over_j_1(const float *x, float *sum, const float *w)\n" in text
    assert "    f_over_j_1(x, &sum, w);\n" in text and "(*sum) += x[j] * w[k];" in text
    assert deepest(text) <= parts.DEEPEST + 1


@pytest.mark.parametrize("write", ["v[k] = x[k];", "MCC_SUMS(v, x, 4);", "v.low += x[k];"])
def test_vectors_that_are_written_are_handed_by_their_address(write: str) -> None:
    text = printed("float sum = 0.0f;\nmcc_f32x4 v = zero;", f"{SUM.replace('w[k]', 'x[k]')}\n{write}")
    assert "mcc_f32x4 *v)" in text and "&v);" in text and write.replace("v", "(*v)", 1) in text


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("float sum = 0.0f;\nfloat w[2][2];", "sum += w[0][k];"),
        ("float sum = 0.0f;", "if (sum > x[k]) return;"),
        ("float sum = 0.0f;", "y += 4;"),
    ],
)
def test_a_loop_stays_where_it_cannot_stand_alone(before: str, inside: str) -> None:
    """It reads a table whose type no line says, ends the function, or changes what that was given."""
    assert "MCC_PART" not in printed(before, inside)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("const mcc_index a = (b, c), d = 2; /* e, f */", {"a": "mcc_index a", "d": "mcc_index d"}),
        ("int32_t sums[4];", {"sums": "int32_t *sums"}),
        ("static const uint8_t *rows[3] = {", {"rows": "const uint8_t **rows"}),
        ("float tiles[2][2];", {"tiles": ""}),
        ("float *const MCC_RESTRICT a = (float *)x;", {"a": "float *MCC_RESTRICT a"}),
        ("float *const *MCC_ODD rows = x;", {"MCC_ODD": "", "rows": "", "x": ""}),
        ("return a;", {}),
        ("f(a);", {}),
        ("a = b * c;", {}),
    ],
)
def test_what_a_line_declares(line: str, found: dict[str, str]) -> None:
    assert declared(line) == found
