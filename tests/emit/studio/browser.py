"""A page as headless Chromium shows it at a width: a script runs in it, and what it returns comes back."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_FRAME = """<!doctype html><title>frame</title><pre id="told"></pre>
<iframe src="page.html" width="{width}" height="{height}" style="border: 0"></iframe>
<script>
addEventListener("message", event => {{ document.getElementById("told").textContent = event.data; }});
</script>"""
_SCRIPT = """<script>
parent.postMessage(JSON.stringify((() => {{ {overlaps} {script} }})()), "*");
</script></body>"""
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


def shown(page: str, script: str, folder: Path, width: int = 1400, height: int = 4000) -> Any:
    """What a script returns that runs behind those of the page. The browser has nothing to complain of."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium is installed")
    text = page.replace("</body>", _SCRIPT.format(overlaps=OVERLAPS, script=script))
    (folder / "page.html").write_text(text, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(_FRAME.format(width=width, height=height), encoding="utf-8")
    quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command = [browser, "--headless", "--no-sandbox", *quiet, f"--user-data-dir={folder}/user"]
    command += ["--window-size=1500,1000", "--virtual-time-budget=3000"]
    command += ["--enable-logging=stderr", "--dump-dom", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert told and told[1], "the page's script has not come to its end"
    return json.loads(html.unescape(told[1]))
