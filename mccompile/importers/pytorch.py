"""Modules and exported programs of PyTorch, through torch.onnx's exporter by torch.export.

Invariant: a module is exported as it is used (dropout and the like off), and left as it was.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, Problem, WrongUse
from ..base.near import meant
from .api import Importer, InputHints, Reading, Source, quiet, refusal

_PROGRAM = re.compile(r"(^|/)(serialized_exported_program\.json|models/[^/]*\.json)$")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_FIXES = {  # what the exporter says, and what to do then; the first that is found
    r"No ONNX function found|DispatchError": ("write the operator that it names with others, which the exporter has"),
    r"data-dependent|DataDependent|Could not guard|GuardOnData": (
        "do not branch on values in forward: use torch.where, or torch.cond"
    ),
    r"constraints violated|not all values|specialized|user-specified ranges|marked .* as dynamic": (
        "leave the size that it names out of dynamic, or give args in which it is another one"
    ),
    r"missing a required|unexpected keyword|positional argument|cannot be multiplied|expected .* input|tensor a ": (
        "give args as forward takes them: mccompile.compile(module, args=(example, ...))"
    ),
}
_ELSE = (
    "change what it names in forward; torch.export.export(module, args) alone says more\n"
    "or trace it: torch.onnx.export(module, args, 'model.onnx', dynamo=False), and compile that file"
)


class PyTorch(Importer):
    what = "a PyTorch model"
    extra = "torch"
    needs = ("torch", "onnxscript")
    suffixes = (".pt2",)
    classes = ("torch.nn.modules.module.Module", "torch.export.exported_program.ExportedProgram")

    def opens(self, source: Source) -> bool:
        if not source.data.startswith(b"PK\x03\x04"):
            return False
        try:
            with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
                return any(_PROGRAM.search(name) for name in archive.namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return False

    def risk(self, source: Source) -> str:
        return "torch.export.load unpickles parts of it, and evaluates others as Python"

    def read(self, source: Source, reading: Reading) -> Any:
        import torch

        try:
            with quiet():
                return torch.export.load(io.BytesIO(source.data))
        except Exception as error:
            fix = "save it again with torch.export.save of the installed version of torch"
            why = f"{type(error).__name__}: {error}"
            raise BadFile(Problem(f"torch cannot load {source.name}", str(source.path), why, fix)) from error

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        import torch

        title = type(model).__name__
        if isinstance(model, torch.export.ExportedProgram):
            if given.args or given.kwargs or given.dynamic:
                fix = "leave out args and dynamic, or give the module itself"
                raise WrongUse(Problem("an exported program has its inputs already", "", "", fix))
            return _exported(model, (), title)
        if not given.args and not given.kwargs:
            fix = "mccompile.compile(module, args=(torch.zeros(1, 3, 32, 32),)) with the shapes of your inputs"
            raise WrongUse(Problem("a PyTorch module does not say what its inputs are", "", "", fix))
        names = [*_names(model, len(given.args)), *given.kwargs]
        shapes = _shapes(names, given)
        with _as_used(model):
            titles = _tensors(names, given)
            return _exported(
                model, given.args, title, kwargs=dict(given.kwargs), dynamic_shapes=shapes, input_names=titles
            )


def _exported(model: Any, args: tuple[Any, ...], title: str, **how: Any) -> ModelProto:
    import torch

    try:
        with quiet():
            program = torch.onnx.export(
                model, args, dynamo=True, verbose=False, custom_translation_table=_translations(), **how
            )
    except Exception as error:
        cause = error
        while cause.__cause__ is not None and isinstance(cause.__cause__, Exception):
            cause = cause.__cause__
        said = f"{cause} {error}"
        fix = next((fix for pattern, fix in _FIXES.items() if re.search(pattern, said, re.I)), _ELSE)
        raise refusal("torch.onnx cannot export the module", "", cause, fix) from error
    assert program is not None
    made: ModelProto = program.model_proto
    made.graph.name = title
    return made


def _translations() -> dict[Any, Any]:
    """Operators that the exporter does not have."""
    import torch
    from onnxscript import opset18

    def integer_product(a: Any, b: Any) -> Any:
        return opset18.MatMulInteger(a, b)

    return {torch.ops.aten._int_mm.default: integer_product}


def _names(model: Any, count: int) -> list[str]:
    """Of positional arguments, as forward calls them."""
    names = [each.name for each in signature(model.forward).parameters.values() if each.kind in _POSITIONAL]
    return [names[n] if n < len(names) else f"input_{n}" for n in range(count)]


def _shapes(names: list[str], given: InputHints) -> Any:
    """Free sizes as the exporter wants them: one entry for each argument."""
    unknown = [name for name in given.dynamic if name not in names]
    if unknown:
        fix = meant(unknown[0], names) or f"forward takes {', '.join(names)}"
        raise WrongUse(Problem(f"dynamic names {unknown[0]!r}, which is not an input", "", "", fix))
    if not given.dynamic:
        return None
    entries = [dict(given.dynamic[name]) if name in given.dynamic else None for name in names]
    return tuple(entries) if not given.kwargs else dict(zip(names, entries, strict=True))


def _tensors(names: list[str], given: InputHints) -> list[str] | None:
    """Names of inputs; where arguments are lists and the like, the exporter names what is in them."""
    import torch

    values = [*given.args, *given.kwargs.values()]
    return names if all(isinstance(value, torch.Tensor) for value in values) else None


@contextmanager
def _as_used(module: Any) -> Iterator[None]:
    modes: Mapping[Any, bool] = {each: each.training for each in module.modules()}
    try:
        if any(modes.values()):
            module.eval()
    except NotImplementedError:  # a graph that was exported is as it is
        pass
    try:
        yield
    finally:
        for each, training in modes.items():
            each.training = training
