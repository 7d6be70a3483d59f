"""Does the machine model order steps as they are? The rank correlation (Spearman) of what kernels estimate for the
steps of a network and the instructions that are counted, on emulated cores. All are exact; benchmarks/ranks.json keeps
them. Steps share a rank where their counts differ by less than one in a hundred: the same layer twice takes a few
instructions more or less, as its data branch.

python -m benchmarks.ranks              print all; fail where one is lower than is recorded
python -m benchmarks.ranks --update     write them, row by row, so that a run may be interrupted
... --new                               only those that are not recorded
... --only "cortex-m4 separable"        rows with this in their names
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx

from embedded.models import TOP, path_of
from mccompile.driver import Options, pass_manager
from mccompile.measure.cost import cost
from mccompile.measure.tuning.tune import spearman
from mccompile.passes.planning.estimate import taken
from mccompile.targets.api import Prefer
from tests.signal_networks import NETWORKS

RECORDED = TOP / "benchmarks" / "ranks.json"
OWN = ("autoencoder_int8", "residual_int8", "separable_int8")  # of embedded/models.py
SIGNALS = ("temporal", "unet", "raw_audio", "energy", "eeg")  # of tests/signal_networks.py, as integers
FLOATS = ("temporal", "unet", "energy", "eeg")
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m33", "cortex-m55", "rv32imc")
WANTED = 0.95
LESS = 0.01  # than is recorded
SAME = 1.01  # times a count is no other count


def networks(folder: Path) -> Iterator[Path]:
    for name in OWN:
        yield path_of(name, folder)
    for name in (*(f"{name}_int8" for name in SIGNALS), *(f"{name}_f32" for name in FLOATS)):
        path = folder / f"{name}.onnx"
        onnx.save(NETWORKS[name].model(False), path)
        yield path


def correlation(path: Path, target: str) -> tuple[float, int]:
    """0 where there is none, and of how many steps."""
    options = Options(target=target, prefer=Prefer.TIME)
    found, context = cost(path, options, by_step=True), pass_manager(options).context
    estimates = [taken(run, context) for run in found.package.estimate.runs]
    return spearman(estimates, alike(found.by_step)) or 0.0, len(estimates)


def alike(counts: Sequence[int]) -> list[int]:
    """In place of each count the least of those that follow each other so closely."""
    found: dict[int, int] = {}
    least = 0
    for count in sorted(counts):
        least = least if least and count < least * SAME else count
        found[count] = least
    return [found[count] for count in counts]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--only", default="")
    asked = parser.parse_args(arguments)
    recorded: dict[str, float] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    worse = 0
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        for path in networks(Path(folder)):
            for target in TARGETS:
                key = f"{target} {path.stem}"
                if asked.only not in key or (asked.new and key in recorded):
                    continue
                found, steps = correlation(path, target)
                before = recorded.get(key)
                if not asked.update and before is not None and found < before - LESS:
                    worse += 1
                low = "  low" if found < WANTED else ""
                print(f"{path.stem:16} {target:11} {steps:3} steps {found:6.3f}{low}", flush=True)
                if asked.update:
                    recorded[key] = round(found, 3)
                    RECORDED.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
