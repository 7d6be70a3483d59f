"""Voice activity: in a pipe of samples on this machine, and in Chromium, whose microphone is the same recording."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.examples.test_more_examples import MCCOMPILE, copied, run

VOICED = ((0.6, 2.0), (3.6, 4.8))  # seconds of the recording
BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""
EVENT = re.compile(r"(voice from|to) (\d+\.\d+) s")


def heard(said: str) -> list[float]:
    return [float(time) for _, time in EVENT.findall(said)]


def test_a_pipe_of_samples(tmp_path: Path) -> None:
    said = run("make", "run", MCCOMPILE, folder=copied("voice", tmp_path))
    wanted = [time for span in VOICED for time in span]
    assert all(0 < time - edge < 0.35 for time, edge in zip(heard(said), wanted, strict=True))


def test_the_programs_are_clean(tmp_path: Path) -> None:
    folder = copied("voice", tmp_path)
    run("make", "run", MCCOMPILE, folder=folder)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
    folders = ["-I.", "-Ibuild/generic", "-Ibuild/generic/runtime"]
    run("gcc", *flags, *folders, "-c", "desktop.c", "-o", "a.o", folder=folder)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    folder = copied("voice", tmp_path)
    run("make", "web", MCCOMPILE, folder=folder)
    handler = functools.partial(Quiet, directory=str(folder / "build" / "web"))
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/#listen"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.skipif(not shutil.which("clang-19"), reason="clang-19 is not installed")
@pytest.mark.skipif(not shutil.which("wasm-ld-19"), reason="lld-19 is not installed")
def test_a_microphone_in_a_browser(address: str, tmp_path: Path) -> None:
    """A busy machine may stretch what its microphone gives, so only the order of events counts."""
    recording = Path(__file__).parents[2] / "examples" / "voice" / "recording.wav"
    flags = [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={recording}%noloop",
        "--autoplay-policy=no-user-gesture-required",
        "--enable-logging=stderr",
        "--remote-debugging-port=0",
    ]
    events = said_by([BROWSER, *flags, address], 2 * len(VOICED))
    assert [what for what, _ in events] == ["voice from", "to"] * len(VOICED)


def said_by(command: Sequence[str], count: int) -> list[tuple[str, str]]:
    """The first events on its console; none where there are not so many within a minute."""
    found: list[tuple[str, str]] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as browser:
        late = threading.Timer(60, browser.terminate)
        late.start()
        assert browser.stderr is not None
        for line in browser.stderr:
            found += EVENT.findall(line) if "CONSOLE" in line else []
            if len(found) == count:
                break
        late.cancel()
        browser.terminate()
    return found
