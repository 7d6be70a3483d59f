"""A machine without optional tools: MCCOMPILE_BARE=1 hides all compilers, emulators and builders that tests
may do without.

Invariant: what README asks for (Python, a C compiler, make) stays, so a test that fails then depends on something else.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from pathlib import Path

BARE = "MCCOMPILE_BARE"
# Cross-compilers and whatever else mccompile or its tests look for on the PATH.
OPTIONAL = re.compile(
    r"(clang|lld|ld\.lld|wasm-ld|tcc|cmake|ninja|zig|qemu-|node|chrom|google-chrome|cppcheck|rustc|cargo|avr-|simavr|"
    r".+-(elf|eabi|gnu|gnueabihf|wasi|mingw32)-|apt-get$).*"
)
KEPT = re.compile(rf"{os.uname().machine}-linux-gnu-.*")  # of this machine's own compiler


def hide() -> None:
    """Leaves a PATH to a folder of links to all other programs."""
    folder = tempfile.mkdtemp(prefix="bare-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for place in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(place).iterdir()) if Path(place).is_dir() else []:
            link = Path(folder, program.name)
            if not link.is_symlink() and (KEPT.fullmatch(program.name) or not OPTIONAL.fullmatch(program.name)):
                link.symlink_to(program)
    os.environ["PATH"] = folder
