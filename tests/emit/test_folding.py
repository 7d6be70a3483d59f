"""Lines of generated C end at column 120 at most, and folding them changes blanks only."""

from __future__ import annotations

from onnx import parser

from mccompile.base.marked import called, plain, summed, words
from mccompile.emit.folding import WIDTH, folded
from tests import small_models
from tests.small_models import compiled, floats, model, node

CALL = f"    {called('f', [f'argument_{i}(x, {i})' for i in range(12)])};\n"
SUM = f"    total = {summed([f'product_{i}[at]' for i in range(12)])};\n"


def test_a_call_is_folded_between_its_arguments() -> None:
    first, second = folded(CALL).splitlines()[:2]
    assert first.endswith("argument_5(x, 5),")
    assert second.startswith("        argument_6(x, 6), ")


def test_a_sum_is_folded_before_an_operator() -> None:
    lines = folded(SUM).splitlines()
    assert all(line.lstrip().startswith("+ product") for line in lines[1:]), lines


def test_what_is_less_deep_is_folded_first() -> None:
    inner = called("inner", ["a" * 30, "b" * 30])
    lines = folded(f"    {called('outer', [inner, 'c' * 30, 'd' * 20])};").splitlines()
    assert lines[0].endswith(f"{'c' * 30},") and len(lines) == 2


def test_calls_in_calls_are_folded_behind_a_bracket() -> None:
    text = "x"
    for _ in range(12):
        text = called("a_function", [text])
    lines = folded(f"    y = {text};\n").splitlines()
    assert max(map(len, lines)) <= WIDTH and "".join(line.strip() for line in lines) == f"y = {text};"
    assert lines[1].endswith("a_function(") and lines[-1].endswith("a_function(x" + ")" * 12 + ";")


def test_a_bracket_may_be_closed_on_a_later_line() -> None:
    first = f"    f({', '.join(f'argument_{n}' for n in range(12))},"
    lines = folded(f"{first}\n      last);").splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(line.strip() for line in lines) == f"{first.strip()} last);"


def test_what_a_condition_guards_has_its_own_line() -> None:
    condition = " || ".join(["a_condition(x)"] * 6)
    assert folded(f"    if ({condition}) return 1;") == f"    if ({condition})\n        return 1;"


def test_both_sides_of_a_choice_begin_a_line() -> None:
    lines = folded(f"    const int32_t end = {'a' * 40} < {'b' * 40} ? {'c' * 40} : 4;").splitlines()
    assert lines[1:] == [f"        ? {'c' * 40}", "        : 4;"]


def test_names_of_a_declaration_are_aligned() -> None:
    lines = folded("    const float " + ", ".join(f"*value_{n} = x + {n}" for n in range(8)) + ";").splitlines()
    assert lines[1].startswith(" " * 16 + "*value_")


def test_a_line_goes_on_where_its_bracket_opens() -> None:
    inner = called("inner", [called("g", ["a" * 30, "b" * 30]), called("h", ["c" * 30, "d" * 30])])
    lines = folded(f"    {called('outer', ['x', inner])};").splitlines()
    assert [len(line) - len(line.lstrip()) for line in lines] == [4, 8, 12]
    assert lines[0].strip() == "outer(x," and lines[1].strip().startswith("inner(g(") and lines[1].endswith("),")


def test_what_is_behind_folded_brackets_begins_a_line() -> None:
    inner = called("inner", ["a" * 50, "b" * 50, "c" * 20])
    lines = folded(f"    y = {called('outer', [inner, 'd'])} * e;").splitlines()
    assert [line.strip() for line in lines[-2:]] == ["d)", "* e;"]


def test_weak_operators_are_folded_first() -> None:
    product = " * ".join(f"factor_{n}" for n in range(5))
    lines = folded(f"    const float sum = {product} + {product} - -*x;").splitlines()
    assert lines[1] == f"        + {product} - -*x;"
    assigned = folded(f"    y[{' + '.join(['place'] * 9)}] = f(x[{' + '.join(['place'] * 9)}]);").splitlines()
    assert assigned[0].endswith("] =") and assigned[1].startswith("        f(x[place")


def test_directives_and_literals_stay_whole() -> None:
    directive = f"#define F(x) {called('g', ['x' * 30] * 10)}\n"
    literal = '    say("' + "a, b " * 40 + '");\n'
    assert folded(directive) == plain(directive)
    assert folded(literal) == literal


def test_comments_stay_comments() -> None:
    text = f"    {words('/* ' + 'word ' * 50 + '*/')}\n    f();\n"
    lines = folded(text).splitlines()
    assert lines[0].startswith("    /* word") and lines[1].startswith("     * word") and lines[-2].endswith("*/")
    assert lines[-1] == "    f();"


def test_lines_of_a_comment_go_on_as_such() -> None:
    first, second = folded(f" * {words('a_long_word ' * 12)}*/").splitlines()
    assert first.startswith(" * a_long_word") and second.startswith(" * a_long_word") and second.endswith("*/")


def test_comments_up_to_the_end_of_a_line_stay_on_it() -> None:
    comment = f"// {'words, ' * 20}"
    assert folded(comment) == comment


def test_files_have_no_long_lines() -> None:
    for name in ("conv", "branches"):
        for path, contents in compiled(small_models.ALL[name]()).files.items():
            if path.endswith((".c", ".h")):
                long = [line for line in contents.decode().splitlines() if len(line) > WIDTH]
                assert not long, (path, long)


def test_lines_that_begin_beyond_the_width_are_folded_too() -> None:
    """Loops in loops lie that deep; a fold that left the line as long as it was would never end."""
    total = summed([f"size_{n}" for n in range(40)])
    deep = f"{' ' * (WIDTH + 8)}for (mcc_index i = 0; i < {total}; ++i) {{\n"
    lines = folded(deep).splitlines()
    assert "".join(lines).split() == plain(deep).split() and len(lines) < 60


def test_long_names_of_buffers_are_cut() -> None:
    long = "/".join(["fused"] * 40)
    nodes = [node("MatMul", "x w", long), node("MatMul", f"{long} w", "y")]
    made = model("cut", nodes, [("x", [3, 5])], [("y", [3, 5])], {"w": floats(0, 5, 5)})
    text = compiled(made).files["cut.c"].decode()
    assert "60 bytes: fused/fused" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_why_a_run_ends_is_folded() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    stops (float[2, 3] x, bool c) => (float[2, 3] y) {
      y = If (c) <then_branch = t () => (float[2, 3] a) { a = Neg(x) },
                  else_branch = e () => (float[2, 3] b) { b, h = LSTM <hidden_size = 3> (x, x, x) }>
    }"""
    made = compiled(parser.parse_model(text)).files["stops.c"].decode()
    assert "return MCC_ERR_BRANCH;" in made
    assert max(map(len, made.splitlines())) <= WIDTH
