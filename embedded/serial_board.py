"""A board of QEMU that serves a model over its UART; and a command that flashes it, as users have one.

`python embedded/serial_board.py OUT TARGET PORT SCRATCH` builds the firmware of an output folder, ends the emulator
that an earlier call has started there, and starts one that listens at the port.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mccompile.targets import api
from mccompile.toolchain import emulate
from mccompile.toolchain.boards import BOARDS, linker_script

# The clock of mps2 boards that QEMU has: 25 MHz, so 40 instructions (1 ns each, -icount shift=0) are a tick.
SYSTICK = ("-DMCC_CLOCK()=(0u-((*(volatile uint32_t*)0xE000E018u)<<8))", "-DMCC_TICKS_SINCE(b)=((MCC_TICKS()-(b))>>8)")
PER_TICK = 40


def machine(target: str) -> str:
    words = shlex.split(api.load(target).run)
    return words[words.index("-M") + 1]


def firmware(
    out: Path, folder: Path, target: str = "cortex-m4", flags: Sequence[str] = (), entry: str = "serve"
) -> Path:
    """Built as emulation without a line builds it. `entry`: serve, or eembc."""
    told, board = api.load(target), Path(emulate.__file__).with_name("board")
    prefix = next(out.glob(f"*_{entry}.c")).name.removesuffix(f"_{entry}.c")
    script, program, uart = folder / "board.ld", folder / "program.elf", folder / "uart.c"
    script.write_text(linker_script(BOARDS[machine(target)], f"{prefix}_weights.o"), encoding="utf-8")
    uart.write_text(Path(__file__).with_name("uart.c").read_text().replace("SERVE_H", f"{prefix}_{entry}.h"))
    sources = [*(path for path in sorted(out.glob("*.c")) if path.name != "main.c"), board / "bare.c", uart]
    if not (out / f"{prefix}_weights.c").is_file():
        sources.append(emulate._external_weights(out, prefix, folder))
    options = [*(f"-I{path}" for path in (board, out, out / "runtime")), "-ffunction-sections", "-fdata-sections"]
    options += [f"-D{entry.upper()}{rest.upper()}={prefix}_{entry}{rest}" for rest in ("", "_stack", "_updates")]
    options += [*BOARDS[machine(target)].options, "-nostartfiles", f"-T{script}", "-Wl,--gc-sections", *flags]
    command = [told.compiler, *told.cflags, *options, *map(str, sources), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    return program


def emulator(program: Path, target: str, serial: str) -> list[str]:
    name = shlex.split(api.load(target).run)[0]
    more = ["-bios", "none"] if "riscv" in name else []
    counted = ["-icount", "shift=0,sleep=off"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    quiet = ["-display", "none", "-monitor", "none", "-serial", serial]
    return [name, "-M", machine(target), *more, *quiet, *counted, *semihosting, "-kernel", str(program)]


@contextmanager
def emulated(program: Path, serial: str, target: str = "cortex-m4") -> Iterator[subprocess.Popen[str]]:
    board = subprocess.Popen(emulator(program, target, serial), stdout=subprocess.PIPE, text=True)
    try:
        yield board
    finally:
        board.kill()
        board.communicate()


@contextmanager
def served(program: Path, target: str = "cortex-m4") -> Iterator[str]:
    """The name of the port at which the board answers."""
    port = free_port()
    with emulated(program, listening(port), target):
        wait_for(port)
        yield f"tcp:127.0.0.1:{port}"


@contextmanager
def harming(name: str, rate: float, seed: int = 0) -> Iterator[tuple[str, list[int]]]:
    """A port that leads to another one, and the bytes that were harmed on the way: lost, doubled, or broken."""
    chance, harmed = random.Random(seed), list[int]()
    host, _, port = name.removeprefix("tcp:").partition(":")

    def passed_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while contents := source.recv(4096):
                found = bytearray()
                for byte in contents:
                    if chance.random() >= rate:
                        found.append(byte)
                        continue
                    harmed.append(byte)
                    found += chance.choice((b"", bytes([byte, byte]), bytes([byte ^ 1 << chance.randrange(8)])))
                sink.sendall(found)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection((host, int(port))) as board:

        def accepted() -> None:
            with suppress(OSError), server.accept()[0] as user:
                back = threading.Thread(target=passed_on, args=(board, user), daemon=True)
                back.start()
                passed_on(user, board)

        threading.Thread(target=accepted, daemon=True).start()
        yield f"tcp:127.0.0.1:{server.getsockname()[1]}", harmed


def listening(port: int) -> str:
    return f"tcp:127.0.0.1:{port},server=on,wait=off,nodelay=on"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(400):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def stop(scratch: Path) -> None:
    """The emulator that a call of this file has started there."""
    kept = scratch / "emulator.pid"
    if kept.is_file():
        with suppress(ProcessLookupError):
            os.kill(int(kept.read_text()), signal.SIGKILL)
        kept.unlink()


def main(out: str, target: str, port: str, scratch: str) -> None:
    folder = Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    flags = SYSTICK if target.startswith("cortex") else ()
    program = firmware(Path(out), folder, target, flags)
    stop(folder)
    time.sleep(0.1)
    board = subprocess.Popen(
        emulator(program, target, listening(int(port))), start_new_session=True, stdin=subprocess.DEVNULL
    )
    (folder / "emulator.pid").write_text(str(board.pid))
    wait_for(int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
