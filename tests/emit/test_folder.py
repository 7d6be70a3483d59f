"""What is the user's stays: a file is replaced or removed only if mccompile wrote it and it is unchanged since."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mccompile import cli
from mccompile.base.errors import WrongUse
from mccompile.emit.folder import with_report, write_folder
from tests import small_models
from tests.small_models import save

FIRST = with_report({"a.c": b"first", "a.h": b"same", "runtime/mcc.h": b"r", "old/deep/b.c": b"b"}, {"model": "a"})
SECOND = with_report({"a.c": b"second", "a.h": b"same", "runtime/mcc.h": b"r2", "new/c.c": b"c"}, {"model": "a"})


def contents(folder: Path) -> Mapping[str, str]:
    return {
        path.relative_to(folder).as_posix(): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def written(folder: Path) -> Path:
    write_folder(folder / "out", FIRST)
    return folder / "out"


def texts(files: Mapping[str, bytes]) -> Mapping[str, str]:
    return dict(sorted((name, text.decode()) for name, text in files.items()))


def test_the_second_run_replaces_and_removes_what_the_first_wrote(tmp_path: Path) -> None:
    out = written(tmp_path)
    assert contents(out) == texts(FIRST)
    before = (out / "a.h").stat().st_mtime_ns
    write_folder(out, SECOND)
    assert contents(out) == texts(SECOND)
    assert not (out / "old").exists()
    assert (out / "a.h").stat().st_mtime_ns == before


def edit(name: str) -> Callable[[Path], None]:
    return lambda out: (out / name).write_bytes((out / name).read_bytes() + b"\nmine") and None


def put(name: str) -> Callable[[Path], None]:
    def mine(out: Path) -> None:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")

    return mine


def link_file(out: Path) -> None:
    (out / "a.c").rename(out.parent / "mine.c")
    (out / "a.c").symlink_to(out.parent / "mine.c")


def link_folder(out: Path) -> None:
    (out / "runtime").rename(out.parent / "mine")
    (out / "runtime").symlink_to(out.parent / "mine")


def folder_in_place(out: Path) -> None:
    (out / "a.c").unlink()
    (out / "a.c").mkdir()
    (out / "a.c" / "mine").write_text("mine")


def own_report(out: Path) -> None:
    (out / "report.json").write_text(json.dumps({"mccompile": "1", "files": list(FIRST)}))


FOREIGN = {
    "new/c.c": put("new/c.c"),
    "new": put("new"),
    "a.c": link_file,
    "runtime": link_folder,
    "a.c/": folder_in_place,
    "report.json": own_report,
}
EDITED = {name: edit(name) for name in ("a.c", "runtime/mcc.h")}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_ours_is_named_and_nothing_is_touched(name: str, force: bool, tmp_path: Path) -> None:
    out = written(tmp_path)
    FOREIGN[name](out)
    before = contents(tmp_path)
    with pytest.raises(WrongUse) as caught:
        write_folder(out, SECOND, force)
    assert {problem.where for problem in caught.value.problems} == {str(out / name)}
    assert all(problem.fix for problem in caught.value.problems)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", EDITED)
def test_an_edited_file_is_named_and_stays_but_for_force(name: str, tmp_path: Path) -> None:
    out = written(tmp_path)
    EDITED[name](out)
    before = contents(out)
    with pytest.raises(WrongUse) as caught:
        write_folder(out, SECOND)
    assert [problem.where for problem in caught.value.problems] == [str(out / name)]
    assert "--force" in str(caught.value)
    assert contents(out) == before
    write_folder(out, SECOND, force=True)
    assert contents(out) == texts(SECOND)


def test_an_edited_report_is_an_edited_file(tmp_path: Path) -> None:
    out = written(tmp_path)
    (out / "report.json").write_text((out / "report.json").read_text().replace('"a"', '"mine"'))
    with pytest.raises(WrongUse, match="--force"):
        write_folder(out, SECOND)
    write_folder(out, SECOND, force=True)
    assert contents(out) == texts(SECOND)


@pytest.mark.parametrize("force", [False, True])
def test_an_edited_file_that_is_not_in_the_way_stays(force: bool, tmp_path: Path) -> None:
    out = written(tmp_path)
    edit("old/deep/b.c")(out)
    write_folder(out, SECOND, force)
    assert contents(out) == {**texts(SECOND), "old/deep/b.c": "b\nmine"}


@pytest.mark.parametrize("name", ["../mine.c", "runtime/../../mine.c", "link/mine.c"])
def test_no_report_reaches_out_of_its_folder(name: str, tmp_path: Path) -> None:
    """Not even a sealed one."""
    (tmp_path / "mine.c").write_text("mine")
    write_folder(tmp_path / "out", {"report.json": with_report({name: b"mine"}, {})["report.json"]})
    (tmp_path / "out" / "link").symlink_to(tmp_path)
    write_folder(tmp_path / "out", SECOND)
    assert (tmp_path / "mine.c").read_text() == "mine"


@pytest.mark.parametrize("calls", range(5))
def test_a_write_that_fails_leaves_what_was_there(calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = written(tmp_path)
    before, names = contents(tmp_path), sorted(tmp_path.rglob("*"))
    replace, left = os.replace, [calls]

    def failing(source: Path, place: Path) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(28, "No space left on device")
        replace(source, place)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(WrongUse, match="No space left"):
        write_folder(out, SECOND)
    assert contents(tmp_path) == before and sorted(tmp_path.rglob("*")) == names


@pytest.mark.parametrize("calls", range(6))
def test_a_run_that_is_cut_off_is_gone_on_with(calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = written(tmp_path)
    replace, left = os.replace, [calls]

    class CutOff(BaseException):
        pass

    def failing(source: Path, place: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise CutOff
        replace(source, place)

    monkeypatch.setattr(os, "replace", failing)
    monkeypatch.setattr("mccompile.emit.folder._put_back", lambda done, made: None)
    try:
        write_folder(out, SECOND)
    except CutOff:
        assert calls < 5
    monkeypatch.setattr(os, "replace", replace)
    write_folder(out, SECOND)
    assert contents(out) == texts(SECOND)


def test_somebodys_own_report_and_sources_survive_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "report.json").write_text(json.dumps({"files": ["app.c", "conv.c"]}))
    for name in ("app.c", "conv.c"):
        (mine / name).write_text("int mine;\n")
    before = contents(mine)
    model = save(small_models.conv(), tmp_path)
    for more in ([], ["--force"]):
        assert cli.run([str(model), "-o", str(mine), *more]) == 2
        assert str(mine / "report.json") in capsys.readouterr().err
        assert contents(mine) == before


def test_the_command_overwrites_edited_files_when_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = save(small_models.conv(), tmp_path), tmp_path / "out"
    assert cli.run([str(model), "-o", str(out)]) == 0
    edit("main.c")(out)
    assert cli.run([str(model), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert str(out / "main.c") in said and "--force" in said
    assert (out / "main.c").read_text().endswith("mine")
    assert cli.run([str(model), "-o", str(out), "--force"]) == 0
    assert not (out / "main.c").read_text().endswith("mine")
