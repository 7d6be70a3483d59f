"""Several models, or several targets, as one folder of files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .. import __version__
from ..base.errors import Problem, WrongUse
from ..emit.blob import Carrier
from ..emit.dispatch import dispatched, picks_at_run_time, refuse_looks, refuse_unreachable, variant_name
from ..emit.guarded import Variant, guarded, refuse
from ..emit.layouts import arranged, layout_of
from ..emit.module import refuse_several
from ..emit.package import Package
from ..emit.prefix import c_prefix
from ..emit.several import several
from ..frontend.load import name_of, read_proto
from ..targets import api as target_api
from ..targets.api import Target
from .apportion import apportion
from .compiling import compile
from .options import Options


def compile_several(models: Sequence[Path], options: Options) -> tuple[list[Package], Mapping[str, bytes]]:
    """Compiles ONNX files into one folder; the name in `options` is that of what they share."""
    own = [replace(each, name="") for each in apportion(models, options)]
    return compile_all(list(zip(models, own, strict=True)), options.name or "models")


def compile_all(jobs: Sequence[tuple[Path, Options]], name: str) -> tuple[list[Package], Mapping[str, bytes]]:
    """The same where each model has options of its own; `name` is that of what they share."""
    if any(options.single_file for _, options in jobs):
        fix = "leave out --single-file, or compile each alone"
        raise WrongUse(Problem("--single-file takes one model", "", "", fix))
    _refuse_equal_names([(c_prefix(options.name or name_of(model)), model) for model, options in jobs])
    packages = [compile(model, options) for model, options in jobs]
    return packages, several(packages, c_prefix(name))


def _refuse_equal_names(named: Sequence[tuple[str, Path]]) -> None:
    first: dict[str, Path] = {}
    for name, model in named:
        other = first.setdefault(name, model)
        if other is model:
            continue
        for each in (other, model):
            read_proto(each)  # what is not a model has no twin
        copy = model.absolute().parent.name + "_" + model.name
        fix = f"cp {shlex.quote(str(model))} {shlex.quote(copy)}  # and compile {copy} in its place"
        if other.resolve() == model.resolve():
            fix = f"name {model} once"
        why = "names in C come from those of the files"
        raise WrongUse(Problem(f"two things would be called {name!r}", f"{other}, {model}", why, fix))


def compile_jobs(jobs: Sequence[tuple[Path, Options]], name: str) -> tuple[list[Package], Mapping[str, bytes]]:
    """One model or several, for one target or for several with commas between."""
    asked = {options.target for _, options in jobs}
    refuse_several([options.module for _, options in jobs], asked)
    if not any("," in target for target in asked):
        if len(jobs) > 1:
            return compile_all(jobs, name)
        package = compile(*jobs[0])
        return [package], package.files
    if any(options.accelerator for _, options in jobs):
        why = "its regions are cut for one core"
        raise WrongUse(Problem("an accelerator does not go with several targets", "--target", why, "name one target"))
    if len(asked) > 1:
        raise WrongUse(
            Problem(
                "all models of a project need the same targets",
                "; ".join(sorted(asked)),
                "they differ",
                "give the same --target to all",
            )
        )
    targets = [target_api.load(target) for target in sorted(asked)[0].split(",")]
    if len(jobs) == 1 and not jobs[0][1].single_file and picks_at_run_time(targets):
        return _dispatched(*jobs[0], targets)
    if any(options.blob == Carrier.INCBIN for _, options in jobs):
        why = "each target has its own, and the assembler knows one name"
        raise WrongUse(Problem("the blob cannot be brought in by the assembler", "--target", why, "leave out --blob"))
    packages, variants = [], []
    for target in asked.pop().split(","):
        made, files = compile_jobs([(model, replace(options, target=target)) for model, options in jobs], name)
        resolved = target_api.load(target)
        packages += made
        variants.append(Variant(resolved.guard, resolved.build, files))
    return packages, guarded(variants, packages[0].plan.prefix if len(jobs) == 1 else c_prefix(name))


def _dispatched(model: Path, options: Options, targets: Sequence[Target]) -> tuple[list[Package], Mapping[str, bytes]]:
    """One model whose init picks what the processor runs."""
    refuse_looks(targets, options.looks.flags)
    refuse([Variant(target.guard, target.build, {}) for target in targets])
    refuse_unreachable(targets)
    name = options.name or name_of(model)
    packages = []
    for target, asked in zip(targets, options.target.split(","), strict=True):
        own = replace(options, name=variant_name(name, target), target=asked, wrappers=())
        packages.append(compile(model, replace(own, blob=Carrier.EXTERNAL, weights_section="")))
    return packages, dispatched(packages, targets, name, c_prefix(name), options.delivery, options.wrappers)


def arrange(files: Mapping[str, bytes], layout: str, name: str, options: Options) -> Mapping[str, bytes]:
    """The files of a package, or of several models, as `layout` wants them; `name` is that of the whole."""
    found = layout_of(layout, options.blob, options.single_file, options.module)
    return arranged(files, found, c_prefix(name), __version__, options.blob == Carrier.EXTERNAL)
