"""What Frama-C/Eva says of networks, as docs/safety.md has it.

python -m tests.evidence.eva_table generic:digits cortex-m4:PATH/model.onnx ...    run Eva, and print rows
... --update                                                                       put them into the page, too
python -m tests.evidence.eva_table generic:own generic:FOLDER    the networks of embedded/models.py, of FOLDER/*/
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from embedded.models import NAMES, TOP, path_of
from mccompile.base.errors import MccError
from mccompile.driver import Options, compile
from mccompile.evidence import run_eva
from mccompile.evidence.eva import eva
from mccompile.targets import api

MOST = 10_000_000  # multiplications and additions of a network of a folder
PAGE = TOP / "docs" / "safety.md"
BEGIN, END = "<!-- begin of Eva's table: python -m tests.evidence.eva_table --update -->", "<!-- end of Eva's table -->"
HEAD = "| network | target | alarms | statements | seconds |\n|---|---|---|---|---|\n"


def networks(words: list[str]) -> Iterator[tuple[str, str, int]]:
    """Targets, models, and how many products a model may have."""
    for target, _, model in (word.partition(":") for word in words):
        folder = Path(model)
        if folder.is_dir():
            yield from ((target, str(path), MOST) for path in sorted(folder.glob("*/model.onnx")))
        else:
            yield from ((target, name, sys.maxsize) for name in (NAMES if model == "own" else [model]))


def row(model: str, target: str, most: int) -> tuple[str, bool]:
    """Of the page, and whether there is no alarm; none of a network that is too large, or has no `eva.c`."""
    with tempfile.TemporaryDirectory() as temporary:
        path, folder = path_of(model, Path(temporary)) if model in NAMES else Path(model), Path(temporary, "out")
        name = path.parent.name if path.stem == "model" else path.stem
        try:
            package = compile(path, Options(target=target))
        except MccError as error:
            return f"{name} on {target}: refused: {str(error).splitlines()[0]}", True
        made = eva(package, api.load(target))
        if isinstance(made, str) or package.macs > most:
            return f"{name} on {target}: {made if isinstance(made, str) else f'{package.macs} products'}", True
        package.write(folder / "code")
        (folder / "eva.c").write_text(made[0], encoding="utf-8")
        (folder / "evidence.json").write_text(json.dumps({"eva": made[1]}), encoding="utf-8")
        shutil.copy(run_eva.__file__, folder)
        done = subprocess.run([sys.executable, str(folder / "run_eva.py")], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) alarms, (\d+) statements reached \(out of (\d+)\), (\d+) s$", done.stdout, re.M)
    if not found:
        raise RuntimeError(f"{model} on {target}: {done.stdout or done.stderr}")
    if found[1] != "0" or found[2] != found[3]:
        print(done.stdout, file=sys.stderr, flush=True)
    reached = found[2] if found[2] == found[3] else f"{found[2]} of {found[3]}"
    return f"| {name} | {target} | {found[1]} | {reached} | {found[4]} |", found[1] == "0"


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
    good = True
    print(HEAD, end="", flush=True)
    for target, model, most in networks(arguments.networks):
        line, proven = row(model, target, most)
        print(line, flush=True)
        good &= proven
        if arguments.update and line.startswith("|"):
            PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), [line]), encoding="utf-8")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
