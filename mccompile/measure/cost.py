"""What a model costs on its target: instructions, flash by section, RAM and stack.

Invariant: all figures are exact, and the same on every host. They come from an emulator that counts, from the linker's
map, and from a painted stack.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.records import dataclass
from ..base.stages import stage
from ..driver import Options, compile_graph, read, settled
from ..emit.package import Package
from ..emit.summary import memories
from ..emit.traffic import transfers
from ..toolchain.emulate import Emulated, Inputs
from ..toolchain.image import function_bytes
from ..toolchain.stack import Bound, CallGraph
from ..toolchain.ticks import count_steps
from .building import flags_of, own_functions
from .correctness import build, input_sets
from .handing import as_handed_over
from .ticks import named_step

_CODE = ("kernels", "model", "libraries")
_OWN = ("kernels", "model")


@dataclass(frozen=True)
class Cost:
    package: Package
    init_instructions: int
    run_instructions: int
    sections: Mapping[str, Mapping[str, int]]  # bytes by "kernels", "model", "weights", "libraries" and by section
    struct_bytes: int
    init_stack: int | None  # bytes below the caller; None where the target has an operating system
    run_stack: int | None
    stack_bound: Bound  # of a run, by the compiler
    stacks: Mapping[str, int]  # the same of functions of steps, where there is a bound
    functions: Mapping[str, int] = field(default_factory=dict)  # bytes of code of functions of steps
    by_step: Sequence[int] = ()  # instructions, where they were asked for

    @property
    def code_bytes(self) -> int:
        """Flash besides the weights: code and tables of the model, and of what it uses of the compiler's libraries."""
        return flash_of(self.sections)

    @property
    def own_code_bytes(self) -> int:
        return flash_of(self.sections, _OWN)

    @property
    def weights_bytes(self) -> int:
        return self.package.weights_bytes

    @property
    def macs(self) -> int:
        return sum(step.macs for step in self.package.plan.steps())

    def as_dict(self) -> dict[str, Any]:
        steps = list(self.package.plan.steps())
        counts = zip(steps, self.by_step, strict=True) if self.by_step else ()
        counted = [{**named_step(step), "instructions": count} for step, count in counts] or len(steps)
        return {
            "model": self.package.plan.name,
            "target": self.package.plan.target,
            "macs": self.macs,
            "run_instructions": self.run_instructions,
            "init_instructions": self.init_instructions,
            "code_bytes": self.code_bytes,
            "own_code_bytes": self.own_code_bytes,
            "weights_bytes": self.weights_bytes,
            "flash": {source: dict(sizes) for source, sizes in self.sections.items()},
            "arena_bytes": self.package.plan.arena_bytes,
            **({"transfers": moved} if (moved := transfers(self.package.plan)) else {}),
            "portable": [step.as_dict() for step in self.package.plan.portable],
            "left_out": [each.as_dict() for each in self.package.left_out],
            "struct_bytes": self.struct_bytes,
            "run_stack_bytes": self.run_stack,
            "init_stack_bytes": self.init_stack,
            "run_stack_bound_bytes": self.stack_bound.bytes,
            "run_stack_bound_without": list(self.stack_bound.unseen),
            "function_stack_bytes": dict(self.stacks),
            "function_code_bytes": dict(self.functions),
            "steps": counted,
        }

    def show(self) -> str:
        """For the terminal."""
        plan = self.package.plan
        per_mac = f"{self.run_instructions / self.macs:.2f} per multiply-accumulate" if self.macs else "no macs"
        lines = [
            f"{plan.name} on {plan.target}",
            f"run      {self.run_instructions} instructions ({per_mac})",
            f"init     {self.init_instructions} instructions",
            f"code     {self.code_bytes} bytes",
        ]
        for source, sizes in self.sections.items():
            if source != "weights":
                parts = ", ".join(f"{name} {size}" for name, size in sizes.items())
                lines.append(f"           {source}: {parts}")
        stack = "stack not measured" if self.run_stack is None else f"stack {self.run_stack}"
        return "\n".join(
            [
                *lines,
                f"weights  {self.weights_bytes} bytes",
                f"ram      arena {plan.arena_bytes}, struct {self.struct_bytes}, {stack} bytes",
                *memories(plan),
                f"stack    {self.stack_bound.show()}",
                *(step.show() for step in plan.portable),
                *(each.show() for each in self.package.left_out),
            ]
        )


def flash_of(sections: Mapping[str, Mapping[str, int]], sources: Sequence[str] = _CODE) -> int:
    """Bytes that lie in flash, of these sources."""
    return sum(size for source in sources for name, size in sections.get(source, {}).items() if name != "bss")


@stage("bench")
def cost(path: Path, options: Options, cc: str | None = None, seed: int = 0, by_step: bool = False) -> Cost:
    """Builds and runs a model under emulation. Its input is random; only control flow in the model depends on it.
    `by_step`: each step is counted, too, in a second build."""
    target = options.resolved_target()
    if not target.run:
        fix = "name one of a core, such as --target cortex-m4 (`mccompile targets`)"
        why = "instructions are counted by it"
        raise WrongUse(Problem(f"target {target.name} names no emulator", "--target", why, fix))
    graph = read(path, options)
    chosen = input_sets(graph, None, seed, 1)[0].inputs
    apart = replace(settled(path, options), single_file=False, module=False)  # sizes are told apart by files
    package = compile_graph(graph, apart, options.name or path.stem)
    model = build(package, target, cc)
    assert isinstance(model, Emulated)  # as the target names an emulator
    inputs = as_handed_over(chosen, path, options, package.plan.streamed, model.report)
    count = model.count(inputs)
    sections = {source: sizes for source, sizes in model.sections.items() if source != "program"}
    if count.run_stack is None:  # the libraries are an operating system's, whole
        sections.pop("libraries", None)
    return Cost(
        package,
        count.init_instructions,
        count.run_instructions,
        sections,
        count.struct_bytes,
        count.init_stack,
        count.run_stack,
        model.call_graph.bound(f"{package.plan.prefix}_run"),
        _stacks(package, model.call_graph),
        own_functions(function_bytes(model.program), package),
        _by_step(package, options, cc, inputs, count.run_instructions) if by_step else (),
    )


def _by_step(package: Package, options: Options, cc: str | None, inputs: Inputs, whole: int) -> list[int]:
    target = options.resolved_target()
    steps = sum(1 for _ in package.plan.steps())
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        out = Path(scratch, "out")
        package.write(out)
        package.write_ticking(out)
        return count_steps(
            Emulated.build(out, target, cc, flags_of(package, target), ticks=steps), inputs, whole, steps
        )


def _stacks(package: Package, graph: CallGraph) -> dict[str, int]:
    bounds = {function.name: graph.bound(function.name).bytes for function in package.plan.functions}
    return {name: nbytes for name, nbytes in bounds.items() if nbytes is not None}
