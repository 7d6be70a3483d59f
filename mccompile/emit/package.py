"""A compiled model as files, which are printed when they are first asked for: plans are searched for by their sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.quality import Quality
from ..base.records import dataclass, replace
from ..base.structures import Interface
from ..passes.api import Cut, Explanation, Record, SkippedPass, TilesCost, TriedPlan
from ..passes.planning.estimate import NOT_ESTIMATED, Estimate
from ..passes.planning.moves_left import Move
from ..passes.witness import Witness
from ..plan.ir import Plan
from . import blob as blob_format
from .blob import Carrier, Delivery
from .files import Files
from .folder import write_folder as write_folder
from .output import Output, Printer, own_headers, weights_align
from .render import Source
from .report import report

ARRAY = Delivery()


@dataclass(frozen=True)
class Package:
    """A compiled model: its plan, and what is printed of it."""

    plan: Plan
    output: Callable[[], Output]
    explanations: Sequence[Explanation] = ()  # of the choice of kernels
    assumed: Sequence[str] = ()  # what the model does not say
    left_out: Sequence[SkippedPass] = ()  # passes that failed
    estimate: Estimate = NOT_ESTIMATED
    cuts: Sequence[Cut] = ()  # where tiles of columns may begin and end
    column_tiles: Sequence[TilesCost] = ()  # what they are expected to take
    smallest: Sequence[TriedPlan] = ()  # the smallest arena among plans that were tried, where several were
    witness: Witness | None = None  # of how it was made
    quality: Quality | None = None  # of integers that compiling made of floats
    about: Sequence[str] = ()  # what has to be said of inputs and outputs that are not only tensors
    # the model's own files for the blob of that name and identity, where its steps are those of that plan
    own_files: Callable[[str, bytes, Plan], Mapping[str, Source]] = lambda prefix, identity, plan: {}

    @property
    def files(self) -> Files:
        return self.output().files

    @property
    def identity(self) -> bytes:
        return self.output().identity

    @property
    def includes(self) -> Mapping[str, Sequence[str]]:
        return self.output().includes

    def printed_as(self, output: Callable[[], Output]) -> Package:
        return replace(self, output=cache(output))

    def with_files(self, files: Mapping[str, bytes]) -> Package:
        """The same code with other ones."""
        return self.printed_as(lambda: replace(self.output(), files=Files.of(files)))

    @property
    def macs(self) -> int:
        return sum(step.macs for step in self.plan.steps())

    @property
    def weights_bytes(self) -> int:
        """How long the blob is."""
        return blob_format.blob_bytes(self.plan)

    @property
    def weights_align(self) -> int:
        return weights_align(self.plan)

    def write(self, folder: str | Path, force: bool = False) -> None:
        write_folder(Path(folder), self.files, force)

    def __reduce__(self) -> tuple[Any, ...]:
        why = "its files are made when they are asked for, by kernels that are not modules of Python's"
        fix = "hand over .files and .report, the folder that .write gives, .ok and .runs of a check, or the model"
        raise WrongUse(Problem("a compiled model cannot be pickled", self.plan.name, why, fix))

    def write_ticking(self, folder: Path) -> None:
        """Once the files are there: the steps anew, each of which tells the program when it ends."""
        name = f"{self.plan.prefix}.c"
        source = self.own_files(self.plan.prefix, self.identity, self.plan.with_ticks)[name]
        Path(folder, name).write_text(source.text, encoding="utf-8")


def package(
    plan: Plan,
    passes: Sequence[Record],
    moves: Sequence[Move],
    version: str,
    left_in_float: Mapping[str, str] | None = None,
    delivery: Delivery = ARRAY,
    interface: Interface | None = None,
    options: Mapping[str, object] | None = None,
    assumed: Sequence[str] = (),
    wrappers: Sequence[str] = (),
    tuned: Sequence[Explanation] | None = None,
    left_out: Sequence[SkippedPass] = (),
    learning: Mapping[str, object] | None = None,
) -> Package:
    """`left_in_float`: nodes between quantized tensors that are computed in floats, and why.
    `interface`: where inputs or outputs are not only tensors. `options`: what was asked for, for the report. `assumed`:
    what the model does not say. `wrappers`: other languages that it is for. `tuned`: how kernels were
    chosen, where measurements were given. `left_out`: passes that failed. `learning`: how it learns, for the report."""
    about = interface.lines() if interface else []
    about_code: dict[str, object] = {"options": options or {}}
    if learning:
        about_code["learning"] = learning
    if assumed:
        about_code["assumed"] = [*assumed]
    if left_out:
        about_code["left_out"] = [each.as_dict() for each in left_out]
    if tuned is not None:
        about_code["tuned"] = [" + ".join(each.provenance) for each in tuned if each.by_measurement]
    if delivery.carrier == Carrier.INCBIN:
        blob_format.refuse_incbin(plan.build)
    told, floats = tuple(passes), {**(left_in_float or {})}

    def what(identity: bytes) -> dict[str, Any]:
        code = {"identity": identity.hex(), **about_code}
        return report(plan, blob_format.blob_bytes(plan), told, moves, version, floats, interface, code)

    printer = Printer(plan, delivery, interface, about, wrappers, own_headers(plan), what)
    made = Package(plan, cache(printer.print), assumed=assumed, about=about, own_files=printer.own_files)
    if wrappers:
        made.output()  # one of them may refuse the model
    return made
