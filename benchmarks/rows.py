"""What running chains of calls row by row saves and costs over a folder of models: `python -m benchmarks.rows ZOO`.

For each model whose plan it changes: bytes of the arena without and with it, and the time of a run with it over the
time without, on this machine. The two programs take turns, and the fastest run of each counts, in processor time, so
that a busy machine does little harm. `--write` puts the table into docs/memory.md.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
from pathlib import Path

from benchmarks.memory import DOCS, put
from mccompile.base.errors import MccError
from mccompile.check.inputs import DataSet, stored_sets
from mccompile.driver import Options, compile
from mccompile.driver.options import RowByRow
from mccompile.emit.package import Package
from mccompile.frontend.load import load
from mccompile.targets.api import Prefer, Target

START, END = "<!-- made by benchmarks/rows.py -->\n", "<!-- end of rows -->\n"
ROUNDS = 7
ROUND_NANOSECONDS = 2e8  # roughly, per program
MOST_RUNS = 2000


def line(folder: Path, prefer: Prefer, target: str, seconds: float) -> tuple[int, int, float] | None:
    """Bytes without rows, with them, and the time with them over that without."""
    model = folder / "model.onnx"
    options = [Options(target=target, prefer=prefer, rows=rows, name="net") for rows in (RowByRow.OFF, RowByRow.AUTO)]
    packages = [compile(model, option) for option in options]
    off, auto = (package.plan.arena_bytes for package in packages)
    if packages[0].files["net.c"] == packages[1].files["net.c"]:
        return None
    data = stored_sets(folder, [value.name for value in load(model).inputs])[0]
    with tempfile.TemporaryDirectory() as temporary:
        programs = [
            build(package, options[0].resolved_target(), data, Path(temporary) / str(number))
            for number, package in enumerate(packages)
        ]
        best = [timed(program, 2) for program in programs]
        runs = [max(1, min(MOST_RUNS, round(seconds * ROUND_NANOSECONDS / nanoseconds))) for nanoseconds in best]
        for _ in range(ROUNDS):
            best = [min(b, timed(p, count)) for b, p, count in zip(best, programs, runs, strict=True)]
    return off, auto, best[1] / best[0]


def build(package: Package, target: Target, data: DataSet, folder: Path) -> list[str]:
    """The command that runs the model, but for the number of runs."""
    package.write(folder)
    command = [str(folder / "timing")]
    read, fill = [], []
    for number, tensor in enumerate(package.plan.inputs):
        name = f"net_input_{tensor.symbol}"
        (folder / f"input{number}").write_bytes(data.inputs[tensor.name].tobytes())
        command.append(str(folder / f"input{number}"))
        read.append(f"uint8_t *input{number} = read_all(argv[{number + 2}], {name.upper()}_BYTES);")
        fill.append(f"memcpy({name}(&m), input{number}, {name.upper()}_BYTES);")
    text = Path(__file__).with_name("rows.c.in").read_text(encoding="utf-8")
    for key, word in (("name", "net"), ("NAME", "NET"), ("READ", "\n".join(read)), ("FILL", "\n".join(fill))):
        text = text.replace(f"@{key}@", word)
    (folder / "timing.c").write_text(text, encoding="utf-8")
    sources = [str(path) for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    flags = [*target.cflags, f"-I{folder}", f"-I{folder / 'runtime'}", "-o", command[0]]
    subprocess.run([target.compiler, *sources, *flags, "-lm"], check=True)
    return command


def timed(command: list[str], runs: int) -> float:
    """Nanoseconds of the fastest run."""
    done = subprocess.run([command[0], str(runs), *command[1:]], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("zoo", type=Path, help="a folder with a folder per model")
    parser.add_argument("--only", default="", help="names of models, with commas between")
    parser.add_argument("--prefer", default="ram")
    parser.add_argument("--target", default="generic")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure, over what is usual")
    parser.add_argument("--write", action="store_true", help="put the table into docs/memory.md")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.only.split(",") if name]
    head = "| model | call by call | by rows | of it | time |\n|---|--:|--:|--:|--:|\n"
    made, ratios = head, []
    print(head, end="")
    for folder in sorted(path.parent for path in arguments.zoo.glob("*/model.onnx")):
        if wanted and folder.name not in wanted:
            continue
        try:
            found = line(folder, arguments.prefer, arguments.target, arguments.seconds)
        except MccError as error:
            print(f"{folder.name}: {error}")
            continue
        if found is not None:
            off, auto, time = found
            ratios.append((auto / off, time))
            row = f"| {folder.name} | {off:,} | {auto:,} | {auto / off:.2f} | {time:.2f} |\n"
            print(row, end="", flush=True)
            made += row
    if ratios:
        saved, time = (math.exp(sum(math.log(pair[i]) for pair in ratios) / len(ratios)) for i in (0, 1))
        row = f"| *geometric mean* | | | {saved:.2f} | {time:.2f} |\n"
        print(row, end="")
        made += row
    if arguments.write:
        put(DOCS, START, made, END)


if __name__ == "__main__":
    main()
