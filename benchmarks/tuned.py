"""The measurements that come with mccompile (`--tuned default`): kernels of the project's own networks on
microcontrollers, their instructions counted exactly under emulation.

python -m benchmarks.tuned             measure what is new, and write mccompile/kernels/tuned.sqlite (`make tuned`)
... --target cortex-m4                 that target only; rows of others stay
... --anew                             measure all

What it writes depends on nothing but kernels, networks, compilers and emulators. An interrupted run goes on where it
was. A release or a kernel that changes makes its rows stale: they are left out, and `mccompile` says how many.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import small_networks
from benchmarks.small_transformers import TRANSFORMERS
from embedded import models as embedded
from mccompile.driver import Options
from mccompile.kernels.measurements import SHIPPED, Database, Measurement
from mccompile.measure.tuning.tune import tune
from mccompile.targets.api import Prefer
from tests.executors import add_arguments, opened

TOP = Path(__file__).resolve().parent.parent
TARGETS = ("cortex-m4", "cortex-m0")
PREFERENCES = (Prefer.RAM, Prefer.TIME, Prefer.FLASH)
SIZES = {"story": {"past": (0, 16)}, "words": {"batch": (1, 1)}}  # of models whose dimensions are free
INTEGERS = ("autoencoder_int8", "residual_int8", "separable_int8")


def models(folder: Path) -> Iterator[Path]:
    yield from sorted(TOP.glob("examples/*/*.onnx"))
    for name in INTEGERS:
        yield embedded.path_of(name, folder)
    for name in (*small_networks.NETWORKS, *TRANSFORMERS):
        yield small_networks.path_of(name, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--anew", action="store_true", help="also what is there already")
    add_arguments(parser)
    given = parser.parse_args()
    failures: list[str] = []
    for name in given.target or TARGETS:
        rows: set[Measurement] = set()
        unfinished = TOP / "build" / f"{name}.sqlite"
        unfinished.parent.mkdir(exist_ok=True)
        Database(unfinished, make=True).add([] if given.anew else _shipped())
        with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
            for model, prefer in itertools.product(models(Path(scratch)), PREFERENCES):
                found = tune(
                    model,
                    Options(target=name, prefer=prefer, dims=SIZES.get(model.stem, {})),
                    unfinished,
                    opened=opened(given),
                )
                ranks = "" if found.correlation is None else f", Spearman {found.correlation:.3f}"
                counts = f"{found.known} kernels, {found.new} of them now{ranks}, gain {found.gain:.1%}"
                print(f"{name} {prefer} {model.stem}: {counts}", flush=True)
                failures += found.failures
                rows |= set(found.rows)
        rows |= {row for row in _shipped() if row.key.target.split()[0] != name}
        SHIPPED.unlink(missing_ok=True)
        Database(SHIPPED, make=True).add(sorted(rows, key=lambda row: row.key))
        unfinished.unlink()
        print(f"{len(rows)} measurements, {SHIPPED.stat().st_size} bytes")
    print("\n".join(sorted(set(failures))))
    return 0


def _shipped() -> list[Measurement]:
    return Database(SHIPPED).rows() if SHIPPED.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
