"""Only numbers that a variable of type mcc_index can stand for are taken out of C."""

from __future__ import annotations

import pytest

from mccompile.emit.index_numbers import index_numbers

SIGNATURE = "void f(float *MCC_RESTRICT y, const float *MCC_RESTRICT x, mcc_index begin)"


def numbers(body: str) -> list[str]:
    return [body[start:end] for start, end in index_numbers(SIGNATURE, body)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("for (mcc_index i = 2; i < 17; i += 4) {\ny[i * 36 + 5] = x[i * 3];\n}", "2 17 4 36 5 3"),
        ("const mcc_index end = begin + 4 < 9 ? begin + 4 : 9;", "4 9 4 9"),
        ("mcc_index a = 3, b = 7;", "3 7"),
        ("const mcc_index at = (mcc_index)x[begin * 2] * 12;", "2 12"),
        ("if (begin >= 2 && begin < 5) y[begin + 1] = 3.0f;", "2 5 1"),
        ("f(x + begin * 4, y[begin * 4]);", "4"),
    ],
)
def test_sizes_and_offsets_are_found(body: str, found: str) -> None:
    assert numbers(body) == found.split()


@pytest.mark.parametrize(
    "body",
    [
        "const int64_t a = mcc_min_i64(t, INT64_C(17));",
        "const int64_t a = INT64_C(17) + 3;",
        "y[begin] = 3;",
        "y[begin] = 3.5f + 0x1Fu + 017 + 1e5f;",
        "float sums[4 * 2];",
        "static const mcc_index ends[2 + 1] = {4, 5, 6};",
        "static const mcc_index most = 5;",
        "const mcc_index rows[2] = {4, 5};",
        'text("begin 3", begin, 7);',
        'const char *t = "begin * 3"; /* begin * 3 */ // begin * 3\n',
        "#if begin * 3\n#endif\n",
        "const uint8_t few = (uint8_t)(begin * 3);",
        "const float part = (float)begin * 3;",
        "const int32_t which = begin < 4 ? 2 : 3;",
        "switch (begin) { case 3: break; }",
        "int i = 3; { mcc_index i = 4; y[i * 5] = 0.0f; }",
        "x[3] = y[2];",
        "(void)memcpy(y + begin * 36, x, 48);",
        "(void)memcpy(y, x, (size_t)(begin * 4) * sizeof *y);",
        "(void)memset(y, 0, (size_t)begin * 4u);",
    ],
)
def test_all_others_stay(body: str) -> None:
    assert numbers(body) == []
