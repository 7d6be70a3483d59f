"""Which options a subject is compiled with: per field of `Options` one function that draws it, or the reason why none
does. A new option is a line in one of the two tables; a test holds them against the dataclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto

from mccompile.base.own_functions import OwnFunction
from mccompile.base.streaming import Stream
from mccompile.driver import Options
from mccompile.kernels.measurements import DEFAULT
from mccompile.memory.planners import PLANNERS
from mccompile.passes.api import ALL
from mccompile.passes.io.call_functions import OURS
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from mccompile.targets.api import Pool
from mccompile.targets.boards import catalogue

from . import costs, forms
from .machines import VECTORS, Machine
from .subject import Subject

Chance = np.random.Generator
Draw = Callable[[Chance, Subject, Machine], Any]
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
SKIPPABLE = sorted(step.name for step in (*GRAPH_PASSES, *PROGRAM_PASSES) if step.optional)


def _sometimes(share: float, *values: Any) -> Draw:
    """The default of the field, or at times one of these."""

    def draw(chance: Chance, subject: Subject, machine: Machine) -> Any:
        return values[int(chance.integers(0, len(values)))] if chance.random() < share else None

    return draw


def _without(chance: Chance, subject: Subject, machine: Machine) -> Any:
    if chance.random() > 0.1:
        return None
    return frozenset(str(name) for name in chance.choice(SKIPPABLE, int(chance.integers(1, 4))))


def _names(chance: Chance, names: list[str]) -> tuple[str, ...]:
    return tuple(name for name in names if chance.random() < 0.5)


def _external(chance: Chance, subject: Subject, machine: Machine) -> Any:
    names = [made.name for made in subject.inputs] + [output.name for output in subject.model.graph.output]
    if subject.state or chance.random() > 0.12:
        return None
    return (ALL,) if chance.random() < 0.5 else _names(chance, names)


def _observe(chance: Chance, subject: Subject, machine: Machine) -> Any:
    nodes = subject.model.graph.node
    if chance.random() > 0.06 or not nodes:
        return None
    node = nodes[int(chance.integers(0, len(nodes)))]
    outputs = {output.name for output in subject.model.graph.output}
    return (node.output[0],) if node.output[0] not in outputs else None


def _weights_dtype(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """Only where what is not exact is a float: nothing says how far integers may be off then, nor tokens that a body
    finds by weights of its own."""
    graph = subject.model.graph
    inexact = [o.type.tensor_type.elem_type for o in graph.output if o.name not in subject.exact]
    bodies = [entry.g for node in graph.node for entry in node.attribute]
    if not _has_floats(graph) or chance.random() >= 0.08 or any(dtype not in FLOATS for dtype in inexact):
        return None
    if any(map(_has_floats, bodies)):
        return None
    return str(chance.choice(["f16", "bf16"]))


def _block_activations(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """Rounded only where all outputs are floats: nothing says how far others may be off then."""
    graph = subject.model.graph
    if subject.source == "qdq" or any(o.type.tensor_type.elem_type not in FLOATS for o in graph.output):
        return "float"
    return str(chance.choice(["model", "float", "int8"]))


def _has_floats(graph: GraphProto) -> bool:
    return any(tensor.data_type == TensorProto.FLOAT for tensor in graph.initializer)


def _mem(chance: Chance, subject: Subject, machine: Machine) -> Any:
    if chance.random() > 0.1:
        return None
    room = int(chance.choice([64, 512, 4096]))
    return (Pool("dtcm", room, 0), Pool("sram", 1 << 20, 1))


def _stream(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """Any axis may be time. Most networks do not move along most axes, and are refused."""
    axes = [(made.name, axis, size) for made in subject.inputs for axis, size in enumerate(made.dims) if _is_long(size)]
    if subject.state or not axes or chance.random() > 0.06:
        return None
    name, axis, size = axes[int(chance.integers(0, len(axes)))]
    return Stream({name: axis}, int(chance.choice([1, 1, 2, min(4, size)])))


def _is_long(size: Any) -> bool:
    return isinstance(size, int) and size > 2


def _threads(chance: Chance, subject: Subject, machine: Machine) -> Any:
    return int(chance.integers(2, 4)) if chance.random() < 0.12 else None


def dims(subject: Subject) -> dict[str, tuple[int, int]]:
    return {name: (among[0], among[-1]) for name, among in subject.free.items()}


def _functions(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """A function that copies, where something is copied."""
    if "Identity" not in subject.operators or chance.random() > 0.4:
        return None
    nhwc, strided = (bool(chance.random() < 0.5) for _ in range(2))
    room, align = int(chance.choice([0, 5, 64])), int(chance.choice([1, 4, 32]))
    return (OwnFunction("Identity", "mcc_external_copy", OURS, "", (), room, align, nhwc, strided),)


def _tuned(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """The seed of random measurements, which a trial writes to a file before it compiles, or those that come along."""
    if chance.random() < 0.03:
        return Path(DEFAULT)
    return Path(f"{int(chance.integers(0, 1000))}{costs.DRAWN}") if chance.random() < 0.12 else None


def _recompute(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """Where RAM comes first something runs row by row."""
    return float(chance.choice([1.1, 1.5, 4.0])) if chance.random() < 0.15 else 1.0


def _board(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """The one of the target that has most."""
    found = [board for board in catalogue.boards().values() if board.core.target == machine.target]
    return max(found, key=lambda board: board.ram).key if found and chance.random() < 0.05 else None


CHOICES: Mapping[str, Draw] = {
    "target": lambda chance, subject, machine: machine.target,
    "board": _board,
    "prefer": _sometimes(0.6, "ram", "time", "flash", "balanced"),
    "enough": _sometimes(0.1, 256, 2048, 1 << 14),
    "dims": lambda chance, subject, machine: dims(subject),
    "bounds": lambda chance, subject, machine: dict(subject.bounds),
    "state": lambda chance, subject, machine: dict(subject.state),
    "stream": _stream,
    "optimize": _sometimes(0.2, False),
    "without": _without,
    "planner": _sometimes(0.3, *sorted(PLANNERS)),
    "rows": _sometimes(0.2, "off"),
    "recompute": _recompute,
    "budget": _sometimes(0.05, {"ram": 1 << 24, "flash": 1 << 24, "weights": 1 << 24}),
    "mem": _mem,
    "weights_section": _sometimes(0.05, ".fuzzed"),
    "winograd": _sometimes(0.15, 0, 2, 4),
    "float_error": _sometimes(0.2, 1e-9, 1e-5, 1.0),
    "threads": _threads,
    "weights_dtype": _weights_dtype,
    "block_activations": _block_activations,
    "keep_inputs": _sometimes(0.12, True),
    "slices": _sometimes(0.1, True),
    "profile": _sometimes(0.06, True),
    "dump_values": _sometimes(0.06, True),
    "single_file": _sometimes(0.12, True),
    "wrappers": _sometimes(0.03, ("cpp",)),
    "blob": _sometimes(0.15, "incbin", "external"),
    "io_layout": _sometimes(0.06, "nhwc"),
    "external": _external,
    "inputs": forms.inputs,
    "outputs": forms.outputs,
    "observe": _observe,
    "functions": _functions,
    "tuned": _tuned,
    "updatable": _sometimes(0.15, True),
}
EXEMPT: Mapping[str, str] = {
    "module": "a way in which programs are built (ways.py)",
    "name": "each program of a batch needs another one; tests/test_cli.py gives awkward ones",
    "shapes": "graphs come with their shapes; tests/ops/test_free_sizes.py gives others",
    "signature": "only files of TFLite have several; tests/importers/tflite does that",
    "strips": "what recompute leads to",
    "prepend": "a second model, joined before anything is compiled; tests/importers/test_joining.py does that",
    "trust": "only files of other tools are loaded by executing them; tests/importers does that",
    "kernels": "kernels of the user's own are what the user writes",
    "quantize": "changes what is computed; tests/quantize compares that with the float network",
    "recipe": "goes with quantize",
    "print_after": "prints",
    "dump": "writes drawings",
}


def draw(chance: Chance, subject: Subject, machine: Machine) -> Options:
    found: dict[str, Any] = {}
    for field in fields(Options):
        if field.name in CHOICES:
            value = CHOICES[field.name](chance, subject, machine)
            if value is not None:
                found[field.name] = value
    if found.get("blob") == "incbin" and found.get("single_file"):
        found["blob"] = "array"
    if found.get("dump_values") or found.get("rows") == "off":
        found["recompute"] = 1.0
    if found.get("blob") == "external":
        found.pop("weights_section", None)
    return Options(**found)


def shown(options: Options) -> str:
    """As Python, without what is as it always is."""
    given = {f.name: getattr(options, f.name) for f in fields(Options)}
    changed = {name: value for name, value in given.items() if value != getattr(Options(), name)}
    return f"Options({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def is_vector(options: Options) -> bool:
    return options.target in VECTORS
