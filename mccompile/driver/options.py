"""What can be asked for besides the model: one flat list, as users write it, and what each concern reads of it.

Invariant: closed choices are members of their enums, however they were written; contradictions are refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..base.choice import check_known, chosen
from ..base.errors import Problem, WrongUse
from ..base.own_functions import OwnFunction
from ..base.streaming import Stream
from ..base.strips import Strips
from ..emit.blob import Carrier, Delivery
from ..emit.module import refuse_with
from ..emit.wrappers.registry import check_wrappers
from ..importers.api import Reading
from ..importers.joining import Prepended
from ..memory.planners import PLANNERS
from ..passes.api import BlockActivations, Memory, WeightsDtype
from ..passes.io.io_forms import InputForm, OutputForm
from ..passes.io.turn_io import IoLayout
from ..passes.planning.inside import Looks
from ..quantize.quantize import Recipe
from ..targets import api as target_api
from ..targets.api import Pool, Prefer, Target, is_file
from ..targets.boards.catalogue import find, larger, shown

MOST_RECOMPUTED = 16
PLAIN_TARGET = "generic"


class RowByRow(StrEnum):
    """Do chains of calls run row by row?"""

    AUTO = "auto"  # where that saves memory
    OFF = "off"


@dataclass(frozen=True)
class Options:
    """Everything that can be asked for besides the model. Choices may be given as strings."""

    target: str = PLAIN_TARGET  # a name, or the path of a TOML file
    board: str = ""  # its target, and the most that a model may take of its memories, where nothing else is asked for
    prefer: Prefer | None = None  # "ram", "time", "flash" or "balanced"; none: what the target prefers
    name: str = ""  # of the model, and prefix of all C names; empty: from the file's name
    # free dimensions by name: lowest and highest size
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | str | tuple[int, ...], ...]] = field(default_factory=dict)  # of inputs by name
    bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of sizes that follow from data
    signature: str = ""  # of a TFLite file with several; empty: that of its first subgraph
    prepend: tuple[Prepended, ...] = ()  # models in front of it
    trust: bool = False  # what a file holds that would be executed by loading it may be
    optimize: bool = True
    without: frozenset[str] = frozenset()  # optional passes, and kernels, to leave out
    planner: str = ""  # one that suits
    rows: RowByRow = RowByRow.AUTO  # "off": calls never run row by row
    recompute: float = 1.0  # up to so many times the multiply-accumulates for a smaller arena
    strips: tuple[Strips, ...] = ()  # of columns, one after the other. What `recompute` leads to
    # the most bytes of "ram" (arena), "weights", "flash" (these and the code), "stack", and "instructions" of a run
    budget: Mapping[str, int] = field(default_factory=dict)
    enough: int = 0  # bytes of the arena: less is no better. What a budget leads to
    mem: tuple[Pool, ...] = ()  # memories for tensors; empty: what the target says
    weights_section: str = ""  # of the linker, for the weights; empty: where constants go
    winograd: int | None = None  # 0, 2 or 4: largest tile of Winograd's convolution; None: what the target says
    threads: int = 1  # workers that may share a step
    # "f16" or "bf16": how weights of convolutions and matrix products are stored
    weights_dtype: WeightsDtype = WeightsDtype.OWN
    # "model", "float" or "int8": do products with weights of few bits round the other operand to int8?
    block_activations: BlockActivations = BlockActivations.MODEL
    # how far rounding errors of products in f32 may move an output, of its largest element, as estimated from weights;
    # None: by 3e-5, where that is worth its time
    float_error: float | None = None
    updatable: bool = False  # integers: the code suits scales and zero points of networks that are trained anew
    keep_inputs: bool = False
    slices: bool = False  # a run can also be made a few steps at a time
    profile: bool = False  # runs count how long each step takes
    dump_values: bool = False  # runs hand out what each step makes
    single_file: bool = False  # one C file and one header
    module: bool = False  # code and weights become one file that a program loads
    wrappers: tuple[str, ...] = ()  # other languages that the model is for, each with a file
    blob: Carrier = Carrier.ARRAY  # how programs get the weights: "array", "incbin" or "external"
    io_layout: IoLayout = IoLayout.ONNX  # "nhwc": pictures among inputs and outputs are channels-last
    external: tuple[str, ...] = ()  # inputs and outputs outside the arena, told by pointer; ALL: every one
    state: Mapping[str, str] = field(default_factory=dict)  # outputs that become inputs of the next run
    stream: Stream = field(default_factory=Stream)  # axes of time: a run takes the newest frames
    inputs: Mapping[str, InputForm] = field(default_factory=dict)  # what programs hand over, where not the model's own
    outputs: Mapping[str, OutputForm] = field(default_factory=dict)
    observe: tuple[str, ...] = ()  # inner tensors to be made outputs
    kernels: tuple[Path, ...] = ()  # folders with kernels of the user's own
    functions: tuple[OwnFunction, ...] = ()  # C functions of the user's own in the place of operators
    # measurements of kernels, which count more than what their models say; "default": those that come with mccompile
    tuned: Path | None = None
    quantize: Path | None = None  # samples to find ranges with: the model is quantized first
    recipe: Recipe = field(default_factory=Recipe)  # how
    print_after: frozenset[str] = frozenset()
    dump: Path | None = None

    def __post_init__(self) -> None:
        read = {
            "prefer": Prefer.written(self.prefer) if self.prefer else None,
            "io_layout": chosen(IoLayout, self.io_layout, "there is no layout {!r}", "--io-layout"),
            "blob": chosen(Carrier, self.blob, "the blob cannot be {!r}", "--blob"),
            "rows": chosen(RowByRow, self.rows, "rows cannot be {!r}", "--rows"),
            "weights_dtype": chosen(
                WeightsDtype, self.weights_dtype, "weights cannot be stored as {!r}", "--weights-dtype"
            ),
            "block_activations": chosen(
                BlockActivations, self.block_activations, "block activations cannot be {!r}", "--block-activations"
            ),
        }
        for name, value in (read | self._of_board()).items():
            object.__setattr__(self, name, value)
        check_known(self.planner, ("", *PLANNERS), "there is no planner {!r}", "--planner")
        self.delivery.check()
        check_wrappers(self.wrappers)
        refuse_with(vars(self))
        if self.threads < 1:
            fix = "did you mean --threads 1?"
            raise WrongUse(Problem(f"there cannot be {self.threads} threads", "--threads", "one is the least", fix))
        if self.float_error is not None and not 0 < self.float_error <= 1:
            what = f"--float-error {self.float_error:g} is not above 0 and at most 1"
            why = "it is a part of the largest element of an output"
            raise WrongUse(Problem(what, "--float-error", why, "give a fraction, such as --float-error 1e-6"))
        if not 1 <= self.recompute <= MOST_RECOMPUTED:
            what = f"--recompute {self.recompute:g} is not from 1 to {MOST_RECOMPUTED}"
            why = "it says up to how many times the multiply-accumulates may be computed"
            raise WrongUse(Problem(what, "--recompute", why, "for a third more: --recompute 1.3"))
        if self.recompute > 1 and self.dump_values:
            why = "tensors inside of strips never exist whole"
            raise WrongUse(Problem("--recompute does not go with --dump-values", "--recompute", why, "leave one out"))

    def _of_board(self) -> dict[str, Any]:
        """What a board sets. A target file may say more of its core; another core is refused."""
        if not self.board:
            return {}
        board = find(self.board)
        own = self.target in (PLAIN_TARGET, board.core.target)
        if not own and not is_file(self.target):
            what = f"--board {self.board} does not go with --target {self.target}"
            why = f"{board.name} has a {board.core.name}, for which code is written by target {board.core.target}"
            raise WrongUse(Problem(what, "--board", why, "leave out --target"))
        return {"target": board.core.target if own else self.target, "budget": {**board.budget, **self.budget}}

    def other_boards(self, needs: Mapping[str, int]) -> str:
        """Where a model fits that does not fit the board."""
        found = larger(find(self.board), needs)
        if not found:
            return "make the model smaller: no board of the catalogue has as much"
        return "it fits " + ", ".join(f"--board {board.key} ({shown(board.ram)} of RAM)" for board in found[:3])

    def resolved_target(self) -> Target:
        target = target_api.load(self.target)
        if self.winograd is not None:
            target = replace(target, options=tuple(sorted({**dict(target.options), "winograd": self.winograd}.items())))
        prefer = self.prefer or target.prefer
        return replace(target, prefer=Prefer.RAM if prefer == Prefer.BALANCED else prefer)

    @property
    def reading(self) -> Reading:
        """How the file is read."""
        return Reading(self.signature, self.trust, self.prepend, self.functions, self.dims, self.shapes)

    @property
    def delivery(self) -> Delivery:
        """How programs get the weights."""
        return Delivery(self.blob, self.weights_section)

    @property
    def looks(self) -> Looks:
        """What a run shows of its steps."""
        return Looks(self.profile, self.dump_values)

    def memory(self, target: Target) -> Memory:
        """What may be done with tensors in memory, on a resolved target."""
        blocks = self.rows == RowByRow.AUTO and "fuse_line_buffers" not in self.without
        rows = blocks and target.prefer == Prefer.RAM
        balanced = (self.prefer or target_api.load(self.target).prefer) == Prefer.BALANCED
        fetched = tuple(name for name, form in self.inputs.items() if form.rows)
        recompute = self.recompute if rows and not self.strips else 1.0
        return Memory(
            keep_inputs=self.keep_inputs,
            external=self.external,
            fetched=fetched,
            rows=rows,
            blocks=blocks,
            enough=self.enough,
            strips=self.strips,
            recompute=recompute,
            balanced=balanced,
        )


PLAIN = Options()
