"""The files of a folder before they are written. Large ones are rendered piece by piece whenever they are asked for, so
they never lie in memory whole unless somebody asks for all of their bytes.

Invariant: a file has the same bytes each time it is rendered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

Rendered = Callable[[], Iterable[bytes]]
_PIECE = 1 << 20  # bytes of a file on disk that are read at once


class Files(Mapping[str, bytes]):
    """Files by their paths below the folder."""

    def __init__(self, made: Mapping[str, bytes | Rendered]) -> None:
        self._made = dict(made)
        self._digests: dict[str, str] = {}

    @staticmethod
    def of(files: Mapping[str, bytes]) -> Files:
        return files if isinstance(files, Files) else Files(files)

    def __getitem__(self, path: str) -> bytes:
        made = self._made[path]
        return made if isinstance(made, bytes) else b"".join(made())

    def __contains__(self, path: object) -> bool:
        return path in self._made  # what Mapping does renders the file

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __or__(self, more: Mapping[str, bytes]) -> Files:
        files = Files({**self._made, **Files.of(more)._made})
        files._digests = {path: digest for path, digest in self._digests.items() if path not in more}
        return files

    def only(self, paths: Iterable[str]) -> Files:
        return self.moved({path: path for path in paths})

    def moved(self, places: Mapping[str, str]) -> Files:
        """Those files that have a new place, there."""
        return Files({place: self._made[path] for path, place in places.items()})

    def pieces(self, path: str) -> Iterable[bytes]:
        """The bytes of a file, some at a time."""
        made = self._made[path]
        return (made,) if isinstance(made, bytes) else made()

    def digest(self, path: str) -> str:
        """SHA-256, in hexadecimal."""
        if path not in self._digests:
            sha = hashlib.sha256()
            for piece in self.pieces(path):
                sha.update(piece)
            self._digests[path] = sha.hexdigest()
        return self._digests[path]


def on_disk(path: Path) -> Rendered:
    """The bytes of a file that is there already."""

    def pieces() -> Iterator[bytes]:
        with path.open("rb") as opened:
            while piece := opened.read(_PIECE):
                yield piece

    return pieces
