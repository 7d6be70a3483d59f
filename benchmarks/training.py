"""Times a step of training (forward, backward, SGD) beside PyTorch: `python -m benchmarks.training [NETWORK ...]`

One thread; both take turns within one run, so that a busy machine slows both alike. PyTorch's eager mode is measured,
and with --compile what torch.compile makes of the same. Medians and fastest steps are compared, and losses as
`benchmarks.training_losses` does. `torch` and `torchvision` are packages that nothing else here needs.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.networks import alone
from benchmarks.training_losses import KNOWN, STEPS, WAYS, compared, doubled, moved, ours, prepared, target_of, theirs
from benchmarks.training_networks import NETWORKS

ROUNDS = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(KNOWN))
    parser.add_argument("--seconds", type=float, default=2.0, help="per contestant and network, roughly")
    parser.add_argument("--compile", action="store_true", help="also torch.compile")
    parser.add_argument("--realtime", action="store_true", help="give way to nobody else (as root, Linux)")
    given = parser.parse_args()
    unknown = [name for name in given.networks if name not in KNOWN]
    if unknown:
        parser.error(f"there is no network {unknown[0]}: the networks are {', '.join(KNOWN)}")
    print("one thread; milliseconds of a step, median (fastest)")
    lines = [bench(name, given) for name in given.networks or NETWORKS]
    for number, title in enumerate(("medians", "fastest steps")):
        ratios = [line[number] for line in lines]
        mean, worst = statistics.geometric_mean(ratios), max(ratios)
        print(f"{title}: geometric mean of the ratio to PyTorch {mean:.3f}, largest {worst:.3f}")
    return 0


def bench(name: str, given: argparse.Namespace) -> tuple[float, float]:
    """Prints a line; gives the time over PyTorch's, by medians and by fastest steps."""
    module, x = prepared(name)
    way = WAYS["sgd"]
    batches = [(x, target_of(module, x, way.loss))]
    contestants = {"mccompile": ours(module, batches, way), "torch": theirs(module, batches, way)}
    exact = theirs(copy.deepcopy(module).double(), doubled(batches), way)
    further = moved(copy.deepcopy(module), batches, way)
    steps = {who: np.array([step() for _ in range(STEPS)]) for who, step in contestants.items()}
    told = compared(steps["mccompile"], steps["torch"], exact, further)
    if given.compile:
        import torch

        contestants["torch.compile"] = theirs(torch.compile(module), batches, way)
        contestants["torch.compile"]()
    seconds: dict[str, list[float]] = {who: [] for who in contestants}
    if given.realtime:
        with alone():
            turns(contestants, seconds, given.seconds)
    else:
        turns(contestants, seconds, given.seconds)
    medians = {who: statistics.median(values) for who, values in seconds.items()}
    fastest = {who: min(values) for who, values in seconds.items()}
    shown = "   ".join(f"{who} {medians[who] * 1e3:.2f} ({fastest[who] * 1e3:.2f})" for who in seconds)
    ratios = medians["mccompile"] / medians["torch"], fastest["mccompile"] / fastest["torch"]
    print(f"{name:14} {shown}   ratio {ratios[0]:.3f} ({ratios[1]:.3f})   {told}", flush=True)
    return ratios


def turns(contestants: dict[str, Callable[[], float]], seconds: dict[str, list[float]], most: float) -> None:
    begin = time.perf_counter()
    order = list(contestants)
    while len(seconds[order[0]]) < ROUNDS or time.perf_counter() - begin < most * len(order):
        for who in order:
            start = time.perf_counter()
            contestants[who]()
            seconds[who].append(time.perf_counter() - start)
        order = [*order[1:], order[0]]


if __name__ == "__main__":
    sys.exit(main())
