"""Times a step of training (forward, backward, SGD) beside PyTorch: `python -m benchmarks.training [NETWORK ...]`

One thread; both take turns within one run, so that a busy machine slows both alike. PyTorch's eager mode is measured,
and with --compile what torch.compile makes of the same. Medians and fastest steps are compared. Both begin with the
same weights and learn from one batch, so losses must stay together. Where they do not, PyTorch in float64 says which is
off: rounding grows from step to step where learning is unstable, and takes a Relu near 0 to the other side. How far it
may lead is seen from PyTorch's own float32, which begins with the same weights, and then with weights that are moved by
at most a unit in the last place; what is further off than that is marked. `--losses` compares losses alone, of more
networks, with every optimizer of OPTIMIZERS; status 1 if some are wrong. `torch`, `torchvision` and `timm` are packages
that nothing else here needs.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mccompile
from benchmarks.networks import alone
from benchmarks.training_networks import NETWORKS
from benchmarks.training_variety import VARIETY

OPTIMIZERS = {"sgd": "SGD", "adam": "Adam"}  # here, and in torch.optim
KNOWN = {**NETWORKS, **VARIETY}
Step = Callable[[], float]
RATE = 0.001
ROUNDS = 8
STEPS = 20  # whose losses are compared
ALIKE = 1e-4  # how far these may be apart, relatively
MOST_OFF = 4  # times as far from float64 as PyTorch is
MOVED = 16  # times that PyTorch begins with moved weights, as long as it is not that far off
UNIT = 2.0**-24  # what weights are moved by at most, relatively, before they are rounded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(KNOWN))
    parser.add_argument("--seconds", type=float, default=2.0, help="per contestant and network, roughly")
    parser.add_argument("--compile", action="store_true", help="also torch.compile")
    parser.add_argument("--losses", action="store_true", help="compare losses, and take no times")
    parser.add_argument("--realtime", action="store_true", help="give way to nobody else (as root, Linux)")
    given = parser.parse_args()
    unknown = [name for name in given.networks if name not in KNOWN]
    if unknown:
        parser.error(f"there is no network {unknown[0]}: the networks are {', '.join(KNOWN)}")
    if given.losses:
        return all_losses(given.networks or KNOWN)
    print("one thread; milliseconds of a step, median (fastest)")
    lines = [bench(name, given) for name in given.networks or NETWORKS]
    for number, title in enumerate(("medians", "fastest steps")):
        ratios = [line[number] for line in lines]
        mean, worst = statistics.geometric_mean(ratios), max(ratios)
        print(f"{title}: geometric mean of the ratio to PyTorch {mean:.3f}, largest {worst:.3f}")
    return 0


def all_losses(names: Iterable[str]) -> int:
    """Prints how far losses of both are apart at most; 1 if some are wrong."""
    counts = Counter[str]()
    for name in names:
        for optimizer in OPTIMIZERS:
            mine, torchs, exact, moved = losses(*prepared(name), optimizer)
            told = compared(mine, torchs, exact, moved)
            verdict = "WRONG" if "WRONG" in told else "rounding" if told else "alike"
            counts[verdict] += 1
            apart = np.abs(mine / torchs - 1).max()
            print(f"{name:14} {optimizer:5} {mine[0]:.4f} to {mine[-1]:.4f}, apart by {apart:.1e}{told}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return int("WRONG" in counts)


def prepared(name: str) -> tuple[Any, Any, Any]:
    """Module, input and target; nothing is random while it learns."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, x, classes = KNOWN[name]()
    for part in module.modules():
        if type(part).__name__ in ("Dropout", "StochasticDepth", "DropPath"):
            setattr(part, "drop_prob" if type(part).__name__ == "DropPath" else "p", 0.0)
    return module, x, torch.randint(0, classes, (len(x),))


def losses(
    module: Any, x: Any, target: Any, optimizer: str
) -> tuple[np.ndarray, np.ndarray, Step, Iterator[np.ndarray]]:
    """Ours, those of PyTorch, steps in float64, and PyTorch's from moved weights."""
    wide = x.double() if x.is_floating_point() else x
    exact = theirs(copy.deepcopy(module).double().train(), wide, target, optimizer)
    further = moved(copy.deepcopy(module).train(), x, target, optimizer)
    steps = ours(module, x, target, optimizer), theirs(module.train(), x, target, optimizer)
    mine, torchs = (np.array([step() for _ in range(STEPS)]) for step in steps)
    return mine, torchs, exact, further


def moved(module: Any, x: Any, target: Any, optimizer: str = "sgd") -> Iterator[np.ndarray]:
    """PyTorch's losses from weights that rounding alone may lead to."""
    import torch

    chance = torch.Generator().manual_seed(1)
    for _ in range(MOVED):
        other = copy.deepcopy(module)
        with torch.no_grad():
            for weight in other.parameters():
                weight.mul_(1 + UNIT * (2 * torch.rand(weight.shape, generator=chance, dtype=torch.float64) - 1))
        step = theirs(other, x, target, optimizer)
        yield np.array([step() for _ in range(STEPS)])


def bench(name: str, given: argparse.Namespace) -> tuple[float, float]:
    """Prints a line; gives the time over PyTorch's, by medians and by fastest steps."""
    module, x, target = prepared(name)
    contestants = {"mccompile": ours(module, x, target), "torch": theirs(module.train(), x, target)}
    exact = theirs(copy.deepcopy(module).double(), x.double(), target)
    further = moved(copy.deepcopy(module), x, target)
    steps = {who: np.array([step() for _ in range(STEPS)]) for who, step in contestants.items()}
    told = compared(steps["mccompile"], steps["torch"], exact, further)
    if given.compile:
        import torch

        contestants["torch.compile"] = theirs(torch.compile(module), x, target)
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
    print(f"{name:14} {shown}   ratio {ratios[0]:.3f} ({ratios[1]:.3f}){told}", flush=True)
    return ratios


def compared(mine: np.ndarray, torchs: np.ndarray, exact: Step, further: Iterable[np.ndarray]) -> str:
    """What there is to say where losses are apart. `further`: PyTorch's, where it begins with moved weights."""
    apart = np.abs(mine / torchs - 1)
    if apart.max() <= ALIKE:
        return ""
    right = np.array([exact() for _ in mine])
    off, plain = (float(np.abs(losses / right - 1).max()) for losses in (mine, torchs))
    runs, most = 0, plain
    for losses in further if off > max(ALIKE, MOST_OFF * most) else ():
        runs, most = runs + 1, max(most, float(np.abs(losses / right - 1).max()))
        if off <= MOST_OFF * most:
            break
    verdict = "rounding" if off <= max(ALIKE, MOST_OFF * most) else "WRONG"
    first = int(np.argmax(apart > ALIKE)) + 1
    told = f"   {verdict}: losses apart from step {first}; off float64 by {off:.1e}, torch by {plain:.1e}"
    return told + (f", moved {runs} times by {most:.1e}" if runs else "")


def turns(contestants: dict[str, Callable[[], float]], seconds: dict[str, list[float]], most: float) -> None:
    begin = time.perf_counter()
    order = list(contestants)
    while len(seconds[order[0]]) < ROUNDS or time.perf_counter() - begin < most * len(order):
        for who in order:
            start = time.perf_counter()
            contestants[who]()
            seconds[who].append(time.perf_counter() - start)
        order = [*order[1:], order[0]]


def ours(module: Any, x: Any, target: Any, optimizer: str = "sgd") -> Callable[[], float]:
    """A step of the C that is made of the module."""
    import torch

    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "net.onnx")
        mode = torch.onnx.TrainingMode.TRAINING
        names = {"input_names": ["x"], "output_names": ["y"]}
        torch.onnx.export(module, (x,), path, training=mode, do_constant_folding=False, dynamo=False, **names)
        asked: dict[str, Any] = {"learn": "all", "optimizer": f"{optimizer},lr={RATE}", "batch_norm": "train"}
        net = mccompile.train(path, loss="cross_entropy:y", target="native", **asked)
    batch = x.numpy(), target.numpy()
    return lambda: net.step(*batch)


def theirs(module: Any, x: Any, target: Any, optimizer: str = "sgd") -> Callable[[], float]:
    import torch

    moves = getattr(torch.optim, OPTIMIZERS[optimizer])(module.parameters(), lr=RATE)

    def step() -> float:
        moves.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), target)
        loss.backward()
        moves.step()
        return float(loss.detach())

    return step


if __name__ == "__main__":
    sys.exit(main())
