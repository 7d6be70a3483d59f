"""Indexes that are 0 are not printed, nor terms and factors that change nothing; all else stays."""

from __future__ import annotations

import random

import pytest

from mccompile.base.marked import named, plain, summed
from mccompile.emit.folding import folded
from mccompile.emit.layout import blocks, shown
from mccompile.emit.simplify import simplify

ZERO = "const mcc_index c = 0;"


def simplified(*lines: str) -> str:
    top = blocks("\n".join(lines))
    simplify(top)
    return shown(top)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p = x + (c * 16 + at);", "p = x + at;"),
        ("p = -c * 4 + y;", "p = y;"),
        ("f(a, c, b - c, -c);", "f(a, 0, b, 0);"),
        ("y = a / 2 * c + 1;", "y = 1;"),
        ("y = a - (c + b) * 2 - c % 4;", "y = a - b * 2;"),
        ("y = (a + (int32_t)c) * (c + 1);", "y = (a + (int32_t)0);"),
        ("y[c] = c - x[c + 1] + (float)(c);", "y[0] = -x[1] + (float)0;"),
        ("y = a < c + b ? c + 1 : 2 - c;", "y = a < b ? 1 : 2;"),
        ("y = p[c].c + q->c + 'c';", "y = p[0].c + q->c + 'c';"),
        ('f("c + c", *c2 - c); /* c + c */', 'f("c + c", *c2); /* c + c */'),
    ],
)
def test_an_index_that_is_0_is_not_read(line: str, expected: str) -> None:
    assert simplified(ZERO, line) == f"{expected}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f(w + 0, 1 * i + 0 * 128, at % 1);", "f(w, i, 0);"),
        ("y = a / 7 % 1 + b * 1 - 0;", "y = b;"),
        ("y = -1 * b + a / 1 * 2;", "y = -b + a * 2;"),
    ],
)
def test_factors_of_1_and_terms_of_0_go(line: str, expected: str) -> None:
    assert simplified(line) == f"{expected}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f(y + p * 72 + 6 * 8 + 16, x[3 * 4]);", "f(y + p * 72 + 64, x[12]);"),
        ("y = x + ((p - 1) * 72 + (-1) * 8 + 8) - 3 + 5;", "y = x + ((p - 1) * 72) + 2;"),
        ("y = (3 - 1) * 8 * k + 7 / 2 - 7 % 4;", "y = 16 * k;"),
        ("y = -72 + 16 + a * (-1) - (-2);", "y = -56 + a * (-1) + 2;"),
        ("y = (p) * 8 + (float)(total) * (x);", "y = p * 8 + (float)total * x;"),
        ("y = a < 3 + 4 ? 2 - 5 : -2 * 3;", "y = a < 7 ? -3 : -6;"),
    ],
)
def test_arithmetic_of_literals_is_done(line: str, expected: str) -> None:
    assert simplified(line) == f"{expected}\n"


def drawn(chance: random.Random, depth: int) -> str:
    """An expression of names and literals, which Python computes as C does."""
    terms = []
    for _ in range(chance.randrange(1, 5)):
        literal = str(chance.randrange(10))
        forms = ["a", "b", "(c)", literal, f"-{literal}", f"(-{literal})", f"-({literal})", "-a", f"~{literal}"]
        inner = [f"({drawn(chance, depth - 1)})"] * 3 if depth else []
        terms += [chance.choice(("+", "-", "*", "+", "-", "*", "<<", "&")), chance.choice(forms + inner)]
    return " ".join(terms[1:])


@pytest.mark.parametrize("seed", range(3))
def test_expressions_keep_their_values(seed: int) -> None:
    chance, names = random.Random(seed), {"a": 5, "b": -7, "c": 3}
    for _ in range(300):
        line = f"y = {drawn(chance, 2)};"
        became = simplified(line).strip()
        try:
            value = eval(line[4:-1], names)
        except (ValueError, OverflowError, MemoryError):  # shifted by less than nothing, or too far
            continue
        assert eval(became[4:-1], names) == value, (line, became)
        assert "--" not in became


@pytest.mark.parametrize(
    "line",
    [
        "y = a * 3 * 8 + b / 2 * 4 + (float)3 * 8;",
        "y = 3.0f * 8 + 2u * 4u + a - b * 3 + 2 * c;",
        "y = 65536 * 65536 + 7 % a;",
        "y = a ^ (int64_t)-1 ^ (int32_t)(x)[2] ^ g(x);",
        "y = x + 0.0f + 1.0f * z * 0.0f;",
        "y = x * 10 + 01 - 0x0 + 0u;",
        "y = a / (1 + b) << 1;",
        "y = x * -3 + 2 - x / -4 * 6;",
        "y = (my_type)-3;",
        "y = ~0 * x + ~1 * x;",
        "y = b > 0 ? -1 : 1;",
        "static const int8_t t[3] = {0, -1, 1};",
        '#define F(x) ((x) + 0 * "1 * 0")',
        "/* 0 * 1 + 0 */",
    ],
)
def test_all_else_stays(line: str) -> None:
    assert simplified(line) == f"{line}\n"


def test_an_index_holds_in_its_block_alone() -> None:
    lines = ["for (;;) {", ZERO, "const mcc_index d = c * 4;", "f(c, d);", "}", "g(c);"]
    assert simplified(*lines).splitlines() == ["for (;;) {", "    f(0, 0);", "}", "g(c);"]


@pytest.mark.parametrize("counts", ["n < 1; ++n", "n < 8; n += 8", "n < 3; n += 4"])
def test_a_loop_that_runs_once_becomes_its_body(counts: str) -> None:
    lines = ["f();", f"for (mcc_index n = 0; {counts}) {{", "const mcc_index at = n * 4 + m;", "g(n, at);", "}"]
    assert simplified(*lines).splitlines() == ["f();", "const mcc_index at = m;", "g(0, at);"]


@pytest.mark.parametrize(
    ("counts", "body"),
    [
        ("n < 0; ++n", "f(n);"),
        ("n < 2; ++n", "f(n);"),
        ("n < 9; n += 8", "f(n);"),
        ("n < many; ++n", "f(n);"),
        ("n < 1; ++n", "if (f(n)) break;"),
        ("n < 1; ++n", "if (f(n)) continue; /* nothing is there */"),
    ],
)
def test_loops_that_run_never_more_often_or_end_early_stay(counts: str, body: str) -> None:
    lines = [f"for (mcc_index n = 0; {counts}) {{", f"    {body}", "}"]
    assert simplified(*lines).splitlines() == lines


@pytest.mark.parametrize("line", ["for (mcc_index i = 0; i < 1; ++i) y[i * 4 + c] = x[i];", "y[c] = x[0];"])
def test_a_loop_and_its_body_on_one_line_become_the_body(line: str) -> None:
    assert simplified(line) == "y[c] = x[0];\n"


def test_what_loops_inside_leave_is_not_the_loop_around() -> None:
    inner = ["for (mcc_index j = 0; j < n; ++j) {", "if (x[j] > 0) {", "break;", "}", "}"]
    text = simplified("for (mcc_index i = 0; i < 1; ++i) {", *inner, "y[i] = 0;", "}")
    assert "mcc_index i" not in text and "y[0] = 0;" in text


def test_what_is_left_is_folded_where_it_would_have_been() -> None:
    terms = [f"term_{number}[{number}]" for number in range(12)]
    before = ["const mcc_index c = 0;", f"y = {summed([named('c') + ' * 4', *terms])};"]
    assert folded(simplified(*before)) == folded(f"y = {summed(terms)};\n")
    assert plain(simplified(*before)) == f"y = {' + '.join(terms)};\n"
