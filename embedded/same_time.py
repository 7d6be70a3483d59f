"""Counts the instructions of each step for many inputs: random ones of several sizes, zeros, extremes, NaN.

python -m embedded.same_time model.onnx ... --target cortex-m4 --inputs 200

Prints the steps whose count depends on data, from which count to which, and why. Status 1 says that a step's does whose
kernel has not said so: what `mccompile evidence` claims is wrong then.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mccompile.driver import Options, compile
from mccompile.evidence.time import counted
from mccompile.targets import api


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m embedded.same_time", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--inputs", type=int, default=200)
    arguments = parser.parse_args()
    missed = False
    for path in arguments.models:
        package = compile(path, Options(target=arguments.target))
        found = counted(package, api.load(arguments.target), arguments.inputs)
        missed |= any(each.is_missed for each in found.steps)
        print(f"{path}: {found}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
