"""Finds plug-in modules and data by folder, so that no central table repeats what a folder already says.

Invariant: the order is sorted by name and never depends on the file system, and the same names resolve in a checkout
(where `kernels_templates/` and `runtime_c/` stand beside the package) and in an installed wheel (where they are mapped
inside it as `_kernels_templates/` and `_runtime_c/`).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from pathlib import Path
from types import ModuleType

from mccompile.base.errors import BadFile, InternalError, Problem

_PACKAGE = Path(__file__).resolve().parent.parent
CACHE = "MCCOMPILE_CACHE"  # the environment variable that names another folder
_IMPORTING = threading.RLock()  # a module is in sys.modules before it is whole


def cache_folder() -> Path:
    """Where what was made once is kept: $MCCOMPILE_CACHE, else mccompile where the system has such folders."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    usual = {"win32": Path.home() / "AppData" / "Local", "darwin": Path.home() / "Library" / "Caches"}
    return Path(os.environ.get("XDG_CACHE_HOME") or usual.get(sys.platform, Path.home() / ".cache"), "mccompile")


def import_package_modules(package: str) -> list[ModuleType]:
    """Import every module that lies directly in the folder of `package`, except those that start with an underscore."""
    found = importlib.import_module(package)
    if not hasattr(found, "__path__"):
        raise InternalError(f"{package} is a module, not a package")
    stems = {path.stem for folder in found.__path__ for path in Path(folder).glob("*.py")}
    return [importlib.import_module(f"{package}.{stem}") for stem in sorted(stems) if not stem.startswith("_")]


def import_file(path: Path, unique_module_name: str) -> ModuleType:
    """Import one file under a name of its own; a second call with the same name and file returns the same module."""
    with _IMPORTING:
        return _import_file(path.resolve(), unique_module_name)


def _import_file(path: Path, unique_module_name: str) -> ModuleType:
    known = sys.modules.get(unique_module_name)
    if known is not None:
        if known.__file__ != str(path):
            raise InternalError(f"{path} and {known.__file__} are both to be imported as {unique_module_name}")
        return known
    spec = importlib.util.spec_from_file_location(unique_module_name, path)
    if spec is None or spec.loader is None:
        raise _cannot_import(path, "it is not a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique_module_name] = module  # dataclasses look their module up while it is being executed
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[unique_module_name]
        if isinstance(error, OSError | SyntaxError | ImportError):
            raise _cannot_import(path, str(error)) from error
        raise
    return module


def data_folder(name: str) -> Path:
    """The folder of files that are not modules: `kernels_templates` or `runtime_c`."""
    for folder in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):  # in a wheel the neighbours are other people's
        if folder.is_dir():
            return folder
    raise InternalError(f"the installation is incomplete: no folder {name} beside or inside {_PACKAGE}")


def _cannot_import(path: Path, why: str) -> BadFile:
    return BadFile(Problem(f"cannot import {path.name}", where=str(path), why=why, fix="correct or remove the file"))
