"""What a network over signals costs more than the same one over pictures of one row: instructions of one run, counted
by emulators. Where both become the same calls of the same kernels, they are the same code, and are not run.

python -m benchmarks.signals                  compare; fail where signals take 2 % more
... --target T                                that target only
... --only "separable"                        networks with this in their names
... --count                                   run also those that are the same code
... --drawn 60 --seed 1                       so many networks at random instead of those of tests/signal_networks.py
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx

from mccompile.base.streaming import Stream
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.emit.summary import table
from mccompile.frontend.load import load_proto
from mccompile.measure.cost import cost
from tests import drawn_signals
from tests.signal_networks import NETWORKS, Network

TARGETS = ("cortex-m4", "cortex-m55", "generic", "x86-64-v3", "aarch64")
RUN_HERE = {"generic": "qemu-x86_64", "x86-64-v3": "qemu-x86_64 -cpu max"}  # by what counts as well
GROWTH = 1.02
HEAD = ("network", "target", "pictures", "signals", "ratio")


def counted(target: str, folder: Path) -> str:
    """A target that names an emulator."""
    if target not in RUN_HERE:
        return target
    path = folder / f"{target}-counted.toml"
    path.write_text(f'inherits = "{target}"\nrun = "{RUN_HERE[target]}"\n', encoding="utf-8")
    return str(path)


def options(network: Network, picture: bool, target: str) -> Options:
    stream = Stream({"x": 3 if picture else 2}, network.hop) if network.hop else Stream()
    return Options(target=target, stream=stream)


def code_of(package: Package) -> str:
    """Its C without comments, and without what names the blob."""
    prefix = package.plan.prefix
    text = "".join(str(package.files.get(f"{prefix}{end}.c", "")) for end in ("", "_kernels"))
    return re.sub(r"/\*.*?\*/|0x[0-9A-F]+u?", "", text, flags=re.DOTALL)


def compiled(network: Network, picture: bool, target: str) -> Package:
    graph = load_proto(network.model(picture), Path())
    return compile_graph(graph, options(network, picture, target), network.name)


def instructions(network: Network, picture: bool, target: str, folder: Path) -> int:
    path = folder / f"{network.name}.onnx"
    onnx.save(network.model(picture), path)
    return cost(path, options(network, picture, counted(target, folder))).run_instructions


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--only", default="")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--drawn", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tried = drawn_signals.networks(given.seed, given.drawn) if given.drawn else NETWORKS.values()
    chosen = [network for network in tried if given.only in network.name]
    lines: list[Sequence[str]] = []
    slower = same = 0
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        for target in given.target or TARGETS:
            for network in chosen:
                codes = [code_of(compiled(network, picture, target)) for picture in (True, False)]
                same += codes[0] == codes[1]
                if codes[0] == codes[1] and not given.count:
                    continue
                before, after = (instructions(network, p, target, Path(scratch)) for p in (True, False))
                slower += after > before * GROWTH
                lines.append([network.name, target, f"{before:,}", f"{after:,}", f"{after / before:.3f}"])
    print("\n".join([*table(HEAD, lines, frozenset({0, 1})), f"{same} are the same code, {slower} are slower"]))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
