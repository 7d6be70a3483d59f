"""Plug-ins are found by folder: sorted, once, and with a clear error for a file that cannot be imported."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mccompile.base import discovery
from mccompile.base.errors import BadFile, InternalError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "plugins_for_test"
    folder.mkdir()
    for name in ("__init__", "zebra", "ant", "_private"):
        (folder / f"{name}.py").write_text(f"WHO = {name!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder.name


def test_modules_of_a_package_come_sorted_and_without_private_ones(package: str) -> None:
    assert [module.WHO for module in discovery.import_package_modules(package)] == ["ant", "zebra"]


def test_a_module_is_not_a_package(package: str) -> None:
    with pytest.raises(InternalError, match="not a package"):
        discovery.import_package_modules(f"{package}.ant")


def test_a_file_is_executed_once_per_name(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("from dataclasses import dataclass\n@dataclass\nclass Thing:\n    size: int\n")
    first = discovery.import_file(path, "discovery_test_once")
    assert discovery.import_file(path, "discovery_test_once") is first
    assert first.Thing(3).size == 3


def test_a_file_is_whole_for_a_thread_that_asks_while_another_imports_it(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text("import time\ntime.sleep(0.2)\nWHOLE = True\n")
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(discovery.import_file, path, "discovery_test_threads") for _ in range(2)]
    assert [task.result().WHOLE for task in asked] == [True, True]


def test_two_files_cannot_share_a_name(tmp_path: Path) -> None:
    for stem in ("one", "two"):
        (tmp_path / f"{stem}.py").write_text("")
    discovery.import_file(tmp_path / "one.py", "discovery_test_shared")
    with pytest.raises(InternalError, match="both to be imported"):
        discovery.import_file(tmp_path / "two.py", "discovery_test_shared")


@pytest.mark.parametrize("source", ["def broken(:\n", "import no_such_module_anywhere\n", None])
def test_a_file_that_cannot_be_imported_is_named_and_forgotten(tmp_path: Path, source: str | None) -> None:
    path = tmp_path / "mine.py"
    if source is not None:
        path.write_text(source)
    with pytest.raises(BadFile, match=r"cannot import mine\.py"):
        discovery.import_file(path, "discovery_test_broken")
    assert "discovery_test_broken" not in sys.modules


def test_data_folders_lie_beside_the_package_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mccompile").mkdir()
    (tmp_path / "runtime_c").mkdir()
    monkeypatch.setattr(discovery, "_PACKAGE", tmp_path / "mccompile")
    assert discovery.data_folder("runtime_c") == tmp_path / "runtime_c"


def test_data_folders_of_a_wheel_win_over_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mccompile" / "_runtime_c").mkdir(parents=True)
    (tmp_path / "runtime_c").mkdir()
    monkeypatch.setattr(discovery, "_PACKAGE", tmp_path / "mccompile")
    assert discovery.data_folder("runtime_c") == tmp_path / "mccompile" / "_runtime_c"


def test_an_incomplete_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_PACKAGE", tmp_path)
    with pytest.raises(InternalError, match="incomplete"):
        discovery.data_folder("runtime_c")
