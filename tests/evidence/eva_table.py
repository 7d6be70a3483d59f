"""What Frama-C/Eva says of networks, as docs/safety.md has it.

python -m tests.evidence.eva_table generic:digits cortex-m4:PATH/model.onnx ...    run Eva, and print rows
... --update                                                                       put them into the page, too
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from embedded.models import NAMES, TOP, path_of
from mccompile.base.errors import MccError

PAGE = TOP / "docs" / "safety.md"
BEGIN, END = "<!-- begin of Eva's table: python -m tests.evidence.eva_table --update -->", "<!-- end of Eva's table -->"
HEAD = "| network | target | alarms | statements | seconds |\n|---|---|---|---|---|\n"


def row(model: str, target: str) -> tuple[str, bool]:
    """Of the page, and whether there is no alarm."""
    with tempfile.TemporaryDirectory() as folder:
        path = path_of(model, Path(folder)) if model in NAMES else Path(model)
        out = Path(folder, "out")
        words = [sys.executable, "-m", "mccompile", "evidence", str(path), "-o", str(out), "--target", target]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([sys.executable, str(out / "run_eva.py")], capture_output=True, text=True, check=False)
    print(done.stdout, file=sys.stderr, flush=True)
    found = re.search(r"(\d+) alarms, .*, (\d+) s$", done.stdout, re.M)
    reached = re.search(r"(\d+) statements reached \(out of \1\)", done.stdout)
    if not found or not reached:
        raise MccError(f"{model} on {target}: {done.stdout or done.stderr}")
    name = path.parent.name if path.stem == "model" else path.stem
    return f"| {name} | {target} | {found[1]} | {reached[1]} | {found[2]} |", found[1] == "0"


def updated(page: str, rows: list[str]) -> str:
    """The page with these rows in place of those of the same network and target."""
    before, rest = page.split(BEGIN)
    now, after = rest.split(END)
    kept = {_key(line): line for line in (*now.strip().splitlines()[2:], *rows)}
    return f"{before}{BEGIN}\n{HEAD}" + "".join(f"{kept[key]}\n" for key in sorted(kept)) + END + after


def _key(line: str) -> tuple[str, str]:
    network, target = line.split("|")[1:3]
    return target.strip(), network.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="+", metavar="TARGET:MODEL")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    found = [row(model, target) for target, _, model in (each.partition(":") for each in arguments.networks)]
    print(HEAD + "\n".join(line for line, _ in found))
    if arguments.update:
        PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), [line for line, _ in found]), encoding="utf-8")
    return int(not all(good for _, good in found))


if __name__ == "__main__":
    sys.exit(main())
