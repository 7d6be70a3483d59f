"""Programs that targets need besides mccompile, and the packages of Debian that bring them.

Invariant: which programs a target needs stands in its TOML file; which package has a program, only here.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from mccompile.base.errors import Problem, WrongUse

_PACKAGES = {
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    "arm-linux-gnueabihf-gcc": "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross",
    "riscv64-linux-gnu-gcc": "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross",
    "clang-19": "clang-19 lld-19 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross wasi-libc libclang-rt-19-dev-wasm32",
    "qemu-system-arm": "qemu-system-arm",
    "qemu-system-riscv32": "qemu-system-misc",
    "qemu-aarch64": "qemu-user",
    "qemu-arm": "qemu-user",
    "qemu-riscv64": "qemu-user",
    "node": "nodejs",
    "frama-c": "frama-c-base",
    "gcc": "gcc",
    "cc": "gcc libc6-dev",
}

_NO_SUCH_FLAG = re.compile(
    r"unrecognized (command-line|command line)? ?option|unknown argument|unsupported option|bad value"
)


def compiler_failed(what: str, command: Sequence[str], said: str) -> WrongUse:
    """A compiler of another machine does not know the flags of the target; else the C is wrong."""
    fix = "check compiler and flags; if they are right, generated code is wrong: please report it"
    if _NO_SUCH_FLAG.search(said):
        fix = f"{command[0]} does not take the flags of the target: leave out --cc (and unset CC), the target names one"
    return WrongUse(Problem(f"the C compiler failed on {what}", shlex.join(command), said, fix))


def missing(commands: Iterable[str]) -> list[str]:
    """Those that are not on the PATH."""
    return [command for command in commands if shutil.which(command) is None]


def packages(commands: Iterable[str]) -> list[str]:
    """Of Debian, that bring these programs and what they need."""
    return list(dict.fromkeys(word for command in commands for word in _PACKAGES.get(command, "").split()))


def install(commands: Iterable[str]) -> str:
    """How to get these programs; empty where nothing is known of them."""
    wanted = packages(commands)
    return f"apt-get install --no-install-recommends {' '.join(wanted)}" if wanted else ""


def version(command: Sequence[str]) -> str:
    """The first line that a program says of itself."""
    require(command[:1], "its version")
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", check=False)
    return ((done.stdout or done.stderr).strip().splitlines() or [command[0]])[0].strip()


def require(commands: Sequence[str], what: str, usual: str = "") -> None:
    """Refuses, with the packages to install, where a command is missing. `usual`: what would be in place of the
    first one, had not another one been asked for."""
    absent = missing(commands)
    if absent:
        fixes = []
        wanted = absent
        if usual and absent[0] == commands[0] and not packages(absent[:1]):  # nobody knows what was asked for
            fixes.append(f"leave out --cc: {what} is built with {usual}")
            wanted = missing([usual, *absent[1:]])
        if how := install(wanted):
            fixes.append(f"Debian: {how}")
        fix = "; ".join(fixes) or "install it"
        raise WrongUse(Problem(f"{', '.join(absent)} not found", what, "it is not on the PATH", fix))
