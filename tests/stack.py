"""How much stack the functions of compiled models need: `python tests/stack.py --zoo folder`.

Every model of a folder, compiled for each target and built with `-O2 -fstack-usage`; the worst functions are printed,
and those over the limit fail.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mccompile.base.errors import MccError
from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.targets.api import Target

LIMIT = 512
TARGETS = "generic,cortex-m0,cortex-m4,cortex-m55"


def stack_bytes(package: Package, target: Target, folder: Path) -> dict[str, int]:
    """Bytes of stack of every function of the model; of one whose size is not fixed, infinitely many."""
    package.write(folder)
    flags = [flag for flag in target.cflags if not flag.startswith("-O")]
    found: dict[str, int] = {}
    for source in sorted(folder.glob("*.c")):
        if source.stem == "main" or source.stem.endswith("_weights"):
            continue
        usage = source.with_suffix(".su")
        command = [target.compiler, *flags, "-O2", "-fstack-usage", "-c", source.name, "-o", f"{source.stem}.o"]
        subprocess.run([*command, "-I.", "-Iruntime"], cwd=folder, check=True)
        for line in usage.read_text(encoding="utf-8").splitlines():
            place, size, kind = line.split("\t")
            name = place.rsplit(":", 1)[-1]
            fixed = kind in ("static", "dynamic,bounded")
            found[name] = max(found.get(name, 0), int(size) if fixed else sys.maxsize)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--zoo", type=Path, required=True, help="the folder of models")
    parser.add_argument("--only", default="", help="names of models, with commas between")
    parser.add_argument("--target", default=TARGETS, help="names of targets, with commas between")
    parser.add_argument("--limit", type=int, default=LIMIT)
    arguments = parser.parse_args()
    wanted = [name for name in arguments.only.split(",") if name]
    over = 0
    for name in arguments.target.split(","):
        options = Options(target=name)
        target = options.resolved_target()
        if shutil.which(target.compiler) is None:
            print(f"{name}: skipped, {target.compiler} is not installed")
            continue
        worst = 0
        for model in sorted(arguments.zoo.glob("*/model.onnx")):
            if wanted and model.parent.name not in wanted:
                continue
            try:
                package = compile(model, options)
            except MccError as error:
                print(f"{name}: {model.parent.name} refused: {str(error).splitlines()[0]}")
                continue
            with tempfile.TemporaryDirectory() as scratch:
                sizes = stack_bytes(package, target, Path(scratch) / "out")
            worst = max(worst, *sizes.values())
            for function, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
                if size > arguments.limit:
                    over += 1
                    print(f"{name}: {model.parent.name}: {function} needs {size} bytes", flush=True)
        print(f"{name}: at most {worst} bytes in a function", flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
