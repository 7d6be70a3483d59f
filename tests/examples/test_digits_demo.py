"""The demo draws what it was given, notices every disagreement with the ONNX model, and works from end to end."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.digits import demo

PLAIN = demo.style_for(is_terminal=False, encoding="utf-8", no_colour=False)
COLOUR = demo.style_for(is_terminal=True, encoding="utf-8", no_colour=False)


def pictures_of(*digits: int) -> demo.Pictures:
    """Pictures with one full row of ink at the row of their number, which the model reads correctly with score 0.9."""
    pixels = np.zeros((len(digits), 8, 8), np.uint8)
    for i, digit in enumerate(digits):
        pixels[i, digit] = 16
    numbers = np.array(digits, np.uint8)
    return demo.Pictures(pixels, numbers, numbers, np.full(len(digits), 0.9, np.float32))


def answers_of(*digits: int, score: float = 0.9) -> list[demo.Answer]:
    return [demo.Answer(digit, score) for digit in digits]


def drawn(columns: int, style: demo.Style = PLAIN) -> list[str]:
    return list(demo.draw(pictures_of(0, 1, 2), answers_of(0, 1, 7), [0, 1, 2], columns, style))


def test_pictures_stand_side_by_side_with_what_was_read_below() -> None:
    lines = drawn(columns=80)
    assert lines[0] == "█" * 16
    assert lines[2] == " " * 36 + "█" * 16
    assert lines[8].split("  ")[0] == "" and lines[8].split() == ["0", "✓", "1", "✓", "7", "✗", "(is", "2)"]


@pytest.mark.parametrize(("columns", "lines"), [(80, 10), (52, 10), (51, 20), (10, 30)])
def test_no_more_pictures_per_line_than_fit(columns: int, lines: int) -> None:
    assert len(drawn(columns)) == lines


def test_only_the_chosen_pictures_are_drawn() -> None:
    lines = list(demo.draw(pictures_of(0, 1, 2), answers_of(0, 1, 2), [0, 2], 80, PLAIN))
    assert lines[8].split() == ["0", "✓", "2", "✓"]


def test_a_terminal_gets_colour_and_nothing_else_does() -> None:
    assert "\x1b[" in "".join(drawn(80, COLOUR))
    assert "\x1b[" not in "".join(drawn(80))
    assert not demo.style_for(is_terminal=True, encoding="utf-8", no_colour=True).colour


def test_an_ascii_terminal_gets_ascii() -> None:
    style = demo.style_for(is_terminal=False, encoding="ascii", no_colour=False)
    assert "".join(drawn(80, style)).isascii()


def test_every_shade_can_be_drawn() -> None:
    assert {PLAIN.pixel(value) for value in range(17)} == {shade * 2 for shade in " ░▒▓█"}
    assert COLOUR.pixel(0) == "\x1b[48;5;232m  \x1b[0m" and COLOUR.pixel(16) == "\x1b[48;5;255m  \x1b[0m"


def test_pictures_are_given_to_the_program_as_floats_from_0_to_1() -> None:
    floats = np.frombuffer(pictures_of(3).floats(), np.float32).reshape(8, 8)
    assert floats.sum() == 8 and set(floats[3]) == {1.0}


def test_answers_are_read_from_what_classify_writes() -> None:
    assert demo.parse_answers("7 0.500000\n0 1.000000\n") == [demo.Answer(7, 0.5), demo.Answer(0, 1.0)]
    assert demo.parse_microseconds("2 pictures, 81.250 us per picture\n") == 81.25


@pytest.mark.parametrize("line", ["Segmentation fault", "7", "12 0.5"])
def test_anything_else_is_refused(line: str) -> None:
    with pytest.raises(demo.DemoError, match="not a digit and its score"):
        demo.parse_answers(line)


def test_agreement_has_no_differences() -> None:
    assert demo.differences(answers_of(3, 4, score=0.90004), pictures_of(3, 4)) == []


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (answers_of(3, 5), "picture 1: C says 5 (0.900000), ONNX 4 (0.900000)"),
        (answers_of(3), "1 answers for 2 pictures"),
    ],
)
def test_a_disagreement_is_told(answers: list[demo.Answer], told: str) -> None:
    assert demo.differences(answers, pictures_of(3, 4)) == [told]


@pytest.mark.parametrize("line", ["3 0.910000", "3 nan", "3 -nan", "3 inf", "3 -12.900000"])
def test_a_score_that_is_off_is_a_disagreement(line: str) -> None:
    assert len(demo.differences(demo.parse_answers(line), pictures_of(3))) == 1


def test_a_command_that_fails_is_told_with_its_own_words() -> None:
    with pytest.raises(demo.DemoError, match=r"(?s)exit code 3.*what went wrong"):
        demo.run([sys.executable, "-c", "import sys; print('what went wrong', file=sys.stderr); sys.exit(3)"])


def test_a_missing_c_compiler_is_told() -> None:
    with pytest.raises(demo.DemoError, match="no-such-compiler was not found"):
        demo.run(["no-such-compiler"])


def test_from_model_to_digits(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, demo.__file__, "--out", str(tmp_path / "c")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "accuracy      99.0%         (198 of 200 pictures)" in done.stdout
    assert "agree on every picture" in done.stdout
    assert "unknown" not in done.stdout and "\x1b" not in done.stdout
