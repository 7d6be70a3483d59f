"""`mccompile quantize` beside onnxruntime's static quantizer, on equal samples: `python -m benchmarks.quantizers`

Signal to noise of outputs against the float network, on samples that neither has seen, of both files run by the same
reference. onnxruntime's is prepared as its documentation says (`quant_pre_process`), as it is by default (a scale per
tensor, MinMax), and per channel with each of its methods: the best one counts. Worse is a network `BEHIND` dB below.

Networks are those of the examples and of `benchmarks.small_networks` and `embedded.models`; `--zoo FOLDER` adds the
float networks of a folder as `make zoo` takes it, each with its testset.npz, or with mixtures of its `test_data_set_*`.
`--draws 64 --seed 7` compares networks at random instead (`benchmarks.drawn_networks`).
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import onnx

from benchmarks import drawn_networks, small_networks
from embedded import models
from mccompile.base.errors import MccError, MccWarning
from mccompile.base.quantizing import Recipe
from mccompile.check.inputs import random_sets, stored_sets
from mccompile.emit.summary import table
from mccompile.frontend.load import load
from mccompile.graph.ir import Graph
from mccompile.quantize.bench import outputs
from mccompile.quantize.quantize import quantized
from mccompile.quantize.samples import Feed, Samples, decibels, read_samples

TOP = Path(__file__).resolve().parent.parent
EXAMPLES = ("arduino/digits", "bare_metal/kws", "digits/digits", "ternary/digits", "voice/voice", "wake_word/wake")
SHAPES = ("resnet8", "dscnn")  # of small_networks; what others compute of random weights is constant
GENERATED = ("mlp", "depthwise", "classifier", "normalized")  # of embedded.models
CALIBRATE, TEST = 48, 150  # samples, at most; with few, the better of two is a matter of luck
MIXED = 32  # of what is only mixtures
BEHIND = 0.1  # dB: other samples could turn that round
_WAYS = (("MinMax", False), ("MinMax", True), ("Entropy", True), ("Percentile", True))  # is it per channel?
_EXACT = 150.0  # dB: what floats themselves are exact to


@dataclass(frozen=True)
class Network:
    name: str
    path: Path
    feeds: Sequence[Feed]


@dataclass(frozen=True)
class Row:
    name: str
    onnxruntime: float  # dB; nan where it refused
    ours: float
    left: int  # layers in float

    @property
    def ok(self) -> bool:
        return not self.ours < self.onnxruntime - BEHIND


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--zoo", type=Path, help="a folder of models besides")
    parser.add_argument("--draws", type=int, default=0, help="how many networks at random, instead of these")
    parser.add_argument("--seed", type=int, default=0, help="which networks at random")
    parser.add_argument("--only", default="", help="names of networks, with commas between")
    parser.add_argument("--sensitivity", type=float, default=0.0, help="as `mccompile quantize` takes it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", MccWarning)
    recipe = Recipe(sensitivity=arguments.sensitivity)
    wanted = set(filter(None, arguments.only.split(",")))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        seeds = (arguments.seed, arguments.draws)
        for network in drawn(Path(folder), *seeds) if arguments.draws else networks(Path(folder), arguments.zoo):
            if wanted and network.name not in wanted:
                continue
            try:
                rows.append(compared(network, recipe))
                print(rows[-1], file=sys.stderr)
            except MccError as error:
                print(f"{network.name}: {error.problems[0].what}", file=sys.stderr)
    print(shown(rows))
    return int(not all(row.ok for row in rows))


def shown(rows: Sequence[Row]) -> str:
    figures = ((row, f"{row.onnxruntime:.1f}", f"{row.ours:.1f}") for row in rows)
    lines = [[row.name, theirs, ours, str(row.left), "" if row.ok else "below"] for row, theirs, ours in figures]
    head = ["dB of outputs", "onnxruntime", "mccompile", "layers in float", ""]
    below = sum(not row.ok for row in rows)
    alone = sum(row.onnxruntime == float("-inf") for row in rows)
    total = f"{len(rows)} networks, {below} more than {BEHIND} dB below onnxruntime's, {alone} that it cannot quantize"
    return "\n".join([*table(head, lines, frozenset({0, 4})), total])


def networks(folder: Path, zoo: Path | None) -> Iterator[Network]:
    for name in EXAMPLES:
        path = TOP / "examples" / f"{name}.onnx"
        yield Network(name.replace("/", "_"), path, _of_example(path))
    for name in SHAPES:
        path = small_networks.path_of(name, folder)
        yield Network(name, path, _random(load(path)))
    for name in GENERATED:
        path = models.path_of(name, folder)
        yield Network(name, path, _random(load(path)))
    for path in sorted(zoo.glob("*/model.onnx")) if zoo else ():
        graph = load(path)
        if all(value.type.dtype.numpy.kind == "f" for value in graph.inputs) and not _is_quantized(graph):
            yield Network(path.parent.name, path, _of_zoo(path, graph))


def drawn(folder: Path, seed: int, count: int) -> Iterator[Network]:
    for each in islice(drawn_networks.drawn(seed), count):
        path = folder / f"{each.name}.onnx"
        onnx.save(each.model, path)
        yield Network(each.name, path, each.feeds(CALIBRATE + TEST))


def _is_quantized(graph: Graph) -> bool:
    return any(word in node.op.name for node in graph.nodes for word in ("Quantize", "Integer", "QLinear"))


def _of_example(path: Path) -> Sequence[Feed]:
    graph = load(path)
    pictures = path.parent / "pictures.npz"
    if pictures.exists():
        pixels = np.load(pictures)["pixels"].astype(np.float32) / 16
        return [{"image": each.reshape(1, 1, 8, 8)} for each in pixels]
    for name in ("held_out.npz", "samples.npz"):
        if (path.parent / name).exists():
            return read_samples(path.parent / name, graph).feeds
    return _random(graph)


def _random(graph: Graph) -> Sequence[Feed]:
    return [data_set.inputs for data_set in random_sets(graph, 0, CALIBRATE + TEST)]


def _of_zoo(path: Path, graph: Graph) -> Sequence[Feed]:
    """What the folder has, shuffled; where that is a few inputs, mixtures of them."""
    chance = np.random.default_rng(0)
    if (path.parent / "testset.npz").exists():
        array, value = np.load(path.parent / "testset.npz")["x"], graph.inputs[0]
        rows = array[chance.permutation(len(array))[: CALIBRATE + TEST]]
        return [{value.name: row.reshape(value.type.static_shape).astype(np.float32)} for row in rows]
    stored = [each.inputs for each in stored_sets(path.parent, [value.name for value in graph.inputs], graph)]
    shares = chance.dirichlet(np.full(len(stored), 0.5), CALIBRATE + MIXED)
    stacked = {name: np.stack([feed[name] for feed in stored]) for name in stored[0]}
    return [{n: np.tensordot(share, all_of, 1).astype(np.float32) for n, all_of in stacked.items()} for share in shares]


def compared(network: Network, recipe: Recipe) -> Row:
    count = min(CALIBRATE, len(network.feeds) // 2)
    some, test = network.feeds[:count], network.feeds[count:]
    with tempfile.TemporaryDirectory(prefix="mccompile-") as name:
        folder = Path(name)
        made = quantized(load(network.path), Samples(some), recipe, folder, {})
        ours = _quality(network.path, made.file, test)
        theirs = [_of_onnxruntime(network.path, some, test, folder, *way) for way in _WAYS]
    return Row(network.name, max(theirs), ours, len(made.left))


def _quality(plain: Path, file: Path, test: Sequence[Feed]) -> float:
    """The mean of all outputs of floats."""
    made = [pairs for pairs in outputs(plain, file, test) if pairs[0][0].dtype.kind == "f"]
    return float(np.mean([min(decibels(pairs), _EXACT) for pairs in made]))


class _Reader:
    def __init__(self, feeds: Sequence[Feed]) -> None:
        self.left = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self.left, None)


def _of_onnxruntime(
    path: Path, some: Sequence[Feed], test: Sequence[Feed], folder: Path, method: str, per_channel: bool
) -> float:
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared, result = folder / "prepared.onnx", folder / "theirs.onnx"
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(StringIO()):
            quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
            way = {"per_channel": per_channel, "calibrate_method": quantization.CalibrationMethod[method]}
            quantization.quantize_static(prepared, result, _Reader(some), **way)
        onnx.checker.check_model(str(result))
        return _quality(path, result, test)
    except Exception as error:  # whatever it raises
        print(f"{path}: onnxruntime: {error}"[:160], file=sys.stderr)
        return float("-inf")
    finally:
        logging.disable(logging.NOTSET)


if __name__ == "__main__":
    sys.exit(main())
