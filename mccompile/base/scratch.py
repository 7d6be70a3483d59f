"""A folder of temporary files that lasts as long as the object that holds it.

Invariant: it is gone with that object, or with the process; nobody has to end it, and nothing leaks if nobody does.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref

FOLDER = "mccompile-"  # how its name begins


class Scratch:
    """Like tempfile.TemporaryDirectory, which calls it a leak (ResourceWarning) where `cleanup` was not called."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix=FOLDER)
        self.cleanup = weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)
