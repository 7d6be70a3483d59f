"""Networks in a small fast memory, with a slow one behind it that only copies reach, beside TiGrIS where it is
installed (`pip install tigris-ml`):

    python -m benchmarks.two_memories --vww vww.tflite --mobilenet mobilenetv2_035_128.onnx --write

Bytes are those that each compiler prints: of the fast memory, of the slow one, and copied between them by a run. Times
are those of a slow memory with 80 MB/s. Instructions are those of a run on this host, which valgrind counts: generic C
at -O2, and the reference runtime that comes with TiGrIS; for other targets those of the emulated core. `--write` puts
the table into docs/memory.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.memory import DOCS, put
from mccompile.driver import Options, compile
from mccompile.emit.traffic import transfers
from mccompile.measure.cost import cost
from mccompile.option_texts import pools

START, END = "<!-- made by benchmarks/two_memories.py -->\n", "<!-- end of two memories -->\n"
RATE = 80  # MB/s
TIGRIS = find_spec("tigris")
CASES = (
    ("visual wake words, int8, 96x96", "vww", 45, ((16, "generic"), (8, "generic"), (4, "generic"), (4, "cortex-m4"))),
    ("MobileNetV2 0.35, f32, 128x128", "mobilenet", 224, tuple((fast, "generic") for fast in (128, 96, 64, 16))),
)


@dataclass(frozen=True)
class Row:
    tool: str
    fast: int  # bytes, as the three that follow
    slow: int
    copied: int
    instructions: int

    @property
    def milliseconds(self) -> float:
        return self.copied / RATE / 1000


def ours(model: Path, fast: int, slow: int, target: str, folder: Path) -> Row:
    memories = pools((f"fast={fast}K,fast", f"slow={slow}K,copied,{RATE}MB/s"))
    options = Options(target=target, mem=memories, name="net")
    package = compile(model, options)
    if target == "generic":
        package.write(folder)
        subprocess.run(["make", "-s", "-C", str(folder), "net"], check=True)
        count = counted([str(folder / "net")], "net_run")
    else:
        count = cost(model, options).run_instructions
    used = {arena.pool: arena.bytes for arena in package.plan.arenas}
    copied = transfers(package.plan)["slow"]["traffic_bytes"]
    return Row("mccompile" if target == "generic" else target, used["fast"], used["slow"], copied, count)


def tigris(model: Path, fast: int, slow: int, target: str, folder: Path) -> Row:
    """In the slow memory that it says it needs, where that is more."""
    found = json.loads(_tigris("analyze", str(model), "-m", f"{fast}K+{slow}K", "--json"))
    needed = int(found["slow"]["peak_bytes"])
    slow = max(slow, -(-needed // 1024))
    plan = folder / "plan.tgrs"
    _tigris("compile", str(model), "-m", f"{fast}K+{slow}K", "-o", str(plan))
    assert TIGRIS is not None and TIGRIS.origin is not None
    native, program = Path(TIGRIS.origin).parent / "native", str(folder / "tigris")
    libraries = [str(native / "libtigris_host.so"), f"-Wl,-rpath,{native}"]
    source = str(Path(__file__).with_name("tigris.c"))
    subprocess.run(["cc", "-O2", source, *libraries, "-o", program], check=True)
    count = counted([program, str(plan), str(slow * 1024)], "tigris_host_run")
    copied = sum(found["slow"]["traffic"].values())
    return Row("TiGrIS", int(found["fast"]["scheduled_peak_bytes"]), needed, copied, count)


def _tigris(*words: str) -> str:
    command = [sys.executable, "-c", "from tigris.cli import main; main()", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def counted(words: Sequence[str], function: str) -> int:
    """Instructions of one call of a function."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={function}"]
    done = subprocess.run([*valgrind, *words], check=True, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def rows(models: Mapping[str, Path | None]) -> Iterator[str]:
    yield "| network | given | by | fast memory | slow memory | copied per run | in ms | million instructions |\n"
    yield "|---|--:|---|--:|--:|--:|--:|--:|\n"
    for name, key, slow, cases in CASES:
        model = models[key]
        for fast, target in cases if model is not None else ():
            assert model is not None
            for tool in (ours, tigris) if target == "generic" and TIGRIS is not None else (ours,):
                with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
                    row = tool(model, fast, slow, target, Path(scratch))
                sizes = f"{row.fast:,} | {row.slow:,} | {row.copied:,} | {row.milliseconds:.2f}"
                yield f"| {name} | {fast} KiB | {row.tool} | {sizes} | {row.instructions / 1e6:.1f} |\n"
                name = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vww", type=Path, help="MLPerf Tiny's visual wake words, int8")
    parser.add_argument("--mobilenet", type=Path, help="MobileNetV2 0.35 of floats, 128x128")
    parser.add_argument("--write", action="store_true", help="put the table into docs/memory.md")
    arguments = parser.parse_args()
    made = ""
    for line in rows({"vww": arguments.vww, "mobilenet": arguments.mobilenet}):
        print(line, end="", flush=True)
        made += line
    if arguments.write:
        put(DOCS, START, made, END)


if __name__ == "__main__":
    main()
