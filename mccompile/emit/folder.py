"""The output folder: all files are made before any is written, written aside, and put in place by renames.

report.json lists every file of an output folder with its SHA-256, and has a seal: the SHA-256 of the rest of it.
Invariants: a file is replaced or removed only if a sealed report lists it and its bytes are those listed (edited ones
only if that is asked for); all is checked before anything is written; when writing fails, the folder is what it was
before. Where a run is cut off, the report knows both the bytes that were there and those to come, so the next run goes
on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from ..base.errors import Problem, WrongUse, raise_all
from ..base.writing import fix_of
from .files import Files, on_disk

MARK, LIST, SEAL = "report.json", "files", "seal"  # the report, and its keys that are about the folder
_SEAL = "made by mccompile, sha256 "
_SHOWN = 8  # names of a message about a folder that is not ours


def with_report(files: Mapping[str, bytes], contents: Mapping[str, Any]) -> Files:
    """The files of a folder with their report, which says `contents` and lists them."""
    files = Files.of(files)
    contents = {key: value for key, value in contents.items() if key not in (LIST, SEAL)}
    listed = {name: files.digest(name) for name in sorted(files) if name != MARK}
    return files | {MARK: _sealed({**contents, LIST: listed})}


def _sealed(contents: Mapping[str, Any]) -> bytes:
    contents = {**contents, SEAL: _seal(contents)}
    return (json.dumps(contents, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _seal(contents: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in contents.items() if key != SEAL}
    return _SEAL + hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def write_folder(folder: Path, files: Mapping[str, bytes], force: bool = False) -> None:
    """Puts files in place, all or none; `files` holds a report that lists them. `force`: those that an earlier run
    wrote are replaced even if they have been edited since."""
    try:
        files = Files.of(files)
        if not folder.is_symlink() and not folder.exists():
            _write_new(folder.absolute(), files)
            return
        listed = _listed(folder, force)
        raise_all(WrongUse, list(_in_the_way(folder, files, listed, force)))
        _write_over(folder, files, listed)
    except OSError as error:
        own = folder.name if Path.home().joinpath(folder.name) != folder.absolute() else f"{folder.name}1"
        fix = fix_of(
            error, folder, f"give a folder that can be written, such as -o {shlex.quote(str(Path.home() / own))}"
        )
        raise _refused(folder, error.strerror or str(error), fix) from error


def replace_files(folder: Path, new: Mapping[str, bytes], force: bool = False) -> None:
    """Puts other contents into files that a folder lists; all others stay as they are."""
    try:
        report = _read(folder / MARK) or {}
        listed = _listed(folder, force)
        there = Files({name: on_disk(folder / name) for name in listed if (folder / name).is_file()})
    except OSError as error:
        raise _refused(folder, error.strerror or str(error), "") from error
    write_folder(folder, with_report(there | new, report), force)


def _listed(folder: Path, force: bool) -> Mapping[str, frozenset[str]]:
    """What an earlier run wrote there: digests by name."""
    if not folder.is_dir():
        raise _refused(folder, "it is not a folder", "give another one: -o out")
    there = sorted(path.name for path in folder.iterdir())
    if not there:
        return {}
    report = folder / MARK
    others = f"give a new or empty folder, such as -o {folder / 'out'}"
    if not report.is_file() or report.is_symlink():
        names = ", ".join(there[:_SHOWN]) + (f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else "")
        raise _refused(folder, f"it has files in it that mccompile did not make: {names}", others)
    contents, seal = _read(report), ""
    if contents is not None and isinstance(contents.get(LIST), dict):
        seal = str(contents.get(SEAL, ""))
    if not seal.startswith(_SEAL):
        why = "mccompile, as it is today, did not make it, so nothing says which files here are yours"
        raise _refused(report, why, f"{others}, or move {MARK} away")
    assert contents is not None
    if seal != _seal(contents) and not force:
        raise _refused(report, "it was edited after mccompile wrote it", _FORCE)
    return {str(name): frozenset(str(digests).split()) for name, digests in contents[LIST].items() if _is_inside(name)}


_FORCE = "move it away to keep what is in it, give another folder to -o, or overwrite it with --force"


def _read(report: Path) -> dict[str, Any] | None:
    try:
        contents = json.loads(report.read_bytes().decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return contents if isinstance(contents, dict) else None


def _is_inside(name: str) -> bool:
    """Is it a name below a folder, written as this module writes them?"""
    path = PurePosixPath(name)
    return bool(name) and name == str(path) and not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _in_the_way(
    folder: Path, files: Mapping[str, bytes], listed: Mapping[str, frozenset[str]], force: bool
) -> Iterable[Problem]:
    """Every name that is to be written, and is not ours to replace."""
    for name in dict.fromkeys(_with_folders(files)):
        path, what = folder / name, "cannot write over what mccompile did not make"
        fix = "move it away, or give another folder to -o"
        if not path.is_symlink() and not path.exists():
            continue
        if path.is_symlink():
            yield Problem(what, str(path), "it is a symbolic link", fix)
        elif name not in files:
            if not path.is_dir():
                yield Problem(what, str(path), "it is not a folder", fix)
        elif not path.is_file():
            yield Problem(what, str(path), "it is not a file", fix)
        elif name != MARK and name not in listed:
            yield Problem(what, str(path), f"{MARK} does not list it", fix)
        elif name != MARK and not force and not _is_unchanged(path, listed[name]):
            why = "it was edited after mccompile wrote it"
            yield Problem("cannot write over an edited file", str(path), why, _FORCE)


def _with_folders(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        yield from (str(parent) for parent in reversed(PurePosixPath(name).parents[:-1]))
        yield name


def _is_unchanged(path: Path, digests: Iterable[str]) -> bool:
    return not path.is_symlink() and path.is_file() and _digest(path) in digests


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _write_new(folder: Path, files: Files) -> None:
    """The folder appears with all that is in it, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
        whole = Path(aside, folder.name)
        whole.mkdir()
        _write_files(whole, files)
        os.rename(whole, folder)


def _write_over(folder: Path, files: Files, listed: Mapping[str, frozenset[str]]) -> None:
    """All files are complete on the same disk before the first one is put in place, and those that were there are kept
    until the last one is. A report that lists both goes first, the true one last."""
    old = [name for name in listed if name not in files and not _through_link(folder, name)]
    stale = [name for name in old if _is_unchanged(folder / name, listed[name])]
    new = [name for name in files if name != MARK and not _is_unchanged(folder / name, [files.digest(name)])]
    with tempfile.TemporaryDirectory(prefix=".mccompile-", dir=folder) as scratch:
        aside, kept = Path(scratch, "new"), Path(scratch, "old")
        _write_files(aside, files | {f"{MARK}.first": _of_both(files[MARK], listed)})
        moves = [(f"{MARK}.first", MARK), *((name, name) for name in new), *(("", name) for name in stale)]
        done: list[tuple[Path, Path]] = []  # places, and where what was there is kept
        made: list[Path] = []  # folders
        try:
            for number, (source, name) in enumerate([*moves, (MARK, MARK)]):
                place, before = folder / name, kept / str(number)
                _make_folders(folder, place.parent, made)
                if place.exists():
                    _keep(place, before)
                done.append((place, before))
                if source:
                    os.replace(aside / source, place)
                else:
                    place.unlink()
        except BaseException:
            _put_back(done, made)
            raise
    for parent in sorted({parent for name in stale for parent in PurePosixPath(name).parents[:-1]}, reverse=True):
        with suppress(OSError):  # it is not empty
            (folder / parent).rmdir()


def _through_link(folder: Path, name: str) -> bool:
    return any((folder / parent).is_symlink() for parent in PurePosixPath(name).parents[:-1])


def _make_folders(folder: Path, needed: Path, made: list[Path]) -> None:
    missing = [path for path in (needed, *needed.parents) if path.is_relative_to(folder) and not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        made.append(path)


def _keep(place: Path, before: Path) -> None:
    """A second name for a file; a copy where the disk knows no such thing."""
    before.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(place, before)
    except OSError:
        shutil.copy2(place, before)


def _put_back(done: Sequence[tuple[Path, Path]], made: Sequence[Path]) -> None:
    for place, before in reversed(done):
        if before.exists():
            os.replace(before, place)
        else:
            place.unlink(missing_ok=True)
    for path in reversed(made):
        with suppress(OSError):
            path.rmdir()


def _of_both(report: bytes, listed: Mapping[str, frozenset[str]]) -> bytes:
    """A report that lists what is there and what is to come."""
    contents = json.loads(report.decode("utf-8", "surrogatepass"))
    coming: Mapping[str, str] = contents[LIST]
    names = dict.fromkeys([*listed, *coming])
    both = {name: " ".join(sorted({*listed.get(name, ()), *coming.get(name, "").split()})) for name in names}
    return _sealed({**contents, LIST: both})


def _write_files(folder: Path, files: Files) -> None:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as opened:
            for piece in files.pieces(name):
                opened.write(piece)


def _refused(where: Path, why: str, fix: str) -> WrongUse:
    return WrongUse(Problem("cannot write the output folder", str(where), why, fix))
