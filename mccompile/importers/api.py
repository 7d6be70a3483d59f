"""What an importer is: the way from files and objects of another tool to an ONNX model in memory.

Invariant: nothing of a file is executed unless its user trusts it, and what an importer needs besides the core
is imported when a model comes to it.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from ..base.errors import Problem, UnsupportedModel
from ..base.own_functions import OwnFunction
from ..base.records import dataclass
from .joining import Prepended

_SHOWN = 8  # lines of what another tool says
_ASIDE = re.compile(r"^(For (more|extended|C\+\+)|If you suspect|Please report)|TORCH")


@dataclass(frozen=True)
class Reading:
    """What is read of a file, and joined to it."""

    signature: str = ""  # of a TFLite file with several
    trust: bool = False  # what files hold may be executed
    prepend: tuple[Prepended, ...] = ()  # models in front: the first of them is the first to run
    functions: tuple[OwnFunction, ...] = ()  # that compute operators which may be known to nothing else
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # sizes that are asked for, where
    shapes: Mapping[str, tuple[int | str | tuple[int, ...], ...]] = field(default_factory=dict)  # a file is for one
    has_states: bool = False  # which outputs become inputs is told
    seeded: bool = False  # random numbers are to be the same in every run


AS_IT_IS = Reading()


@dataclass(frozen=True)
class Source:
    """A file, or a folder, which has no data."""

    path: Path
    data: bytes

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class InputHints:
    """What an object does not say of its inputs."""

    args: tuple[Any, ...] = ()  # examples, by position
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # and by name
    dynamic: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # names of free sizes by input and axis


class Importer:
    """A kind of models. `mccompile.importers.registry` has the list of them."""

    what: ClassVar[str]  # such as "a Keras model"
    extra: ClassVar[str]  # of pyproject.toml
    needs: ClassVar[tuple[str, ...]]  # the modules of that extra without which nothing goes
    suffixes: ClassVar[tuple[str, ...]] = ()  # of its files, which are known by their contents
    classes: ClassVar[tuple[str, ...]] = ()  # of objects, by full name: they and what inherits them
    has_signatures: ClassVar[bool] = False
    has_sizes: ClassVar[bool] = False  # does what is read depend on the sizes that are asked for?

    def opens(self, source: Source) -> bool:
        """Is it a file of this kind?"""
        return False

    def risk(self, source: Source) -> str:
        """What of a file would be executed by loading it; "" where nothing is."""
        return ""

    def read(self, source: Source, reading: Reading) -> Any:
        """The ONNX model that a file means, or an object that is taken by an importer."""
        raise NotImplementedError

    def knows(self, model: object) -> bool:
        return any(f"{each.__module__}.{each.__qualname__}" in self.classes for each in type(model).__mro__)

    def convert(self, model: Any, given: InputHints) -> Any:
        """The ONNX model that an object means."""
        raise NotImplementedError


@contextmanager
def quiet() -> Iterator[None]:
    """Other tools tell their users what they do; ours asked for something else."""
    kept = logging.root.manager.disable
    with ExitStack() as stack:
        for redirect in (redirect_stdout, redirect_stderr):
            stack.enter_context(redirect(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(kept)


def refusal(what: str, where: str, error: BaseException, fix: str) -> UnsupportedModel:
    """What another tool says of a model that it cannot convert, passed on."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip() and not _ASIDE.search(line)]
    said = f"{type(error).__name__}: " + "\n".join(lines[:_SHOWN] or ["it says no more"])
    return UnsupportedModel(Problem(what, where, said, fix))
