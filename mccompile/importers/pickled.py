"""Pickled Python objects, also those that joblib wrote: whatever is in one goes through the importer that knows it."""

from __future__ import annotations

import re
import zlib
from typing import Any

from ..base.errors import BadFile, Problem
from . import pickles
from .api import Importer, Reading, Source, quiet

_START = re.compile(rb"\x80[\x02-\x05]")
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")  # what joblib compresses with unless told otherwise


class Pickled(Importer):
    what = "a pickled Python object, such as a scikit-learn estimator"
    extra = "sklearn"
    needs = ("joblib",)
    suffixes = (".pkl", ".pickle", ".joblib")

    def opens(self, source: Source) -> bool:
        start = _pickle(source, 64)
        return bool(_START.match(start)) and not _is_of_torch(source)

    def risk(self, source: Source) -> str:
        named = pickles.listed(pickles.names(_pickle(source, pickles.LARGEST)))
        return "unpickling calls whatever the file names" + (f", such as {named}" if named else "")

    def read(self, source: Source, reading: Reading) -> Any:
        import joblib

        try:
            with quiet():
                return joblib.load(source.path)
        except Exception as error:  # whatever its objects raise
            missing = error.name if isinstance(error, ModuleNotFoundError) else ""
            fix = f"install what has the module {missing}" if missing else "save it again with the installed versions"
            why = f"{type(error).__name__}: {error}"
            raise BadFile(Problem(f"{source.name} cannot be unpickled", str(source.path), why, fix)) from error


def _pickle(source: Source, most: int) -> bytes:
    """How the pickle of a file begins."""
    if not source.data.startswith(_ZLIB):
        return source.data[:most]
    try:
        return zlib.decompressobj().decompress(source.data, most)
    except zlib.error:
        return b""


def _is_of_torch(source: Source) -> bool:
    """What torch.save writes is not a plain pickle, and mostly weights alone."""
    return any(name.startswith(("torch", "ultralytics")) for name in pickles.names(source.data[: 1 << 16])) or (
        source.data[2:14] == _TORCH
    )


_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # of files before zip archives: a number of their own comes first
