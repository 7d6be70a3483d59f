// The arena over the steps of a run: each block is a tensor or a workspace, hatched where two share bytes.
const ROLES = { input: "input", output: "output", state: "state", workspace: "workspace", tensor: "tensor" };

function momentLabels(build) {
  const at = new Map();
  build.steps.forEach((step, n) => at.set(step.moment, [...(at.get(step.moment) || []), n]));
  return moment => {
    const steps = at.get(moment);
    if (!steps) return moment === 0 ? "in" : "";
    return steps.length > 1 ? `${steps[0]}–${steps[steps.length - 1]}` : `${steps[0]}`;
  };
}

function lifeText(build, buffer) {
  const label = momentLabels(build), last = Math.min(buffer.end - 1, build.moments - 1);
  const from = label(buffer.start).split("–")[0], to = label(last).split("–").pop();
  if (from === "in") return to === "in" ? "before the first step" : to ? `start to step ${to}` : "the whole run";
  return !to ? `step ${from} to the end` : from === to ? `step ${from}` : `steps ${from} to ${to}`;
}

/** Where moments begin across: each is as wide as the number of steps that run in it, row by row. */
function beginnings(build) {
  const count = new Array(build.moments + 1).fill(0);
  build.steps.forEach(step => { count[step.moment]++; });
  const found = [0];
  for (let moment = 0; moment < build.moments; moment++) found.push(found[moment] + Math.max(1, count[moment]));
  return found;
}

function drawMap(build, b, pool, most, room) {
  const small = room < 600, left = 62, right = 10, top = 8, bottom = 26, height = small ? 300 : 360;
  const width = Math.max(room, 260), wide = width - left - right, high = height - top - bottom;
  const begins = beginnings(build), x = moment => left + begins[moment] / begins[build.moments] * wide, y = at => top + high - at / most * high;
  const own = build.buffers.map((buffer, n) => [buffer, n]).filter(([buffer]) => (buffer.pool || "") === pool.name);
  const blocks = [], hatches = [], texts = [], placed = [];
  const area = buffer => (buffer.end - buffer.start) * (buffer.high - buffer.low);
  for (const [buffer, n] of [...own].sort((p, q) => area(q[0]) - area(p[0]))) {
    const shape = { x: x(buffer.start), y: y(buffer.high), width: x(buffer.end) - x(buffer.start),
      height: Math.max(y(buffer.low) - y(buffer.high), 0.5) };
    blocks.push(svg("rect", { ...pick("buffer", b, n), class: `block ${buffer.role}${buffer.at_peak ? " peak" : ""}`, ...shape,
      "data-bytes": buffer.high - buffer.low, "aria-label": buffer.name },
      svg("title", { text: `${buffer.name}\n${bytes(buffer.high - buffer.low)}, ${lifeText(build, buffer)}` })));
    for (const other of buffer.shares || []) {
      if (other > n) continue;
      const there = build.buffers[other], low = Math.max(buffer.low, there.low), up = Math.min(buffer.high, there.high);
      const start = Math.max(buffer.start, there.start), end = Math.min(buffer.end, there.end);
      hatches.push(svg("rect", { ...pick("buffer", b, buffer.start >= there.start ? n : other), class: "shared",
        x: x(start), y: y(up), width: x(end) - x(start), height: Math.max(y(low) - y(up), 0.5) },
        svg("title", { text: `${buffer.name}\nand ${there.name}\nshare ${bytes(up - low)}` })));
    }
  }
  const free = box => placed.every(p => box.x + box.w <= p.x || p.x + p.w <= box.x || box.y + box.h <= p.y || p.y + p.h <= box.y);
  for (const [buffer] of [...own].sort((p, q) => q[0].high - q[0].low - p[0].high + p[0].low)) {
    const from = x(buffer.start) + 4, space = x(buffer.end) - from - 3, tall = y(buffer.low) - y(buffer.high);
    const lines = tall >= 30 ? [buffer.label, bytes(buffer.high - buffer.low)] : tall >= 14 ? [buffer.label] : [];
    if (space < 40 && tall > 50 && space > 9) {
      const text = fitted(buffer.label, tall - 8), box = { x: from - 1, y: y(buffer.high) + 3, w: 13, h: textWidth(text) + 2 };
      if (text && free(box)) {
        placed.push(box);
        texts.push(svg("text", { class: "label", text, transform: `translate(${from + 8} ${box.y + box.h}) rotate(-90)` }));
      }
      continue;
    }
    lines.every((line, row) => {
      const text = fitted(line, space, row ? line.length : 6);
      const box = { x: from, y: y(buffer.high) + 1 + row * 13, w: textWidth(text), h: 13 };
      if (!text || !free(box)) return false;
      placed.push(box);
      texts.push(svg("text", { x: from, y: box.y + 11, class: "label", text }));
      return true;
    });
  }
  const axis = ticks(most, 6, true).map(at => [svg("line", { class: "grid", x1: left, x2: width - right, y1: y(at), y2: y(at) }),
    svg("text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end", text: at ? size(at) : "0" })]);
  const label = momentLabels(build), steps = [];
  let end = left - 6;
  for (let moment = 0; moment < build.moments; moment++) {
    const text = label(moment), middle = (x(moment) + x(moment + 1)) / 2, half = textWidth(text) / 2;
    if (!text || middle - half < end + 8 || middle + half > width) continue;
    end = middle + half;
    steps.push(svg("line", { class: "mark", x1: middle, x2: middle, y1: top + high, y2: top + high + 4 }),
      svg("text", { class: "tick", x: middle, y: height - 8, "text-anchor": "middle", text }));
  }
  const line = (kind, at) => at > 0 && at <= most &&
    svg("line", { class: kind, x1: left, x2: width - right, y1: y(at), y2: y(at), "data-bytes": at });
  return svg("svg", { class: "map", width, height, role: "img", "aria-label": "Arena over steps" },
    svg("defs", {}, svg("pattern", { id: `hatch${b}`, width: 6, height: 6, patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)" }, svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, class: "stripe" }))),
    axis, blocks, hatches.map(node => fill(node, { fill: `url(#hatch${b})` }, [])), line("bound", pool.bound_bytes),
    line("limit", budget), texts, steps,
    svg("text", { class: "tick", x: left - 6, y: height - 8, "text-anchor": "end", text: "step" }));
}

function drawMemory() {
  const content = $("memory"), room = content.clientWidth, two = builds.length > 1 && room > 800;
  const each = two ? Math.floor((room - 24) / 2) : room;
  const count = Math.max(...builds.map(build => build.pools.length));
  const most = Array.from({ length: count }, (_, n) => Math.max(1, ...builds.map(build => (build.pools[n] || { bytes: 0 }).bytes)));
  const maps = builds.flatMap((build, b) => build.pools.map((pool, n) => el("figure", { style: `width: ${each}px` },
    el("figcaption", {}, builds.length > 1 && chip(b),
      el("b", { text: `${pool.name ? `Pool ${pool.name}` : "Arena"}: ${bytes(pool.bytes)}` }),
      pool.bytes > pool.bound_bytes ? `, lower bound for this order of steps ${bytes(pool.bound_bytes)}` : ", the lower bound for this order of steps"),
    drawMap(build, b, pool, most[n], each))));
  const used = new Set(builds.flatMap(build => build.buffers.map(buffer => buffer.role)));
  const legend = [["tensor", "tensor"], ["input", "input"], ["output", "output"], ["state", "state"],
    ["workspace", "workspace of a kernel"]].filter(([role]) => used.has(role));
  content.replaceChildren(el("h2", { text: "Memory" }),
    el("p", { class: "soft", text: "Across: steps of a run. Up: bytes of the arena. A block is a tensor, from the step that makes it to the last that reads it." }),
    el("ul", { class: "legend" }, legend.map(([role, text]) => el("li", {}, el("i", { class: role }), text)),
      el("li", {}, el("i", { class: "peak" }), "live at the peak"), el("li", {}, el("i", { class: "hatched" }), "two share bytes: in place, or one is part of the other"),
      el("li", {}, el("i", { class: "boundline" }), "lower bound for this order of steps"),
      budget <= Math.max(...most) && el("li", {}, el("i", { class: "limitline" }), `budget, ${size(budget)}`)),
    el("div", { class: "maps" }, maps), ...builds.map((build, b) => tensorTable(build, b)));
  mark();
}

const tensorOrder = { key: "bytes", all: false };
const TENSOR_COLUMNS = [["name", "Tensor"], ["bytes", "Size"], ["low", "Bytes of the arena"], ["start", "Live"]];

function tensorTable(build, b) {
  const rows = build.buffers.map((buffer, n) => ({ buffer, n, bytes: buffer.high - buffer.low }));
  const by = { name: row => row.buffer.label, bytes: row => -row.bytes, low: row => row.buffer.low, start: row => row.buffer.start };
  const value = by[tensorOrder.key];
  rows.sort((p, q) => value(p) < value(q) ? -1 : value(p) > value(q) ? 1 : p.n - q.n);
  const most = tensorOrder.all ? rows.length : 8;
  const head = TENSOR_COLUMNS.map(([key, text]) => el("button", { class: `sort${tensorOrder.key === key ? " chosen" : ""}`,
    "data-sort": key, text, on: { click: () => { tensorOrder.key = key; drawMemory(); } } }));
  return el("div", { class: "tensors" },
    el("h3", {}, builds.length > 1 && chip(b), `${rows.length} tensors and workspaces`),
    el("div", { class: "trow thead" }, head),
    rows.slice(0, most).map(({ buffer, n, bytes: count }) => el("div", { ...pick("buffer", b, n), class: "trow", title: buffer.name },
      el("span", { class: "name" }, el("i", { class: `${buffer.role}${buffer.at_peak ? " peak" : ""}` }), buffer.label),
      el("span", { class: "n", "data-bytes": count, text: bytes(count) }),
      el("span", { class: "n", text: `${whole(buffer.low)}–${whole(buffer.high)}` }),
      el("span", { class: "life", text: lifeText(build, buffer) }))),
    rows.length > 8 && el("button", { class: "more", text: tensorOrder.all ? "Show the largest" : `Show all ${rows.length}`,
      on: { click: () => { tensorOrder.all = !tensorOrder.all; drawMemory(); } } }));
}
