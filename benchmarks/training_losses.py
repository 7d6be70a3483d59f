"""Compares losses of training with PyTorch's: `python -m benchmarks.training_losses [NETWORK ...] [--ways sgd,adam]`

Both begin with the same weights and learn from the same batches in one of WAYS, so losses must stay together. Where
they do not, PyTorch in float64 says which is off: rounding grows from step to step where learning is unstable, and
takes a Relu near 0 to the other side. How far it may lead is seen from PyTorch's own float32, which begins with the
same weights, and then with weights that are moved by at most a unit in the last place; what is further off than that is
wrong, and ends in status 1. `torch`, `torchvision` and `timm` are packages that nothing else here needs.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import mccompile
from benchmarks.training_networks import NETWORKS
from benchmarks.training_variety import VARIETY

KNOWN = {**NETWORKS, **VARIETY}
Batches = Sequence[tuple[Any, Any]]  # of inputs and targets
Step = Callable[[], float]
RATE = 0.001
STEPS = 20  # whose losses are compared
TAKEN = 50  # steps
BATCHES = 3  # that take turns
ALIKE = 1e-4  # how far losses may be apart, relatively
LOSSES = {"cross_entropy": "cross_entropy", "mse": "mse_loss", "huber": "huber_loss", "bce": "binary_cross_entropy"}
MOST_OFF = 4  # times as far from float64 as PyTorch is
MOVED = 16  # times that PyTorch begins with moved weights, as long as it is not that far off
LEAST = 1e-6  # a loss that is smaller is told as if it were of this size
UNIT = 2.0**-24  # what weights are moved by at most, relatively, before they are rounded
SHAKEN = 0.01  # what weights are moved by at first: exporters merge those that are equal


@dataclass(frozen=True)
class Way:
    """How both learn: an optimizer as mccompile is told it, in torch.optim, and what is asked besides."""

    optimizer: str = f"sgd,lr={RATE}"
    of_torch: str = "SGD"
    options: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "cross_entropy"
    clip: float | None = None
    accumulate: int = 1
    frozen: bool = False  # BatchNorm
    dynamo: bool = False  # PyTorch's newer exporter


WAYS = {
    "sgd": Way(),
    "adam": Way(f"adam,lr={RATE}", "Adam"),
    "momentum": Way(
        f"momentum,lr={RATE},nesterov=1,weight_decay=0.01",
        "SGD",
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
        "mse",
    ),
    "adamw": Way(f"adamw,lr={RATE},weight_decay=0.1", "AdamW", {"weight_decay": 0.1}, "huber"),
    "adagrad": Way(f"adagrad,lr={RATE},weight_decay=0.01", "Adagrad", {"weight_decay": 0.01}, "bce"),
    "clipped": Way(clip=0.1, accumulate=2),
    "accumulated": Way(f"adam,lr={RATE},weight_decay=0.01", "Adam", {"weight_decay": 0.01}, accumulate=4),
    "frozen": Way(f"momentum,lr={RATE}", "SGD", {"momentum": 0.9}, frozen=True),
    "dynamo": Way(f"adam,lr={RATE}", "Adam", frozen=True, dynamo=True),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(KNOWN))
    parser.add_argument("--ways", default="sgd,adam", help=f"some of {', '.join(WAYS)}, with commas between")
    given = parser.parse_args()
    names, ways = given.networks or list(KNOWN), given.ways.split(",")
    unknown = [name for name in names if name not in KNOWN] + [way for way in ways if way not in WAYS]
    if unknown:
        parser.error(f"there is no {unknown[0]}: there are {', '.join([*KNOWN, *WAYS])}")
    counts = Counter[str]()
    for name in names:
        for way in ways:
            told = _line(name, WAYS[way])
            counts[next((each for each in ("WRONG", "rounding", "not compared") if each in told), "alike")] += 1
            print(f"{name:14} {way:11} {told}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return int("WRONG" in counts)


def prepared(name: str) -> tuple[Any, Any]:
    """Module and input; nothing is random while it learns."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, x, _ = KNOWN[name]()
    for part in module.modules():
        if type(part).__name__ in ("Dropout", "StochasticDepth", "DropPath"):
            setattr(part, "drop_prob" if type(part).__name__ == "DropPath" else "p", 0.0)
    return module, x


def _line(name: str, way: Way) -> str:
    """How far losses of both are apart at most, and what there is to say of that."""
    import torch

    module, x = prepared(name)
    with torch.no_grad():
        module.eval()(x)  # which says how large lazy layers are
        for weight in module.parameters():
            weight.add_(SHAKEN * torch.randn_like(weight))
    if way.dynamo and any("BatchNorm" in type(part).__name__ for part in module.modules()):
        return "not compared: the exporter folds BatchNorm, and what is folded learns otherwise"
    if way.loss == "bce":
        module = torch.nn.Sequential(module, torch.nn.Sigmoid())
    batches = _batches(module, x, way.loss)
    exact = theirs(copy.deepcopy(module).double(), doubled(batches), way)
    steps = ours(copy.deepcopy(module), batches, way), theirs(copy.deepcopy(module), batches, way)
    mine, torchs = (np.array([step() for _ in range(TAKEN)]) for step in steps)
    told = compared(mine[:STEPS], torchs[:STEPS], exact, moved(module, batches, way))
    apart = off_from(torchs, mine)
    numbers = f"{mine[0]:.4f} to {mine[STEPS - 1]:.4f} and {mine[-1]:.4f}"
    return f"{numbers}, apart by {apart[:STEPS].max():.1e} and {apart.max():.1e}   {told}".rstrip()


def _batches(module: Any, x: Any, loss: str) -> Batches:
    """The same input in several orders."""
    import torch

    orders = [torch.randperm(x.numel()) for _ in range(BATCHES)]
    return [(x.flatten()[order].reshape(x.shape), target_of(module, x, loss)) for order in orders]


def target_of(module: Any, x: Any, loss: str) -> Any:
    """At random."""
    import torch

    with torch.no_grad():
        shape = copy.deepcopy(module).eval()(x).shape
    if loss == "cross_entropy":
        return torch.randint(0, shape[1], (*shape[:1], *shape[2:]))
    return torch.rand(shape)


def doubled(batches: Batches) -> Batches:
    """In float64."""
    return [
        (x.double() if x.is_floating_point() else x, y.double() if y.is_floating_point() else y) for x, y in batches
    ]


def moved(module: Any, batches: Batches, way: Way) -> Iterator[np.ndarray]:
    """PyTorch's losses from weights that rounding alone may lead to."""
    import torch

    chance = torch.Generator().manual_seed(1)
    for _ in range(MOVED):
        other = copy.deepcopy(module)
        with torch.no_grad():
            for weight in other.parameters():
                weight.mul_(1 + UNIT * (2 * torch.rand(weight.shape, generator=chance, dtype=torch.float64) - 1))
        step = theirs(other, batches, way)
        yield np.array([step() for _ in range(STEPS)])


def off_from(right: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Relatively."""
    return np.asarray(np.abs(losses - right) / np.maximum(np.abs(right), LEAST))


def compared(mine: np.ndarray, torchs: np.ndarray, exact: Step, further: Iterable[np.ndarray]) -> str:
    """What there is to say where losses are apart. `further`: PyTorch's, where it begins with moved weights."""
    apart = off_from(torchs, mine)
    if apart.max() <= ALIKE:
        return ""
    right = np.array([exact() for _ in mine])
    off, plain = (float(off_from(right, losses).max()) for losses in (mine, torchs))
    runs, most = 0, plain
    for losses in further if off > max(ALIKE, MOST_OFF * most) else ():
        runs, most = runs + 1, max(most, float(off_from(right, losses).max()))
        if off <= MOST_OFF * most:
            break
    verdict = "rounding" if off <= max(ALIKE, MOST_OFF * most) else "WRONG"
    first = int(np.argmax(apart > ALIKE)) + 1
    told = f"{verdict}: losses apart from step {first}; off float64 by {off:.1e}, torch by {plain:.1e}"
    return told + (f", moved {runs} times by {most:.1e}" if runs else "")


def ours(module: Any, batches: Batches, way: Way) -> Step:
    """A step of the C that is made of the module."""
    import torch

    mode = {"dynamo": True, "external_data": False, "verbose": False}
    if not way.dynamo:
        mode = {"dynamo": False, "training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    statistics = "frozen" if way.frozen else "train"
    asked: dict[str, Any] = {"optimizer": way.optimizer, "clip": way.clip, "accumulate": way.accumulate}
    asked |= {"loss": f"{way.loss}:y", "target": "native", "batch_norm": statistics}
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        path = Path(folder, "net.onnx")
        module = module.eval() if way.dynamo else _learning(module, way)
        torch.onnx.export(module, (batches[0][0],), path, input_names=["x"], output_names=["y"], **mode)
        net = mccompile.train(path, learn="all", **asked)
        named = [found for each in told if (found := re.search(r"as in --learn (\S+)", str(each.message)))]
        if (
            named
        ):  # what no layer has, such as factors of residuals; of folded weights, and states that begin with zeros
            more = _outside_layers(module, net, path)
            net = mccompile.train(path, learn=",".join(("all", *more)) if more else named[-1][1], **asked)
    given = itertools.cycle([(x.numpy(), target.numpy()) for x, target in batches])
    return lambda: net.step(*next(given))


def _outside_layers(module: Any, net: Any, path: Path) -> list[str]:
    """The module's own weights that are in the file, and do not learn with all layers."""
    stored = {tensor.name for tensor in onnx.load(path).graph.initializer} - net.weights().keys()
    return [name for name, weight in module.named_parameters() if weight.requires_grad and name in stored]


def _learning(module: Any, way: Way) -> Any:
    """In the mode in which it learns."""
    module.train()
    for part in module.modules():
        if way.frozen and "BatchNorm" in type(part).__name__:
            part.eval().requires_grad_(False)
    return module


def theirs(module: Any, batches: Batches, way: Way) -> Step:
    import torch
    from torch.nn import functional

    weights = [weight for weight in _learning(module, way).parameters() if weight.requires_grad]
    moves = getattr(torch.optim, way.of_torch)(weights, lr=RATE, **way.options)
    loss_of = getattr(functional, LOSSES[way.loss])
    given, taken = itertools.cycle(batches), itertools.count(1)

    def step() -> float:
        x, target = next(given)
        loss = loss_of(module(x), target)
        (loss / way.accumulate).backward()
        if next(taken) % way.accumulate == 0:
            if way.clip is not None:
                torch.nn.utils.clip_grad_norm_(weights, way.clip)
            moves.step()
            moves.zero_grad()
        return float(loss.detach())

    return step


if __name__ == "__main__":
    sys.exit(main())
