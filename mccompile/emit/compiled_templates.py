"""What Jinja makes of templates, kept on disk: compiling those of a model takes longer than rendering them.

Invariant: an entry is named by all that it was made from and whole, or it is not read; where none can be written, none
is."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

from ..base.discovery import cache_folder


class CompiledTemplates(jinja2.BytecodeCache):
    def __init__(self, folded: Iterable[Path]) -> None:
        """`folded`: the files of the functions that Jinja applies to constants while it compiles."""
        made_by = [f"{jinja2.__version__} {sys.version}".encode(), *(path.read_bytes() for path in folded)]
        self._made_by = b"".join(hashlib.sha256(part).digest() for part in made_by)

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            found = self._file(bucket).read_bytes()
        except (OSError, RuntimeError):  # RuntimeError: nobody's home
            return
        digest, code = found[:32], found[32:]
        if hashlib.sha256(code).digest() == digest:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        code = bucket.bytecode_to_string()
        try:
            file = self._file(bucket)
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
                whole = Path(scratch, file.name)
                whole.write_bytes(hashlib.sha256(code).digest() + code)
                whole.replace(file)
        except (OSError, RuntimeError):
            return

    def _file(self, bucket: Bucket) -> Path:
        named = hashlib.sha256(self._made_by + f"{bucket.key} {bucket.checksum}".encode())
        return cache_folder() / "templates" / named.hexdigest()
