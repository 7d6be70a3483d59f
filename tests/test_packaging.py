"""What is installed is what is promised: five dependencies, one command, a wheel with templates and runtime in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import mccompile

TOP = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_dependencies_are_exactly_five() -> None:
    names = [re.split(r"[^a-z0-9]", requirement)[0] for requirement in PROJECT["dependencies"]]
    assert names == ["onnx", "numpy", "jinja2", "click", "cffi"]


def test_the_command_is_the_cli() -> None:
    assert PROJECT["scripts"] == {"mccompile": "mccompile.cli:main"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(TOP)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (built,) = folder.glob("*.whl")
    assert built.name.startswith(f"mccompile-{mccompile.__version__}-")
    return zipfile.ZipFile(built)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "mapped"),
    [
        ("mccompile", "mccompile"),
        ("kernels_templates", "mccompile/_kernels_templates"),
        ("runtime_c", "mccompile/_runtime_c"),
    ],
)
def test_the_wheel_holds_every_file_of(wheel: zipfile.ZipFile, folder: str, mapped: str) -> None:
    files = [path.relative_to(TOP / folder) for path in (TOP / folder).rglob("*") if path.is_file()]
    caches = re.compile(r"(^|/)(\.|__pycache__/)")
    wanted = {f"{mapped}/{file.as_posix()}" for file in files if not caches.search(file.as_posix())}
    assert wanted
    assert wanted <= set(wheel.namelist())


@pytest.mark.slow
def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in wheel.namelist()} == {
        "mccompile",
        f"mccompile-{mccompile.__version__}.dist-info",
    }
