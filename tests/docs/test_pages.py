"""What the documentation tells to type works, page by page; see pages.py."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import COMMENT, TOP, Block, Reader, blocks
from tests.docs.warm import Warm

DOCS = TOP / "docs"
PAGES = sorted([TOP / "README.md", *DOCS.rglob("*.md")])
WITH_CODE = [page for page in PAGES if any(not block.not_run for block in blocks(page.read_text(encoding="utf-8")))]


@pytest.fixture(scope="module")
def mccompile() -> Iterator[str]:
    """The text of the command."""
    with tempfile.TemporaryDirectory() as folder:
        warm = Warm(Path(folder))
        yield warm.client
        warm.stop()


def name(page: Path) -> str:
    return page.relative_to(TOP).as_posix()


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_what_a_page_tells_to_do_works(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mccompile: str
) -> None:
    reader = Reader(tmp_path, name(page), mccompile)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCCOMPILE_CACHE", reader.environment["MCCOMPILE_CACHE"])
    for block in blocks(page.read_text(encoding="utf-8")):
        if not block.not_run:
            reader.do(block)
    if reader.left_out:
        pytest.skip("the rest works; " + ", ".join(reader.left_out))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_all_code_of_a_page_is_in_blocks_that_can_be_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = len(re.findall(r"(?m)^ *```", text))
    found = [block for block in blocks(text) if text.splitlines()[block.line - 1].startswith("```")]
    assert fences == 2 * len(found), "a fence is indented, or is never closed"
    comments = len(re.findall("<!-- *(?:not run|needs|setup)", text))
    assert comments == len(COMMENT.findall(text)), "a comment that nobody understands"
    outside = re.sub(r"(?ms)^```.*?^```$", "", text)
    indented = re.findall(r"(?m)^\n {4,}(?![-*|]).*", outside)
    assert not indented, f"code that no test runs, because it is indented instead of fenced: {indented}"


def test_a_block_knows_its_language_its_file_and_what_comments_say_of_it() -> None:
    text = (
        '<!-- setup: touch a -->\n\n```sh\nls\n```\n<!-- not run: no\nboard -->\n\n```c title="x/main.c"\nint x;\n```\n'
        "<!-- needs: qemu gcc -->\n```console\n$ a\nb\n```\n"
    )
    assert list(blocks(text)) == [
        Block(1, "sh", "touch a"),
        Block(3, "sh", "ls\n"),
        Block(9, "c", "int x;\n", title="x/main.c", not_run="no\nboard"),
        Block(13, "console", "$ a\nb\n", needs=("qemu", "gcc")),
    ]


@pytest.mark.parametrize(
    "block",
    [
        Block(1, "sh", "false\ntrue\n"),
        Block(1, "console", "$ echo 1\n2\n"),
        Block(1, "console", "$ true\n$ false\n"),
        Block(1, "python", "assert 1 == 2\n"),
        Block(1, "yaml", "a: 1\n"),
    ],
    ids=["sh", "wrong output", "no output", "python", "language"],
)
def test_what_does_not_work_is_found(block: Block, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Reader(tmp_path, "page", "").do(block)


def test_what_works_passes(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "page", "")
    for block in (
        Block(1, "c", "int x;\n", title="src/x.c"),
        Block(1, "sh", "test -e src/x.c\n"),
        Block(1, "console", "$ printf '1 2\\n3\\n'\n1 ...\n3\n$ false || echo no\nno\n"),
        Block(1, "python", "seen = 1\n"),
        Block(1, "python", "assert seen\n"),
        Block(1, "text", "anything\n"),
    ):
        reader.do(block)
    reader.do(Block(7, "sh", "false\n", needs=("no-such-command",)))
    assert reader.left_out == ["line 7 needs no-such-command"]


def test_a_warm_command_is_the_command(mccompile: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path, "page", mccompile)
    cold = [sys.executable, "-m", "mccompile", "examples/nothing.onnx", "-o", "out"]
    done = subprocess.run(cold, cwd=tmp_path, env=reader.environment, capture_output=True, text=True)
    assert reader.shell("mccompile examples/nothing.onnx -o out") == (done.returncode, done.stderr)
    assert reader.shell("mccompile targets | head -1")[1].startswith("target ")
