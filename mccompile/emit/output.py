"""What is printed of a plan: the model's own files, its kernels, the headers of the runtime that these need, the blob,
and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.records import dataclass
from ..base.stages import stage
from ..base.structures import Interface
from ..plan.ir import Plan
from ..plan.row_calls import pieces
from . import blob as blob_format
from .blob import Carrier, Delivery
from .files import Files
from .folder import with_report
from .interface import lasting, seen
from .kernel_files import kernel_files
from .model import files_of, identity_c, model_context, model_files, source_of
from .render import Source
from .runtime import READERS, WORKERS, include_line, included_in, runtime_headers


@dataclass(frozen=True)
class Output:
    """Files by their path below the output folder."""

    files: Files
    identity: bytes
    includes: Mapping[str, Sequence[str]]  # of generated files: others of the package


@dataclass(frozen=True)
class Printer:
    """`about`: what has to be said of inputs and outputs that are not only tensors. `headers`: the user's own, by name.
    `report`: what it says, given the identity."""

    plan: Plan
    delivery: Delivery
    interface: Interface | None
    about: Sequence[str]
    wrappers: Sequence[str]
    headers: Mapping[str, str]
    report: Callable[[bytes], Mapping[str, Any]]

    @property
    def align(self) -> int:
        """Of the blob."""
        return weights_align(self.plan)

    @property
    def weights_bytes(self) -> int:
        return blob_format.blob_bytes(self.plan)

    def own_files(self, prefix: str, identity: bytes, plan: Plan) -> dict[str, Source]:
        """The model's own files for the blob of that name and identity, where its steps are those of that plan."""
        carrier, about, wrappers = self.delivery.carrier, self.about, self.wrappers
        return model_files(plan, identity, self.align, self.weights_bytes, carrier, about, prefix, wrappers)[0]

    @stage("emit")
    def print(self) -> Output:
        plan, given = self.plan, self.headers
        kernels = kernel_files(plan.prefix, plan.build, plan.functions, plan.steps(), pieces(plan))
        told = self._told(plan)
        plain = self._told(plan.plain) if plan.profiled or plan.dumped else told
        taken = plan.partition.taken if plan.partition else []
        regions = [given[f"{region.name}{end}.h"] for region in taken for end in ("", "_stand_in")]  # which has weights
        code = "".join([*(s.text for s in [*kernels.values(), source_of(plain)]), *regions])
        identity = blob_format.identity(plan, code, lasting(seen(plan, self.interface)))
        own, texts = files_of(told | identity_c(identity), plan, self.wrappers)
        sources = {**own, **kernels}
        texts |= {name: source.text for name, source in sources.items()}
        offered = (*(WORKERS if plan.parallel else ()), *(READERS if plan.window else ()))
        included = chain(*(source.includes for source in sources.values()), *map(included_in, given.values()))
        texts |= runtime_headers([*offered, *included]) | {f"runtime/{name}": text for name, text in given.items()}
        files = with_report(self._with_weights(texts, identity), self.report(identity))
        return Output(files, identity, self._includes(sources))

    def _told(self, plan: Plan) -> dict[str, Any]:
        carrier = self.delivery.carrier
        return model_context(plan, bytes(16), self.align, self.weights_bytes, carrier, self.about)

    def _with_weights(self, texts: dict[str, str], identity: bytes) -> Files:
        """All of them as files, beside the blob and how a program gets it."""
        plan, carrier, section = self.plan, self.delivery.carrier, self.delivery.section
        contents = blob_format.blob(plan, identity, self.align)
        if carrier == Carrier.INCBIN:
            source = blob_format.incbin_source(plan.prefix, self.weights_bytes, self.align, section)
            texts[f"{plan.prefix}_weights.c"] = source
        files = Files({name: text.encode() for name, text in texts.items()}) | Files({f"{plan.prefix}.mcb": contents})
        if carrier == Carrier.ARRAY:
            size = self.weights_bytes
            words = partial(blob_format.weights_source, plan.prefix, contents, size, self.align, section)
            files |= Files({f"{plan.prefix}_weights.c": words})
        return files

    def _includes(self, sources: Mapping[str, Source]) -> dict[str, Sequence[str]]:
        prefix, given = self.plan.prefix, self.headers
        includes: dict[str, Sequence[str]] = {name: sorted(source.includes) for name, source in sources.items()}
        includes[f"{prefix}_weights.c"] = [f"{prefix}.h"]
        for name, text in given.items():
            includes[name] = [*included_in(text), *(other for other in given if include_line(other) in text)]
        return includes


def weights_align(plan: Plan) -> int:
    return max(16, plan.arena_align)


def own_headers(plan: Plan) -> dict[str, str]:
    """The text of each header of the user's own, by name."""
    paths = {name: path for f in plan.functions for name, path in f.kernel.files(f.call).items()}
    for name in {f"{plan.prefix}.h", f"{plan.prefix}_kernels.h"} & paths.keys():
        why = "the model has a header of that name"
        raise WrongUse(Problem(f"{paths[name]} cannot be included", "--external", why, f"--name {plan.prefix}_model"))
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(paths.items())}
