"""A compiled model behind a serial line whose board is a process of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mccompile.cli import run
from tests.runtime_c.built import STRICT

HOST = Path(__file__).with_name("serve_host.c")


def built(model: Path, folder: Path, options: Sequence[str] = (), flags: Sequence[str] = ()) -> Path:
    """The program that serves it."""
    out = folder / "out"
    assert run([str(model), "-o", str(out), *options]) == 0
    assert run(["serve", str(out)]) == 0
    return program_of(out, folder, flags)


def program_of(out: Path, folder: Path, flags: Sequence[str] = ()) -> Path:
    prefix = next(out.glob("*_serve.c")).name.removesuffix("_serve.c")
    main, program = folder / "serve_host.c", folder / "serve_host"
    main.write_text(HOST.read_text().replace("SERVE_H", f"{prefix}_serve.h"), encoding="utf-8")
    sources = [*(path for path in out.glob("*.c") if path.name != "main.c"), main]
    includes = [f"-I{out}", f"-I{out / 'runtime'}", f"-DSERVE={prefix}_serve"]
    includes += [f"-DSERVE_UPDATES={prefix}_serve_updates"]
    check = ["gcc", *STRICT, *includes, "-fsyntax-only", str(out / f"{prefix}_serve.c")]
    subprocess.run(check, check=True)
    command = ["gcc", "-O1", "-std=gnu99", *includes, *flags, *map(str, sources), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    return program


@contextmanager
def serving(program: Path) -> Iterator[str]:
    """The name of its port."""
    board = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    assert board.stdout is not None
    try:
        yield f"tcp:127.0.0.1:{int(board.stdout.readline())}"
    finally:
        board.kill()
        board.communicate()
