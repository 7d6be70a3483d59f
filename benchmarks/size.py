"""How much flash and RAM the project's own models take: `make size`.

Code is what `size` calls text (machine code and constant tables) of every object but the weights, which stand in a
column of their own. The arena is all the RAM there is besides the stack and the model struct.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.own_models import OWN_MODELS, Generated, compile_to_c, missing, run
from mccompile.targets import api

TARGETS = ("generic", "cortex-m0", "cortex-m4")
LEVELS = ("-Os", "-O2")
ROW = "{:<10} {:<10} {:>8} {:>8} {:>8} {:>8}"


def main() -> None:
    print(ROW.format("model", "target", *(f"code {level}" for level in LEVELS), "arena", "weights"))
    for name in TARGETS:
        target = api.load(name)
        size_command = target.compiler.removesuffix("gcc") + "size" if target.compiler.endswith("-gcc") else "size"
        absent = missing(target.compiler, size_command)
        if absent:
            print(f"{'':<10} {name:<10} skipped: {absent} is not installed")
            continue
        for model in OWN_MODELS:
            with tempfile.TemporaryDirectory() as temporary:
                generated = compile_to_c(model, target, Path(temporary) / "out")
                code = [code_bytes(generated, level, size_command, Path(temporary)) for level in LEVELS]
            figures = (f"{figure:,}" for figure in (*code, generated.arena_bytes, generated.weights_bytes))
            print(ROW.format(model.name, name, *figures))


def code_bytes(generated: Generated, level: str, size_command: str, folder: Path) -> int:
    objects = []
    for source in generated.sources():
        if source.stem.endswith("_weights"):
            continue
        objects.append(str(folder / f"{source.parent.name}-{source.stem}.o"))
        flags = [*generated.compile_flags(), level]  # the last -O counts
        run([generated.target.compiler, *flags, "-c", str(source), "-o", objects[-1]])
    return sum(int(line.split()[0]) for line in run([size_command, *objects]).splitlines()[1:])


if __name__ == "__main__":
    main()
