"""Which options a subject is compiled with: the values that the table of options (mccompile/option_table.py) names, or
those of a function here, where they depend on the subject. A test holds both against the dataclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto

from mccompile import option_table
from mccompile.base.own_functions import OwnFunction
from mccompile.base.streaming import Stream
from mccompile.driver import Options
from mccompile.kernels.measurements import DEFAULT
from mccompile.memory.planners import PLANNERS
from mccompile.option_table import OptionTable
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
OFTEN = 200  # times that an option which is asked for is drawn
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
    """Where pictures have many rows, some of these may come while others are computed with."""
    if chance.random() > (0.6 if subject.tall else 0.2):
        return None
    if chance.random() < (0.9 if subject.tall else 0.5):  # rooms.py says how much the near one holds
        latency = int(chance.choice([0, 0, 100, 2000]))
        return (Pool("dtcm", None, 0), Pool("sram", 1 << 20, 1, copied=True, rate=80, latency_ns=latency))
    return (Pool("dtcm", int(chance.choice([64, 512, 4096])), 0), Pool("sram", 1 << 20, 1))


def _stream(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """Any axis may be time. Most networks do not move along most axes, and are refused; some are made for it."""
    if subject.time is not None:
        hop = int(chance.integers(1, 6))
        return Stream({subject.inputs[0].name: subject.time}, hop) if chance.random() < 0.9 else None
    axes = [(made.name, axis, size) for made in subject.inputs for axis, size in enumerate(made.dims) if _is_long(size)]
    if subject.state or not axes or chance.random() > 0.06:
        return None
    name, axis, size = axes[int(chance.integers(0, len(axes)))]
    return Stream({name: axis}, int(chance.choice([1, 1, 2, min(4, size)])))


def _is_long(size: Any) -> bool:
    return isinstance(size, int) and size > 2


def dims(subject: Subject) -> dict[str, tuple[int, int]]:
    return {name: (among[0], among[-1]) for name, among in subject.free.items()}


def _functions(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """A function that copies, where something is copied."""
    if "Identity" not in subject.operators or chance.random() > 0.4:
        return None
    nhwc, strided = (bool(chance.random() < 0.5) for _ in range(2))
    room, align = int(chance.choice([0, 5, 64])), int(chance.choice([1, 4, 32]))
    return (OwnFunction("Identity", "mcc_external_copy", OURS, "", (), room, align, nhwc, strided),)


def _accelerator(chance: Chance, subject: Subject, machine: Machine) -> Any:
    return str(Path(__file__).with_name("accelerator")) if chance.random() < 0.08 else None


def _tuned(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """The seed of random measurements, which a trial writes to a file before it compiles, or those that come along."""
    if chance.random() < 0.03:
        return Path(DEFAULT)
    return Path(f"{int(chance.integers(0, 1000))}{costs.DRAWN}") if chance.random() < 0.12 else None


def _board(chance: Chance, subject: Subject, machine: Machine) -> Any:
    """The one of the target that has most."""
    found = [board for board in catalogue.boards().values() if board.core.target == machine.target]
    return max(found, key=lambda board: board.ram).key if found and chance.random() < 0.05 else None


# Those of which the table of options does not say enough: what suits depends on the subject or on the machine.
BY_SUBJECT: Mapping[str, Draw] = {
    "target": lambda chance, subject, machine: machine.target,
    "board": _board,
    "dims": lambda chance, subject, machine: dims(subject),
    "bounds": lambda chance, subject, machine: dict(subject.bounds),
    "state": lambda chance, subject, machine: dict(subject.state),
    "stream": _stream,
    "without": _without,
    "planner": _sometimes(0.3, *sorted(PLANNERS)),
    "mem": _mem,
    "weights_dtype": _weights_dtype,
    "block_activations": _block_activations,
    "external": _external,
    "inputs": forms.inputs,
    "outputs": forms.outputs,
    "observe": _observe,
    "functions": _functions,
    "accelerator": _accelerator,
    "tuned": _tuned,
}


def choices(table: type[OptionTable] = Options) -> dict[str, Draw]:
    """How each option is drawn that has values to draw."""
    of_table = {
        option.name: _sometimes(option.entry.share, *values)
        for option in option_table.options(table)
        if (values := option.entry.drawn(option.default))
    }
    return {**of_table, **BY_SUBJECT}


def draw(chance: Chance, subject: Subject, machine: Machine, asked: frozenset[str] = frozenset()) -> Options:
    """`asked`: one of these options is given, where the subject has any use for it."""
    found: dict[str, Any] = {}
    sure = str(chance.choice(sorted(asked))) if asked else ""
    for name, drawn in choices().items():
        values = (drawn(chance, subject, machine) for _ in range(OFTEN if name == sure else 1))
        value = next((value for value in values if value is not None), None)
        if value is not None:
            found[name] = value
    if found.get("blob") == "incbin" and found.get("single_file"):
        found["blob"] = "array"
    if found.get("dump_values") or found.get("rows") == "off":
        found.pop("recompute", None)
    if found.get("slices") or found.get("max_slice"):
        found.pop("advance", None)
    if found.get("threads"):
        found.pop("max_slice", None)
    if any(pool.copied for pool in found.get("mem", ())):
        found.pop("mem" if sure == "weights_window" else "weights_window", None)
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
