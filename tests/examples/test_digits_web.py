"""Digits drawn by hand in Chromium: what is drawn with a pointer is what the page says."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.test_more_examples import MCCOMPILE, copied, run
from tests.examples.test_voice import BROWSER, Quiet

# How a hand draws them, on a canvas of 256 by 256.
STROKES = {
    "0": [[(128, 40), (90, 60), (75, 128), (90, 200), (128, 220), (166, 200), (181, 128), (166, 60), (128, 40)]],
    "1": [[(100, 80), (135, 40), (135, 220)]],
    "4": [[(110, 40), (70, 140), (190, 140)], [(150, 90), (150, 225)]],
    "7": [[(75, 45), (180, 45), (120, 220)]],
}
HAND = """<!doctype html><iframe id="page" src="index.html" width="600" height="700"></iframe><script>
const strokes = STROKES_HERE;
page.onload = async () => {
  const page = document.getElementById("page").contentDocument, there = (id) => page.getElementById(id);
  while (page.title !== "Digits: ready") await new Promise((done) => setTimeout(done, 20));
  const point = (kind, [x, y]) => {
    const event = new PointerEvent(kind, { bubbles: true });
    Object.defineProperties(event, { offsetX: { value: x }, offsetY: { value: y } });
    there("drawn").dispatchEvent(event);
  };
  for (const [digit, lines] of Object.entries(strokes)) {
    there("clear").click();
    for (const line of lines) {
      point("pointerdown", line[0]);
      line.forEach((at) => point("pointermove", at));
      point("pointerup", line.at(-1));
    }
    console.log(`drawn ${digit}, read ${there("digit").textContent}, score ${there("score").textContent}.`);
  }
};
</script>"""
READ = re.compile(r"drawn (\d), read (\d), score (0\.\d+)\.")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    folder = copied("digits", tmp_path)
    run("make", MCCOMPILE, folder=folder / "web")
    site = folder / "build" / "web"
    lists = {digit: [[list(at) for at in line] for line in lines] for digit, lines in STROKES.items()}
    (site / "hand.html").write_text(HAND.replace("STROKES_HERE", str(lists)))
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/hand.html"
        server.shutdown()


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.skipif(not shutil.which("clang-19"), reason="clang-19 is not installed")
@pytest.mark.skipif(not shutil.which("wasm-ld-19"), reason="lld-19 is not installed")
def test_a_page_reads_digits_drawn_by_hand(address: str, tmp_path: Path) -> None:
    flags = [f"--user-data-dir={tmp_path / 'profile'}", "--headless", "--no-sandbox", "--disable-gpu"]
    read = said_by([BROWSER, *flags, "--enable-logging=stderr", "--remote-debugging-port=0", address], len(STROKES))
    assert {drawn: digit for drawn, digit, _ in read} == {digit: digit for digit in STROKES}


def said_by(command: list[str], count: int) -> list[tuple[str, str, str]]:
    """What it says on its console, up to so many lines, within two minutes."""
    found: list[tuple[str, str, str]] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as browser:
        late = threading.Timer(120, browser.terminate)
        late.start()
        assert browser.stderr is not None
        for line in browser.stderr:
            found += READ.findall(line)
            if len(found) == count:
                break
        late.cancel()
        browser.terminate()
    return found
