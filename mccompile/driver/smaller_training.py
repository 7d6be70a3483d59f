"""What takes less memory to learn than is asked for: steps at once, micro-batches, another optimizer, fewer layers.

Invariant: each is said in words that `mccompile train` takes behind those it was given.
"""

from __future__ import annotations

from pathlib import Path

from ..fitting import Changes
from ..frontend.load import read_proto
from ..passes.learn.batch_norm import BatchNorm
from ..passes.learn.losses import loss_output
from ..passes.learn.optimizers import Sgd
from ..passes.learn.phase_graphs import Learning
from ..passes.learn.weights import fewer
from .compiling import read
from .options import Options

SmallerTraining = tuple[str, Changes]  # in words, and as changes of options and of what is asked


def smaller_training(model: Path, asked: Learning, options: Options) -> list[SmallerTraining]:
    """Those that change least of what is learned first."""
    found: list[SmallerTraining] = []
    if not asked.at_once and asked.clip is None and asked.accumulate == 1:
        found.append(("--at-once", {"at_once": True, "accumulate": 1}))
    found += _micro_batches(model, asked, options)
    if asked.optimizer.statistics:
        found.append(("--optimizer sgd", {"optimizer": Sgd(lr=asked.optimizer.lr)}))
    graph, trains = read(model, options), asked.batch_norm == BatchNorm.TRAIN
    texts = fewer(graph, asked.learn, loss_output(graph, asked.loss), trains)
    return [*found, *((f"--learn {text}", {"learn": text}) for text in texts)]


def _micro_batches(model: Path, asked: Learning, options: Options) -> list[SmallerTraining]:
    """A batch sample by sample, where the command says how many it has: the mean of their gradients is the same."""
    if asked.at_once or asked.batch_norm == BatchNorm.TRAIN:
        return []
    batches = {name: most for name, (least, most) in options.dims.items() if least == most > 1}
    shapes = [[dim.dim_param for dim in entry.type.tensor_type.shape.dim] for entry in read_proto(model).graph.input]
    found: list[SmallerTraining] = []
    for name, count in batches.items():
        if all(name in shape[:1] and name not in shape[1:] for shape in shapes):
            every = count * asked.accumulate
            changes = {"dims": {**options.dims, name: (1, 1)}, "accumulate": every, "at_once": False}
            found.append((f"--dim {name}=1 --accumulate {every}", changes))
    return found
