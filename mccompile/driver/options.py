"""What the options of option_table.py mean: which go together, and what each concern reads of them.

Invariant: closed choices are members of their enums, however they were written; contradictions are refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from ..base.choice import check_known, chosen
from ..base.column_tiles import ColumnTiles  # noqa: F401
from ..base.errors import Problem, WrongUse
from ..base.own_functions import OwnFunction  # noqa: F401 - types of the table, which are looked up here
from ..base.quantizing import Recipe  # noqa: F401
from ..base.records import dataclass
from ..emit.blob import Carrier, Delivery
from ..emit.module import refuse_with
from ..emit.wrappers.registry import check_wrappers
from ..importers.api import Reading
from ..importers.joining import Prepended  # noqa: F401
from ..memory.planners import PLANNERS
from ..option_table import OptionTable
from ..passes.api import BlockActivations, CacheDtype, Memory, WeightsDtype
from ..passes.io.io_forms import InputForm, OutputForm  # noqa: F401
from ..passes.io.turn_io import IoLayout
from ..passes.planning.inside import Looks
from ..targets import api as target_api
from ..targets.api import LEAST, WORTH, Pool, Prefer, Target, is_file  # noqa: F401
from ..targets.boards.catalogue import find, larger, shown
from .given import refuse_misread
from .memories import two_memories, with_fast

MOST_RECOMPUTED = 16
PLAIN_TARGET = "generic"


class RowByRow(StrEnum):
    """Do chains of calls run row by row?"""

    AUTO = "auto"  # where that saves memory
    OFF = "off"


@dataclass(frozen=True)
class Options(OptionTable):
    """Everything that can be asked for besides the model. Choices may be given as strings."""

    def __new__(cls, *given: Any, **named: Any) -> Options:
        refuse_misread(Options, given, named)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        read = {
            "prefer": Prefer.written(self.prefer) if self.prefer else None,
            "io_layout": chosen(IoLayout, self.io_layout, "there is no layout {!r}", "--io-layout"),
            "blob": chosen(Carrier, self.blob, "the blob cannot be {!r}", "--blob"),
            "rows": chosen(RowByRow, self.rows, "rows cannot be {!r}", "--rows"),
            "weights_dtype": chosen(
                WeightsDtype, self.weights_dtype, "weights cannot be stored as {!r}", "--weights-dtype"
            ),
            "cache_dtype": chosen(CacheDtype, self.cache_dtype, "caches cannot be stored as {!r}", "--cache-dtype"),
            "block_activations": chosen(
                BlockActivations, self.block_activations, "block activations cannot be {!r}", "--block-activations"
            ),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        for given in (self._least, self._of_board, self._in_slices, self._fast):
            for name, value in given().items():
                object.__setattr__(self, name, value)
        check_known(self.planner, ("", *PLANNERS), "there is no planner {!r}", "--planner")
        self.delivery.check()
        check_wrappers(self.wrappers)
        refuse_with(vars(self))
        if self.advance and (self.slices or self.max_slice):
            why = "each slice of a run is computed, whatever is read of it"
            raise WrongUse(Problem("--advance does not go with --slices", "--advance", why, "leave one out"))
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
            why = "tensors inside of tiles never exist whole"
            raise WrongUse(Problem("--recompute does not go with --dump-values", "--recompute", why, "leave one out"))

    def _least(self) -> dict[str, Any]:
        """What `--budget ram=min` asks for."""
        if self.budget.get("ram") != LEAST:
            return {}
        if self.prefer not in (None, Prefer.RAM):
            what = f"--budget ram=min does not go with --prefer {self.prefer}"
            why = "it asks for the smallest arena, whatever time that takes"
            raise WrongUse(Problem(what, "--budget", why, "leave out --prefer"))
        budget = {what: most for what, most in self.budget.items() if what != "ram"}
        return {"prefer": Prefer.RAM, "enough": 1, "budget": budget}

    def _in_slices(self) -> dict[str, Any]:
        """What `--max-slice` asks for."""
        if not self.max_slice:
            return {}
        if self.threads > 1:
            why = "steps that workers share are slices, which end when all workers have done"
            raise WrongUse(Problem("--max-slice does not go with --threads", "--max-slice", why, "leave one out"))
        return {"slices": True}

    def _fast(self) -> dict[str, Any]:
        """What `--budget fast=16K` asks for."""
        if "fast" not in self.budget:
            return {}
        pools = self.mem or (target_api.load(self.target).separate_pools if "," not in self.target else ())
        budget = {what: most for what, most in self.budget.items() if what != "fast"}
        return {"mem": with_fast(pools, self.budget["fast"]), "budget": budget}

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
        target = replace(target, mhz=find(self.board).mhz if self.board else target.mhz)
        return replace(target, prefer=Prefer.RAM if prefer == Prefer.BALANCED else prefer)

    @property
    def reading(self) -> Reading:
        """How the file is read."""
        told = bool(self.state)
        sizes = self.dims, self.shapes
        return Reading(self.signature, self.trust, self.prepend, self.functions, *sizes, told, self.seeded)

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
        prefer = self.prefer or target_api.load(self.target).prefer
        asked = self.enough or self.recompute > 1 or self.column_tiles  # so much memory, or time, whatever that costs
        fetched = tuple(name for name, form in self.inputs.items() if form.rows)
        copied, near, far, latency = two_memories(self.mem or target.separate_pools, self.weights_window)
        rows = rows or (blocks and copied)
        most = MOST_RECOMPUTED if copied and self.recompute == 1 else self.recompute
        recompute = most if rows and not self.column_tiles else 1.0
        return Memory(
            keep_inputs=self.keep_inputs,
            external=self.external,
            fetched=fetched,
            rows=rows,
            blocks=blocks,
            enough=self.enough,
            column_tiles=self.column_tiles,
            recompute=recompute,
            worth=0 if asked else WORTH.get(prefer, 0),
            copied=copied,
            near=near,
            far=far,
            latency=latency,
            early=not self.slices,  # a run may be given up between two
            window=self.weights_window,
        )


PLAIN = Options()
