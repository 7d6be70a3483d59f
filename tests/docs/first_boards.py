"""From an environment that holds nothing to scores of an emulated board over its UART, for boards of three makers:
`python -m tests.docs.first_boards`. The commands are those of docs/deploy/cmake.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.docs.first_results import Road, followed, prepared
from tests.docs.pages import TOP, blocks

PAGE = TOP / "docs" / "deploy" / "cmake.md"
MODEL = "examples/bare_metal/kws.onnx"
BOARDS = {"ST": "nucleo_f446re", "Nordic": "nrf52840_dk", "Espressif": "esp32_c3_devkitm_1"}
EMULATORS = {"ST": "qemu-system-arm", "Nordic": "qemu-system-arm", "Espressif": "qemu-system-riscv32"}


def road(maker: str) -> Road:
    """The page's first commands, with a board of that maker, in a folder of its own."""
    found = [block.code.strip() for block in blocks(PAGE.read_text(encoding="utf-8"))]
    first = next(code for code in found if code.startswith("mccompile deploy"))
    for here, there in (("kws.onnx", MODEL), (BOARDS["ST"], BOARDS[maker]), ("project", maker)):
        first = first.replace(here, there)
    return Road(f"on a board: cmake {EMULATORS[maker]}; {maker}", tuple(first.splitlines()))


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix="mccompile-") as name:
        folder = Path(name)
        environment = prepared(folder)
        if not followed(Road("install", ("pip install .",)), folder, environment):
            return 1
        for maker, board in BOARDS.items():
            found, started = road(maker), time.monotonic()
            if found.absent:
                print(f"left out: {board} ({', '.join(found.absent)} is not installed)")
                continue
            failed += not followed(found, folder, environment)
            took = time.monotonic() - started
            print(f"{len(found.commands)} commands in {took:.0f} s: {board} of {maker}\n", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
