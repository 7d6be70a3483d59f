"""On which targets networks have equal results, bit by bit, as docs/checking.md has it.

python -m tests.measure.bits_table [--update]     run the networks on all targets; put the table into the page
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from embedded.models import TOP, path_of
from mccompile.check.inputs import random_sets
from mccompile.driver import Options, compile
from mccompile.frontend.load import load
from mccompile.measure.bitwise import alike, digest
from mccompile.measure.building import build

PAGE = TOP / "docs" / "checking.md"
BEGIN, END = "<!-- begin of bits: python -m tests.measure.bits_table --update -->", "<!-- end of bits -->"
PLAIN = ("conv", "depthwise")  # they call nothing of the C library
NETWORKS = (*PLAIN, "digits", "mlp", "recurrent", "quantized")
BARE = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55", "rv32imc")
TARGETS = ("generic", *BARE, "riscv64", "wasm32-scalar", "wasm32", "armv7a", "aarch64", "x86-64-v3")


def letters(network: str, targets: Sequence[str]) -> dict[str, str]:
    """By target the group that it is in, `A` that of the first one."""
    with tempfile.TemporaryDirectory() as folder:
        path = path_of(network, Path(folder))
        inputs = [each.inputs for each in random_sets(load(path), 0, 2)]
        found = {}
        for target in targets:
            options = Options(target=target)
            model = build(compile(path, options), options.resolved_target())
            found[target] = digest([model.run(each) for each in inputs])
    groups = alike(found)
    return {target: chr(ord("A") + number) for number, group in enumerate(groups) for target in group}


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    head = f"| target | {' | '.join(columns)} |\n|---|{':-:|' * len(columns)}\n"
    rows = (f"| {target} | {' | '.join(each[target] for each in columns.values())} |\n" for target in TARGETS)
    return head + "".join(rows)


def on_page(page: str) -> dict[str, dict[str, str]]:
    """By network the letter of each target."""
    lines = [line.strip("| ").split(" | ") for line in _between(page).strip().splitlines()]
    networks, rows = lines[0][1:], lines[2:]
    return {network: {row[0]: row[place + 1] for row in rows} for place, network in enumerate(networks)}


def _between(page: str) -> str:
    return page.partition(BEGIN)[2].partition(END)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    found = table({network: letters(network, TARGETS) for network in NETWORKS})
    print(found, end="")
    if arguments.update:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{found}{END}{rest.partition(END)[2]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
