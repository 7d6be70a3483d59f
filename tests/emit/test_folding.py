"""Lines of generated C end at column 120 at most, and folding them changes blanks only."""

from __future__ import annotations

import pytest

from mccompile.emit import folding
from mccompile.emit.folding import WIDTH, folded
from tests import small_models
from tests.small_models import compiled

CALL = "    f(" + ", ".join(f"argument_{i}(x, {i})" for i in range(12)) + ");\n"
SUM = "    total = " + " + ".join(f"product_{i}[at]" for i in range(12)) + ";\n"


def test_a_call_is_folded_between_its_arguments() -> None:
    first, second = folded(CALL).splitlines()[:2]
    assert first.endswith("argument_5(x, 5),")
    assert second.startswith("        argument_6(x, 6), ")


def test_a_sum_is_folded_before_an_operator() -> None:
    lines = folded(SUM).splitlines()
    assert all(line.lstrip().startswith("+ product") for line in lines[1:]), lines


def test_calls_in_calls_are_folded_behind_a_bracket() -> None:
    first, second = folded("    y = " + "a_function(" * 12 + "x" + ")" * 12 + ";\n").splitlines()
    assert first.endswith("a_function(") and len(first) <= WIDTH
    assert second == "        " + "a_function(" * 2 + "x" + ")" * 12 + ";"


def test_directives_and_literals_stay_whole() -> None:
    directive = "#define F(x) " + "g(x), " * 40 + "\\\n    " + "h(x), " * 40 + "\n"
    literal = '    say("' + "a, b " * 40 + '");\n'
    assert folded(directive) == directive
    assert folded(literal) == literal


def test_comments_stay_comments() -> None:
    text = "    /* " + "word " * 50 + "*/\n    f();\n"
    lines = folded(text).splitlines()
    assert lines[0].startswith("    /* word") and lines[1].startswith("     * word") and lines[-2].endswith("*/")
    assert lines[-1] == "    f();"


def test_files_have_no_long_lines() -> None:
    for name in ("conv", "branches"):
        for path, contents in compiled(small_models.ALL[name]()).files.items():
            if path.endswith((".c", ".h")):
                long = [line for line in contents.decode().splitlines() if len(line) > WIDTH]
                assert not long, (path, long)


def test_lines_that_begin_beyond_the_width_are_folded_too() -> None:
    """Loops in loops lie that deep; a fold that left the line as long as it was would never end."""
    deep = " " * (WIDTH + 8) + "for (mcc_index i = 0; i < " + " + ".join(f"size_{n}" for n in range(40)) + "; ++i) {\n"
    lines = folded(deep).splitlines()
    assert "".join(lines).split() == deep.split() and len(lines) < 60


def test_long_lines_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lines a call becomes."""
    read = []
    places = folding._Places
    monkeypatch.setattr(folding, "_Places", lambda line: read.append(line) or places(line))
    text = folded("    f(" + ", ".join(f"argument_{i}(x, {i})" for i in range(300)) + ");\n")
    assert len(read) == 1 and len(text.splitlines()) > 50 and max(map(len, text.splitlines())) <= WIDTH
