"""Stories, token by token: what the C program writes is what onnxruntime gives that is handed all of the past."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.examples.test_more_examples import EXAMPLES, MCCOMPILE, copied, run

BEGIN = "Once there was a brave"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = copied("story", tmp_path_factory.mktemp("examples"))
    run("make", "build/write", MCCOMPILE, folder=made)
    return made


def most_likely(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The story that begins so, always with the likeliest token."""
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.syspath_prepend(str(EXAMPLES / "story"))
    from stories import as_header, encoded, pieces_of, stories  # type: ignore[import-not-found]

    pieces = pieces_of(stories(3000, 7), 256)
    assert as_header(pieces) == (EXAMPLES / "story" / "pieces.h").read_text()
    session = onnxruntime.InferenceSession(EXAMPLES / "story" / "story.onnx")
    past = {i.name: np.zeros((1, 4, 0, 16), np.float32) for i in session.get_inputs() if i.name != "token"}
    tokens = encoded(text, pieces)
    for at in range(95):
        logits, *present = session.run(None, {"token": np.array([[tokens[at]]]), **past})
        past = dict(zip(past, present, strict=True))
        if at == len(tokens) - 1:
            tokens.append(int(np.argmax(logits)))
            if pieces[tokens[-1]].endswith("\n"):
                break
    return "".join(pieces[token] for token in tokens)


def test_the_likeliest_story(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("build/write", BEGIN, folder=folder)
    assert said == most_likely(BEGIN, monkeypatch)
    assert said.count(".") >= 4
    assert "for the next run" not in (folder / "build" / "out" / "story.c").read_text()  # nothing is copied


def test_stories_by_chance(folder: Path) -> None:
    """Whoever it is about stays the same, and other numbers give other stories."""
    begin = "Long ago there was a shy frog called Ben."
    told = {run("build/write", "-k", "5", "-s", str(seed), begin, folder=folder) for seed in range(1, 9)}
    assert len(told) > 4
    assert sum(story.split("called Ben. ")[1].startswith("Ben ") for story in told) >= len(told) - 1


def test_what_it_cannot_read(folder: Path) -> None:
    done = subprocess.run(["build/write", "Ünder"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 2 and b"no piece begins like" in done.stderr


def test_the_program_is_clean(folder: Path) -> None:
    folders = ["-I.", "-Ibuild/out", "-Ibuild/out/runtime"]
    run("gcc", *FLAGS, *folders, "-c", "write.c", "-o", "write.o", folder=folder)
