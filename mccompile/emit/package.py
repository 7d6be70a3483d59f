"""A compiled model as files: what the emitters print, the blob, and the headers of the runtime that these
need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.quality import Quality
from ..base.records import dataclass
from ..base.structures import Interface
from ..passes.api import Cut, Explanation, Record, SkippedPass, TilesCost, TriedPlan
from ..passes.planning.estimate import NOT_ESTIMATED, Estimate
from ..passes.planning.moves_left import Move
from ..passes.witness import Witness
from ..plan.ir import Plan
from ..plan.row_calls import pieces
from . import blob as blob_format
from .blob import Carrier, Delivery
from .files import Files
from .folder import with_report
from .folder import write_folder as write_folder
from .interface import lasting, seen
from .kernel_files import kernel_files
from .model import files_of, identity_c, model_context, model_files, source_of
from .render import Source
from .report import report
from .runtime import READERS, WORKERS, include_line, included_in, runtime_headers

ARRAY = Delivery()


@dataclass(frozen=True)
class Package:
    """A compiled model: its plan and its files by their path below the output folder."""

    plan: Plan
    files: Files
    explanations: Sequence[Explanation] = ()  # of the choice of kernels
    identity: bytes = bytes(16)
    assumed: Sequence[str] = ()  # what the model does not say
    left_out: Sequence[SkippedPass] = ()  # passes that failed
    estimate: Estimate = NOT_ESTIMATED
    cuts: Sequence[Cut] = ()  # where tiles of columns may begin and end
    column_tiles: Sequence[TilesCost] = ()  # what they are expected to take
    smallest: Sequence[TriedPlan] = ()  # the smallest arena among plans that were tried, where several were
    witness: Witness | None = None  # of how it was made
    quality: Quality | None = None  # of integers that compiling made of floats
    about: Sequence[str] = ()  # what has to be said of inputs and outputs that are not only tensors
    includes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of generated files: others of the package
    # the model's own files for the blob of that name and identity, where its steps are those of that plan
    own_files: Callable[[str, bytes, Plan], Mapping[str, Source]] = lambda prefix, identity, plan: {}

    @property
    def macs(self) -> int:
        return sum(step.macs for step in self.plan.steps())

    @property
    def weights_bytes(self) -> int:
        """How long the blob is."""
        return blob_format.blob_bytes(self.plan)

    @property
    def weights_align(self) -> int:
        return _weights_align(self.plan)

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


def own_headers(plan: Plan) -> dict[str, str]:
    """The text of each header of the user's own, by name."""
    paths = {name: path for f in plan.functions for name, path in f.kernel.files(f.call).items()}
    for name in {f"{plan.prefix}.h", f"{plan.prefix}_kernels.h"} & paths.keys():
        why = "the model has a header of that name"
        raise WrongUse(Problem(f"{paths[name]} cannot be included", "--external", why, f"--name {plan.prefix}_model"))
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(paths.items())}


def _weights_align(plan: Plan) -> int:
    return max(16, plan.arena_align)


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
    carrier, section = delivery.carrier, delivery.section
    alignment = _weights_align(plan)
    kernels = kernel_files(plan.prefix, plan.build, plan.functions, plan.steps(), pieces(plan))
    nothing = bytes(16)
    weights_bytes = blob_format.blob_bytes(plan)
    about = interface.lines() if interface else []
    told = model_context(plan, nothing, alignment, weights_bytes, carrier, about)
    plain = told
    if plan.profiled or plan.dumped:
        plain = model_context(plan.plain, nothing, alignment, weights_bytes, carrier, about)
    given = own_headers(plan)
    taken = plan.partition.taken if plan.partition else []
    regions = [given[f"{region.name}{end}.h"] for region in taken for end in ("", "_stand_in")]  # which holds weights
    code = "".join([*(s.text for s in [*kernels.values(), source_of(plain)]), *regions])
    identity = blob_format.identity(plan, code, lasting(seen(plan, interface)))
    contents = blob_format.blob(plan, identity, alignment)

    def own_files(prefix: str, identity: bytes, plan: Plan) -> dict[str, Source]:
        return model_files(plan, identity, alignment, weights_bytes, carrier, about, prefix, wrappers)[0]

    own, texts = files_of(told | identity_c(identity), plan, wrappers)
    sources = {**own, **kernels}
    texts |= {name: source.text for name, source in sources.items()}
    offered = (*(WORKERS if plan.parallel else ()), *(READERS if plan.window else ()))
    included = chain(*(source.includes for source in sources.values()), *map(included_in, given.values()))
    texts |= runtime_headers([*offered, *included]) | {f"runtime/{name}": text for name, text in given.items()}
    if carrier == Carrier.INCBIN:
        blob_format.refuse_incbin(plan.build)
        texts[f"{plan.prefix}_weights.c"] = blob_format.incbin_source(plan.prefix, weights_bytes, alignment, section)
    files = Files({name: text.encode() for name, text in texts.items()}) | Files({f"{plan.prefix}.mcb": contents})
    if carrier == Carrier.ARRAY:
        words = partial(blob_format.weights_source, plan.prefix, contents, weights_bytes, alignment, section)
        files |= Files({f"{plan.prefix}_weights.c": words})
    about_code: dict[str, object] = {"identity": identity.hex(), "options": options or {}}
    if learning:
        about_code["learning"] = learning
    if assumed:
        about_code["assumed"] = [*assumed]
    if left_out:
        about_code["left_out"] = [each.as_dict() for each in left_out]
    if tuned is not None:
        about_code["tuned"] = [" + ".join(each.provenance) for each in tuned if each.by_measurement]
    what = report(plan, weights_bytes, passes, moves, version, left_in_float or {}, interface, about_code)
    files = with_report(files, what)
    includes = {name: sorted(source.includes) for name, source in sources.items()}
    includes[f"{plan.prefix}_weights.c"] = [f"{plan.prefix}.h"]
    for name, text in given.items():
        includes[name] = [*included_in(text), *(other for other in given if include_line(other) in text)]
    return Package(plan, files, identity=identity, assumed=assumed, about=about, includes=includes, own_files=own_files)
