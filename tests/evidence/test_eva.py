"""What Frama-C/Eva says of generated code: nothing, but where the code is broken."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from onnx import ModelProto, parser

from embedded.models import normalized, quantized, recurrent
from embedded.quantized_models import Net
from mccompile import cli
from mccompile.evidence import eva_steps, run_eva
from mccompile.toolchain.tools import missing
from tests import small_models
from tests.fuzz.blobs.models import MODELS
from tests.thorough import some

needs_frama_c = pytest.mark.skipif(bool(missing(["frama-c"])), reason="needs frama-c")


def folder_of(made: ModelProto, where: Path, target: str = "generic") -> Path:
    model = small_models.save(made, where)
    assert cli.run(["evidence", str(model), "-o", str(where / "out"), "--target", target]) == 0
    return where / "out"


def said(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-I", str(folder / "run_eva.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def raises_no_alarm(folder: Path) -> bool:
    """And all code is reached. What it raises is printed."""
    code, text = said(folder)
    print(text)
    return code == 0 and re.search(r"0 alarms, (\d+) statements reached \(out of \1\)", text) is not None


def over_edges() -> ModelProto:
    """Int8 windows over the edges of pictures of three channels, read by words that reach over rows."""
    net = Net((1, 1, 6, 6), 5)
    net.layer("Conv", (3, 1, 1, 1), 1)
    net.layer("Conv", (8, 3, 3, 3), 27, pads=[1, 1, 1, 1])
    return net.model("edges", (1, 8, 6, 6))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Folders of models, each made once."""

    @cache
    def folder(made: Callable[[], ModelProto], target: str = "generic") -> Path:
        return folder_of(made(), tmp_path_factory.mktemp("once"), target)

    return folder


@needs_frama_c
@some(1, "made", [small_models.conv, normalized, recurrent, MODELS["tables"].model])
def test_generated_code_raises_no_alarm(made: Callable[[], ModelProto], tmp_path: Path) -> None:
    """The slower ones are in embedded/test_eva.py."""
    assert raises_no_alarm(folder_of(made(), tmp_path))


def test_calls_that_differ_in_places_in_memory_are_looked_at_once() -> None:
    """Results lie below what they are computed from, and above it."""
    layers = [small_models.node("Gemm", f"{x} w{x} b{x}", y) for x, y in ("xa", "ab", "bc", "cy")]
    weights = {
        f"{n}{x}": small_models.floats(1, *shape) for x in "xabc" for n, shape in (("w", (16, 16)), ("b", (16,)))
    }
    made = small_models.model("layers", layers, [("x", [1, 16])], [("y", [1, 16])], weights)
    plan = small_models.compiled(made).plan
    assert len({step.function.name for step in plan.steps()}) == 1
    calls, _ = eva_steps.alone(plan)
    assert len(calls) == 1


def test_calls_over_fewer_rows_need_no_more_than_they_hand_over() -> None:
    needs, writes = eva_steps.clauses_of("y", [(0, 31), (0, 23)], True)
    assert "(0 .. 23)" in needs and "[0 .. 31]" in writes


def _neg() -> ModelProto:
    return small_models.model("neg", [small_models.node("Neg", "x", "y")], [("x", [16])], [("y", [16])])


@needs_frama_c
@some(
    1,
    ("file", "good", "bad"),
    [
        ("neg_kernels.c", "i0 < 16", "i0 <= 16"),
        ("neg_kernels.c", "-e0[i0]", "-e0[i0 - 1]"),
        ("neg_kernels.c", "-e0[i0]", "-e0[i0 + 1]"),
        ("neg.c", "A(float, NEG_AT_Y)", "A(float, NEG_AT_Y + 4)"),
    ],
)
def test_an_access_off_by_one_raises_an_alarm(
    file: str, good: str, bad: str, once: Callable[..., Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(once(_neg), tmp_path / "out")
    text = (folder / "code" / file).read_text()
    assert good in text
    (folder / "code" / file).write_text(text.replace(good, bad))
    code, text = said(folder)
    assert code == 1 and ("neg_kernels.c" in text or "precondition" in text), text


@pytest.mark.thorough
@needs_frama_c
def test_a_run_that_never_ends_well_proves_nothing(once: Callable[..., Path], tmp_path: Path) -> None:
    folder = shutil.copytree(once(small_models.mlp), tmp_path / "out")
    source = folder / "code" / "mlp.c"
    source.write_text(source.read_text().replace("if (m->ready != READY)", "if (m->ready == READY)"))
    code, text = said(folder)
    assert code == 1 and "no run comes to its end" in text


@pytest.mark.parametrize(
    ("head", "body", "steer"),
    [
        ("mcc_index c = 0; c < 16; ++c", "{ sum += x[c] * w[c * 3]; }", False),
        ("mcc_index c = 0; c < 16; ++c", "{ y[c] = x[c] > 0 ? x[c] : 0; }", False),
        ("mcc_index p = 0; p < 16; ++p", "{ const mcc_index at = p - 1; if (at < 0) { y[0] = 0; } }", True),
        ("mcc_index p = 0; p < 16; ++p", "{ const mcc_index first = p < 1 ? 1 : 0; y[first] = 0; }", True),
        ("int32_t p = 0; p < end; p += step", "{ sum += x[p]; }", True),
        ("mcc_index p = 0; p < 16; ++p", "{ lane *const l = &lanes[p]; l->next = x; }", True),
        ("mcc_index p = 0; p < 16; ++p", "{ for (mcc_index k = p; k < 9; ++k) y[k] = 0; }", True),
        ("mcc_index p = 0; p < 16; ++p", "{ for (mcc_index k = 0; k < p; ++k) y[k] = 0; }", True),
        ("made < wanted", "{ made += 2; }", True),
        ("int32_t left = n; left > 0; left -= 4", "{ \\\n if (left < 4) r.reach = left; \\\n }", True),
    ],
)
def test_loops_that_steer_are_told_apart(head: str, body: str, steer: bool) -> None:
    assert run_eva.steers(head, body) == steer


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        ("{ mcc_dot(w, y); w += 4; }", True),
        ("{ d = mcc_widen(d, x); }", True),
        ("{ mcc_dot(w + i, y); ++i; }", True),
        ("{ sum = mcc_add_i32(sum, x[i]); }", False),
        ("{ mcc_dot(w + 4 * c, y); }", False),
        ("{ w = mcc_taps(sums, x, w, c); }", True),
        ("{ *d++ = x + i; }", True),
        ("{ *d = x[0]; d += 4; }", False),
    ],
)
def test_loops_that_hand_on_what_they_move_are_told_apart(body: str, moved: bool) -> None:
    assert run_eva.moves(body, {"d", "w", "y"}) == moved


def test_rows_are_told_apart_from_the_third_level_on() -> None:
    text = "for (mcc_index r = begin; r < end; ++r) { if (r < 3) { y[r] = 0; } }"
    together, inner, row_by_row, _ = (run_eva.annotated(text, level) for level in run_eva.LEVELS)
    assert together == inner == text and row_by_row.startswith("//@ loop unroll")


def test_levels_that_change_nothing_are_skipped() -> None:
    about = {"rows": [3]}
    assert run_eva.levels("step3", about) == [*run_eva.LEVELS]
    assert [level for level in run_eva.LEVELS if level not in run_eva.levels("step2", about)] == ["row by row"]
    assert [level for level in run_eva.LEVELS if level not in run_eva.levels("main", about)] == [*run_eva.LEVELS[1:3]]


def test_inner_rows_and_those_at_the_edges_are_all_rows(once: Callable[..., Path]) -> None:
    text = (once(quantized, "cortex-m4") / "eva.c").read_text()
    found = re.findall(
        r"i < (\d+); \+\+i\) \{\s+if \(i < (\d+) \|\| i >= (\d+)\) call\d+\((\d+) \* i\);.*?"
        r"call\d+\((\d+) \* Frama_C_interval\((\d+), (\d+)\)\)",
        text,
        re.S,
    )
    assert found
    for calls, low, high, step, same, first, last in (map(int, each) for each in found):
        assert (low, high, step) == (first, last + 1, same) and last < calls


def test_what_words_read_behind_an_operand_is_part_of_it(once: Callable[..., Path]) -> None:
    x, words = 3 * 6 * 6, 3 * 3  # bytes of the picture, and of a row of a window
    text = (once(over_edges, "cortex-m4") / "eva.c").read_text()
    assert f"\\valid_read((char *)x + (0 .. {x + -words % 4 - 1}))" in text


def test_loops_that_write_indices_are_told_apart_at_the_last_level() -> None:
    text = "void f({} *MCC_RESTRICT y, const float *x)\nfor (mcc_index i = 0; i < 90; ++i) {{ y[i] = x[i] > 0; }}"
    *before, last = (run_eva.annotated(text.format("int64_t"), level) for level in run_eva.LEVELS)
    assert before == [text.format("int64_t")] * 3 and "//@ loop unroll" in last
    assert run_eva.annotated(text.format("float"), run_eva.LEVELS[-1]) == text.format("float")


def test_a_loop_of_few_turns_is_told_apart_where_a_constant_says_so() -> None:
    text = "const mcc_index rows = 3;\n{}for (mcc_index i = 0; i < rows; ++i) *to++ = x[i];\n"
    assert run_eva.annotated(text.format(""), run_eva.LEVELS[0]) == text.format("//@ loop unroll 10000;\n")
    many = text.replace("3", "300").format("")
    assert run_eva.annotated(many, run_eva.LEVELS[0]) == many


@some(1, "level", run_eva.LEVELS)
def test_annotations_are_all_that_is_added(level: str, once: Callable[..., Path]) -> None:
    code = once(small_models.conv, "cortex-m4") / "code"
    for path in (*code.glob("*.c"), *code.glob("runtime/*.h")):
        text = path.read_text()
        added = re.sub(r"^ *//@ loop unroll \d+;\n", "", run_eva.annotated(text, level), flags=re.M)
        assert re.sub(r"/\*@ (?:loop unroll \d+|split \w+ < 0); \*/ ", "", added) == text


def _remainders() -> ModelProto:
    numbers = "(int32[3] x, int32[3] b) => (int32[3] y, int32[3] z, int32[3] r)"
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> remainders {numbers} '
        "{ y = Mod (x, b) z = Div (x, b) r = Mod <fmod = 1> (x, b) }"
    )


@needs_frama_c
def test_divisions_that_check_their_divisors_raise_no_alarm(tmp_path: Path) -> None:
    assert raises_no_alarm(folder_of(_remainders(), tmp_path))


@needs_frama_c
def test_trees_raise_no_alarm_from_the_first_level_on(once: Callable[..., Path]) -> None:
    """From node to node as tables say: each is told apart, and turns are not."""
    folder = once(MODELS["trees"].model)
    assert raises_no_alarm(folder)
    kernels = next((folder / "code").glob("*_kernels.c")).read_text()
    noted = run_eva.annotated(kernels, run_eva.LEVELS[0])
    assert re.search(r"unroll 10000;\n +for \(mcc_index tree .*\n.*\n *//@ slevel \d+;\n *while \(feature", noted)
    assert re.search(r"\n *//@ slevel default;\n *;\n", noted)


def test_a_search_is_no_walk_from_place_to_place() -> None:
    head, body = "table[low] < x", "{ const int at = (low + high) / 2; low = keys[at] < x ? at : low; }"
    assert not run_eva.walks(head, body) and run_eva.walks(head, "{ low = (int)next[low]; }")


def test_vectors_have_no_program(tmp_path: Path) -> None:
    folder = folder_of(small_models.mlp(), tmp_path, "cortex-m55")
    assert not (folder / "eva.c").exists() and "vectors of cortex-m55" in (folder / "evidence.json").read_text()


def test_the_folder_claims_nothing_that_was_not_looked_at(once: Callable[..., Path]) -> None:
    folder = once(small_models.mlp)
    assert "left to Frama-C" in json.loads((folder / "evidence.json").read_text())["not_run"]["undefined_behaviour"]


def test_weights_are_parsed_for_calls_that_know_some(once: Callable[..., Path]) -> None:
    folder = once(small_models.conv)
    about = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))["eva"]
    weights = f"{about['prefix']}_weights.c"
    code = next(path.parent for path in folder.parent.rglob(weights))
    assert about["steps"] and not about["reads"]  # a convolution is right whatever its weights are
    entries = {"main": True, f"step{about['steps'][0]}": False}
    assert {e: weights in run_eva.command(code, about, e, run_eva.LEVELS[0]) for e in entries} == entries
    assert weights in run_eva.command(
        code, about | {"reads": about["steps"]}, f"step{about['steps'][0]}", run_eva.LEVELS[0]
    )


def test_macros_are_told_apart_in_full_at_the_last_level() -> None:
    text = "#define SUMS \\\n    for (int left = n; left > 0; left -= 4) { \\\n    if (left < 4) n = left; \\\n    }\n"
    *before, last = (run_eva.annotated(text, level) for level in run_eva.LEVELS)
    assert before == [text] * 3 and "/*@ loop unroll" in last
