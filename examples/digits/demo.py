"""Show a trained network becoming C: compile it, build it, let it read handwritten digits. `make demo` runs this.

    python examples/digits/demo.py [--out FOLDER] [--pictures N]

Nothing here reaches into the compiler: it is started as a user would start it, the C it writes is built with the
system compiler ($CC, or cc) together with classify.c, and the figures come from its report. The demo fails (exit 1)
unless the C program says about every picture what the ONNX model itself said when it was trained.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BRIGHTEST = 16  # the pixels in pictures.npz are 0..16
C_FLAGS = ("-std=c99", "-O3", "-Wall", "-Wextra")
SCORE_TOLERANCE = 1e-4
CELL = 16  # columns per picture: every pixel is two characters wide, so that it looks square


class DemoError(Exception):
    """A step that did not work; the text is all the user has to see."""


@dataclass(frozen=True)
class Pictures:
    """Held-out pictures, their true labels, and what the ONNX model said about them when it was made."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    predictions: NDArray[np.uint8]
    scores: NDArray[np.float32]

    @staticmethod
    def load(path: Path) -> "Pictures":
        with np.load(path) as stored:
            return Pictures(stored["pixels"], stored["labels"], stored["predictions"], stored["scores"])

    def floats(self) -> bytes:
        """The model's input format: float32 in 0..1, picture after picture."""
        return (self.pixels / np.float32(BRIGHTEST)).astype(np.float32).tobytes()


class Answer(NamedTuple):
    """What the C program says about one picture."""

    digit: int
    score: float


# ---- what is drawn ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """How pictures look: grey backgrounds on a colour terminal, else shades, else plain ASCII."""

    colour: bool
    shades: str
    right: str
    wrong: str

    def pixel(self, value: int) -> str:
        if self.colour:  # 232..255 is the grey ramp of the 256 colour palette
            return f"\x1b[48;5;{232 + value * 23 // BRIGHTEST}m  \x1b[0m"
        return self.shades[(value * (len(self.shades) - 1) + BRIGHTEST // 2) // BRIGHTEST] * 2

    def paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def style_for(is_terminal: bool, encoding: str, no_colour: bool) -> Style:
    try:
        "░▒▓█✓✗".encode(encoding)
    except UnicodeEncodeError:
        return Style(is_terminal and not no_colour, " .:-=+*#@", "ok", "WRONG")
    return Style(is_terminal and not no_colour, " ░▒▓█", "✓", "✗")


def draw(pictures: Pictures, answers: list[Answer], chosen: list[int], columns: int, style: Style) -> Iterator[str]:
    """The chosen pictures, as many side by side as fit, each with what was read below it."""
    per_line = max(1, (columns + 2) // (CELL + 2))
    for first in range(0, len(chosen), per_line):
        shown = chosen[first : first + per_line]
        for row in range(pictures.pixels.shape[1]):
            yield "  ".join("".join(style.pixel(int(v)) for v in pictures.pixels[i, row]) for i in shown).rstrip()
        yield "  ".join(label(answers[i], int(pictures.labels[i]), style) for i in shown).rstrip()
        yield ""


def label(answer: Answer, truth: int, style: Style) -> str:
    right = answer.digit == truth
    text = f"{answer.digit} {style.right}" if right else f"{answer.digit} {style.wrong} (is {truth})"
    return style.paint("32" if right else "31", text.center(CELL))


# ---- what the program says --------------------------------------------------------------------------------------


def parse_answers(text: str) -> list[Answer]:
    answers = []
    for line in text.splitlines():
        found = re.fullmatch(r"(\d) (-?(?:\d+\.\d+|nan|inf))", line)
        if found is None:
            raise DemoError(f"classify wrote a line that is not a digit and its score: {line!r}")
        answers.append(Answer(int(found[1]), float(found[2])))
    return answers


def parse_microseconds(text: str) -> float:
    found = re.search(r"([\d.]+) us per picture", text)
    if found is None:
        raise DemoError(f"classify did not say how long a picture takes: {text!r}")
    return float(found[1])


def differences(answers: list[Answer], pictures: Pictures) -> list[str]:
    """Every picture about which the C program and the ONNX model disagree, one line each."""
    if len(answers) != len(pictures.labels):
        return [f"{len(answers)} answers for {len(pictures.labels)} pictures"]
    lines = []
    for i, answer in enumerate(answers):
        digit, score = int(pictures.predictions[i]), float(pictures.scores[i])
        if answer.digit != digit or not abs(answer.score - score) <= SCORE_TOLERANCE:
            lines.append(f"picture {i}: C says {answer.digit} ({answer.score:.6f}), ONNX {digit} ({score:.6f})")
    return lines


# ---- the steps --------------------------------------------------------------------------------------------------


def show(command: list[str]) -> None:
    print(f"$ {shlex.join(command)}", flush=True)


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's top folder, and stop the demo with the command's own words when it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        raise DemoError(f"{command[0]} was not found: is it installed, and on PATH?") from None
    if done.returncode != 0:
        raise DemoError(f"exit code {done.returncode} from\n  {shlex.join(command)}\n{done.stderr}")
    return done


def compile_model(out: Path) -> dict[str, Any]:
    arguments = [from_root(HERE / "digits.onnx"), "-o", from_root(out)]
    show(["mccompile", *arguments])
    run([sys.executable, "-m", "mccompile", *arguments])
    report: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return report


def build_program(out: Path, work: Path) -> tuple[Path, list[Path]]:
    """Compile and link what mccompile wrote with classify.c; returns the program and the model's object files."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    sources = [p for p in sorted(out.glob("*.c")) if p.name != "main.c"] + sorted(out.glob("runtime/*.c"))
    includes = [f"-I{from_root(out)}", f"-I{from_root(out / 'runtime')}"]

    def build(command: list[str]) -> None:
        show(command)
        print(run(command).stderr, end="")  # warnings: there should be none

    objects = []
    for source in [*sources, HERE / "classify.c"]:
        target = work / f"{source.parent.name}-{source.stem}.o"
        command = [*compiler, *C_FLAGS, *includes, "-c", from_root(source), "-o", from_root(target)]
        build(command)
        objects.append(target)
    program = work / "classify"
    command = [*compiler, *map(from_root, objects), "-o", from_root(program), "-lm"]
    build(command)
    return program, objects[:-1]


def code_bytes(objects: list[Path]) -> int | None:
    """Machine code and tables of the model without its weights, as `size` counts them; None without `size`."""
    code = [str(path) for path in objects if not path.stem.endswith("_weights")]
    if shutil.which("size") is None:
        return None
    lines = run(["size", *code]).stdout.splitlines()
    return sum(int(line.split()[0]) for line in lines[1:])


def from_root(path: Path) -> str:
    """Short when the path lies in the project, so that the commands shown can be read and typed."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


# ---- the story --------------------------------------------------------------------------------------------------


def describe_flow(report: dict[str, Any]) -> Iterator[str]:
    """How the graph shrank, pass by pass, and the steps that are left at run time."""
    for entry in report["passes"]:
        if entry["nodes_before"] != entry["nodes_after"]:
            yield f"  {entry['name']:<24} {entry['nodes_before']:>4} -> {entry['nodes_after']} nodes"
    yield f"  {len(report['steps'])} steps are left to run:"
    for step in report["steps"]:
        yield f"    {step['name']:<40} {step['macs']:>9,} MACs  {step['kernel']}"


def describe_figures(report: dict[str, Any], code: int | None, microseconds: float) -> Iterator[str]:
    arena, bound, naive = (report[key] for key in ("arena_bytes", "arena_bound_bytes", "arena_naive_bytes"))
    yield f"  arena     {arena:>9,} bytes   (lower bound {bound:,}; every tensor in its own place {naive:,})"
    yield f"  weights   {report['weights_bytes']:>9,} bytes"
    yield f"  code      {'unknown: no `size` command' if code is None else f'{code:>9,} bytes'}"
    yield f"  work      {report['macs']:>9,} multiply-accumulates per picture"
    yield f"  time      {microseconds:>9.1f} microseconds per picture on this machine"


def demo(out: Path, count: int, style: Style) -> None:
    pictures = Pictures.load(HERE / "pictures.npz")

    def title(text: str) -> None:
        print("\n" + style.paint("1", text))

    print(style.paint("1", "1. Compile the ONNX model to C"))
    report = compile_model(out)
    for line in describe_flow(report):
        print(line)

    title("2. Build that C, and a small program around it, with the system compiler")
    work = out.with_name(out.name + "-program")
    work.mkdir(parents=True, exist_ok=True)
    program, objects = build_program(out, work)

    title("3. Show it handwritten digits it has never seen")
    floats = work / "pictures.f32"
    floats.write_bytes(pictures.floats())
    show([from_root(program), from_root(floats)])
    done = run([str(program), str(floats)])
    answers = parse_answers(done.stdout)
    disagreements = differences(answers, pictures)
    print()
    if len(answers) == len(pictures.labels):
        columns = shutil.get_terminal_size().columns
        mistakes = [i for i, answer in enumerate(answers) if answer.digit != pictures.labels[i]]
        for line in draw(pictures, answers, list(range(len(answers)))[:count], columns, style):
            print(line)
        if mistakes:
            print("And the first of those that it reads wrongly:\n")
            for line in draw(pictures, answers, mistakes[:4], columns, style):
                print(line)
        right = len(answers) - len(mistakes)
        print(f"  accuracy  {right / len(answers):>9.1%}         ({right} of {len(answers)} pictures)")
    for line in describe_figures(report, code_bytes(objects), parse_microseconds(done.stderr)):
        print(line)
    if disagreements:
        told = "\n  ".join(disagreements[:5])
        raise DemoError(f"the C program and the ONNX model disagree about {len(disagreements)} pictures:\n  {told}")
    print(f"\n{style.paint('32', style.right)} the C program and the ONNX model agree on every picture")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile a small network to C and let it read handwritten digits.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="folder for the C files")
    parser.add_argument("--pictures", type=int, default=8, help="how many pictures to draw (all are classified)")
    options = parser.parse_args()
    style = style_for(sys.stdout.isatty(), sys.stdout.encoding, bool(os.environ.get("NO_COLOR")))
    try:
        demo(options.out.resolve(), options.pictures, style)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
