"""Tests each importer, and what compiles for Ethos-U, in an environment of its own, which holds mccompile, pytest and
one extra only: `python -m tests.importers.environments pytorch keras`, or all. Environments are kept in build/importers
and made anew when what they need has changed.

PyTorch is the one of which indexes offer builds of very different sizes: pip takes one without CUDA (2.x.y+cpu) before
another of the same version, where its configuration (PIP_FIND_LINKS, PIP_EXTRA_INDEX_URL) has one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PLACE = TOP / "build" / "importers"
_PAGES = "tests/docs/test_pages.py::test_what_a_page_tells_to_do_works"


@dataclass(frozen=True)
class Environment:
    extra: str
    more: tuple[str, ...] = ()  # what tests use besides, and versions
    page: str = ""  # of docs/roads, whose blocks are run as well
    without: str = ""  # why it is left out where nobody names it
    tests: tuple[str, ...] = ()  # for pytest; empty: tests/importers/test_<name>.py


ENVIRONMENTS = {
    "pytorch": Environment("torch", ("torch==2.13.*", "torchao"), "pytorch"),
    "keras": Environment("keras", ("torch==2.13.*",), "keras"),
    "saved_model": Environment("tensorflow", without="its packages take 2 GB; name it to test it"),
    "scikit_learn": Environment("sklearn", (), "scikit_learn"),
    "lightgbm": Environment("lightgbm", (), "lightgbm"),
    "xgboost": Environment("xgboost"),
    "catboost": Environment("catboost"),
    "ethos_u": Environment(
        "ethos-u",
        ("ai-edge-litert", "onnxruntime"),
        tests=("tests/accelerators/test_ethos_u.py", "tests/accelerators/test_ethos_u_files.py", "-k", "not cortex"),
    ),
}


def prepared(name: str) -> Path:
    """The Python of an environment."""
    wanted = ENVIRONMENTS[name]
    folder = PLACE / name
    stamp, python = folder / "made.txt", folder / "bin" / "python"
    asked = [f"{TOP}[{wanted.extra}]", "pytest>=8.0", *wanted.more]
    key = hashlib.sha256("\n".join([*asked, (TOP / "pyproject.toml").read_text(encoding="utf-8")]).encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != key:
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, "--editable", *asked], check=True)
        stamp.write_text(key, encoding="utf-8")
    return python


def tested(name: str) -> bool:
    started = time.monotonic()
    try:
        python = prepared(name)
    except subprocess.CalledProcessError as error:
        print(f"{name}: cannot be installed (exit code {error.returncode})", flush=True)
        return False
    installed = time.monotonic()
    asked, page = [*(ENVIRONMENTS[name].tests or [f"tests/importers/test_{name}.py"])], ENVIRONMENTS[name].page
    if page:
        asked.append(f"{_PAGES}[docs/roads/{page}.md]")
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    how = ["-q", "-rs", "-p", "no:cacheprovider", "--disable-warnings", "--show-capture=no"]
    command = [str(python), "-m", "pytest", *how, *asked]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=TOP, env=environment, text=True, check=False, **kept)
    times = f"{installed - started:.0f} s to install, {time.monotonic() - installed:.0f} s to test"
    print(f"{done.stdout.rstrip()}\n{name}: {times}", flush=True)
    return done.returncode == 0 and "SKIPPED" not in done.stdout  # what tests need is what the environment is for


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ENVIRONMENTS)}; default: all that are meant for CI")
    parser.add_argument("--jobs", type=int, default=2, help="environments at a time")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in ENVIRONMENTS]
    if unknown:
        parser.error(f"there are {', '.join(ENVIRONMENTS)}, not {', '.join(unknown)}")
    names = asked.names or [name for name, wanted in ENVIRONMENTS.items() if not wanted.without]
    with ThreadPoolExecutor(asked.jobs) as pool:
        results = list(pool.map(tested, names))
    for name, wanted in ENVIRONMENTS.items():
        if name not in names and wanted.without:
            print(f"{name} is left out: {wanted.without}")
    print(f"{sum(results)} of {len(results)} importers are open")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
