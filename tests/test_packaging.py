"""What is installed is what is promised: five dependencies, one command, a wheel with templates and runtime in it, that
an sdist builds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import mccompile
from distribution import image
from mccompile.targets import api as targets
from mccompile.toolchain.tools import packages

TOP = Path(__file__).resolve().parent.parent
FIELDS = ("Author", "Classifier", "License-Expression", "Requires-Python")
_FILE = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = _FILE["project"], _FILE["build-system"]


def test_the_dependencies_are_exactly_five() -> None:
    names = [re.split(r"[^a-z0-9]", requirement)[0] for requirement in PROJECT["dependencies"]]
    assert names == ["onnx", "numpy", "jinja2", "click", "cffi"]


def test_the_command_is_the_cli() -> None:
    assert PROJECT["scripts"] == {"mccompile": "mccompile.cli:main"}


def test_the_conda_recipe_repeats_the_project() -> None:
    recipe = (TOP / "distribution" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)
    assert run is not None
    wanted = [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert run[1].split("\n")[:-1] == [f"    - {each.replace('>=', ' >=')}" for each in wanted]
    host = re.search(r"    - hatchling (\S+)", recipe)
    assert host is not None and f"hatchling{host[1]}" in BUILD["requires"]
    for name, value in PROJECT["scripts"].items():
        assert f"    - {name} = {value}\n" in recipe
    assert f'{{% set version = "{mccompile.__version__}" %}}' in recipe
    assert f'summary: "{PROJECT["description"]}"' in recipe and f"license: {PROJECT['license']}\n" in recipe


def test_the_image_installs_what_there_is() -> None:
    lines = [*image.lines(image.FILE.read_text(encoding="utf-8"))]
    assert [line.instruction for line in lines] == ["FROM", "RUN", "COPY", "RUN", "WORKDIR", "ENTRYPOINT", "CMD"]
    (base,) = re.findall(r"^python:(3\.\d+)-", lines[0].rest)
    assert [int(n) for n in base.split(".")] >= [int(n) for n in PROJECT["requires-python"].lstrip(">=").split(".")]
    (extras,) = re.findall(r"/src\[(.*)\]", lines[3].rest)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    apt = next(command for command in lines[1].commands if command[:2] == ["apt-get", "install"])
    assert {*packages([targets.load("cortex-m4").compiler, "qemu-system-arm", "gcc"])} <= {*apt}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(TOP)]  # from the sdist
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (built,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    assert sdist.name == f"mccompile-{mccompile.__version__}.tar.gz"
    assert built.name.startswith(f"mccompile-{mccompile.__version__}-")
    return zipfile.ZipFile(built)


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in wheel.namelist()} == {
        "mccompile",
        f"mccompile-{mccompile.__version__}.dist-info",
    }


@pytest.mark.thorough
def test_an_index_shows_what_is_true(wheel: zipfile.ZipFile) -> None:
    folder = f"mccompile-{mccompile.__version__}.dist-info"
    said = wheel.read(f"{folder}/METADATA").decode().split("\n\n")[0].splitlines()
    fields = {name: [line.split(": ", 1)[1] for line in said if line.startswith(f"{name}: ")] for name in FIELDS}
    assert fields["License-Expression"] == ["Apache-2.0"] and fields["Requires-Python"] == [">=3.11"]
    assert fields["Author"] == ["The mccompile team"] and not any("@" in line for line in said)
    assert not any(each.startswith("License ::") for each in fields["Classifier"])  # the expression says it
    assert "[pytest11]\nmccompile = mccompile.python.pytest_plugin" in wheel.read(f"{folder}/entry_points.txt").decode()
    assert "mccompile/py.typed" in wheel.namelist()
