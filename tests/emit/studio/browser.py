"""A page as headless Chromium shows it at a width: a script runs in it, and what it returns comes back."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

# Boxes of text, cut where they are hidden, that lie over each other; and what is wider than the page.
OVERLAPS = """
function overlaps() {
  const boxes = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, holder = node.parentElement;
    if (!node.data.trim() || !holder.checkVisibility() || holder.closest("script, style, noscript, title")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      let box = { l: rect.left, t: rect.top, r: rect.right, b: rect.bottom, text: node.data.trim(), node };
      for (let up = holder; up && up !== document.body; up = up.parentElement) {
        if (getComputedStyle(up).overflowX === "visible" || up instanceof SVGElement) continue;
        const edge = up.getBoundingClientRect();
        box = { ...box, l: Math.max(box.l, edge.left), t: Math.max(box.t, edge.top), r: Math.min(box.r, edge.right),
          b: Math.min(box.b, edge.bottom) };
      }
      if (box.r - box.l > 1 && box.b - box.t > 1) boxes.push(box);
    }
  }
  boxes.sort((p, q) => p.t - q.t);
  const found = [];
  boxes.forEach((p, k) => {
    for (let n = k + 1; n < boxes.length && boxes[n].t < p.b - 3; n++) {
      const q = boxes[n];
      if (p.node !== q.node && Math.min(p.r, q.r) - Math.max(p.l, q.l) > 1 && p.b - q.t > 3)
        found.push(`${p.text.slice(0, 60)} | ${q.text.slice(0, 60)}`);
    }
  });
  const outside = boxes.filter(box => box.r > innerWidth + 1 || box.l < -1);
  const beyond = outside.map(box => `beyond: ${box.text.slice(0, 60)}`);
  return { found: [...found, ...beyond], boxes: boxes.length, wide: document.documentElement.scrollWidth - innerWidth };
}
"""


class Browser:
    """Headless Chromium, which speaks the DevTools protocol: JSON, each message with a zero byte behind it, from file 4
    and to file 3 of its process."""

    def __init__(self, command: str, folder: str) -> None:
        (theirs, self._write), (self._read, back) = os.pipe(), os.pipe()

        def hand_over() -> None:
            kept = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, back)]  # 3 or 4 may be one of the pipes
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
        asked = [command, "--headless", "--no-sandbox", *quiet, f"--user-data-dir={folder}", "--remote-debugging-pipe"]
        silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(asked, preexec_fn=hand_over, close_fds=False, **silent)
        os.close(theirs)
        os.close(back)
        self._sent, self._left = 0, b""
        page = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """The answer. What is told before it is handed to `told`."""
        self._sent += 1
        request: dict[str, Any] = {"id": self._sent, "method": method, "params": params}
        if hasattr(self, "session"):
            request["sessionId"] = self.session
        os.write(self._write, json.dumps(request).encode() + b"\0")
        self.told: list[Any] = []
        while (message := self._message()).get("id") != self._sent:
            self.told.append(message)
        assert "error" not in message, message
        return message["result"]

    def wait(self, method: str) -> None:
        while all(message.get("method") != method for message in self.told):
            self.told.append(self._message())

    def _message(self) -> Any:
        while b"\0" not in self._left:
            piece = os.read(self._read, 1 << 16)
            assert piece, "the browser has ended"
            self._left += piece
        text, _, self._left = self._left.partition(b"\0")
        return json.loads(text)


@cache
def browser() -> Browser:
    command = shutil.which("chromium") or shutil.which("google-chrome")
    if not command:
        pytest.skip("no Chromium is installed")
    folder = tempfile.mkdtemp(prefix="mccompile-browser-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    started = Browser(command, folder)
    atexit.register(started.process.wait)
    atexit.register(started.process.kill)
    return started


def shown(page: str, script: str, folder: Path, width: int = 1400, height: int = 4000) -> Any:
    """What a script returns that runs behind those of the page. The browser has nothing to complain of."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    chromium, said = browser(), []
    chromium.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    chromium.ask("Page.navigate", url=(folder / "page.html").as_uri())
    chromium.wait("Page.loadEventFired")
    said += chromium.told
    asked = f"JSON.stringify((() => {{ {OVERLAPS} {script} }})())"
    result = chromium.ask("Runtime.evaluate", expression=asked)
    said += chromium.told
    complaints = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
    assert not (wrong := [message for message in said if message.get("method") in complaints]), wrong
    assert "exceptionDetails" not in result, result
    return json.loads(result["result"]["value"])
