// The graph as a list of steps: lines on the left lead from a step to those that read what it made.
const layerOrder = { key: "" };
const MOST_LANES = 10;

/** For each step its lane, the lanes that pass by, and where the lines that end at it come from. */
function lanesOf(steps) {
  const last = steps.map((_, n) => n);
  steps.forEach((step, n) => step.after.forEach(from => { last[from] = Math.max(last[from], n); }));
  const held = [];
  const found = steps.map((step, n) => {
    const before = held.map(owner => owner);
    const sources = step.after.map(from => held.indexOf(from)).filter(lane => lane >= 0);
    sources.filter(lane => last[held[lane]] <= n).forEach(lane => { held[lane] = -1; });
    const ended = sources.filter(lane => held[lane] === -1);
    let own = ended.length ? Math.min(...ended) : held.findIndex(owner => owner === -1 || owner === undefined);
    if (own < 0) own = held.length;
    const passing = before.map((owner, lane) => owner >= 0 && held[lane] === owner ? lane : -1).filter(lane => lane >= 0);
    held[own] = last[n] > n ? n : -1;
    return { own, sources, passing, goes: last[n] > n };
  });
  return { rows: found, count: Math.min(MOST_LANES, Math.max(1, held.length)) };
}

function laneCell(row, count) {
  const gap = narrow() ? 8 : 14, width = count * gap + 6;
  const at = lane => Math.min(lane, count - 1) * gap + gap / 2 + 3;
  const line = d => svg("path", { d, class: "edge" });
  return svg("svg", { class: "lanes", width, viewBox: `0 0 ${width} 40`, preserveAspectRatio: "none", "aria-hidden": "true",
    style: `width: ${width}px` },
    row.passing.map(lane => line(`M${at(lane)} 0V40`)),
    row.sources.map(lane => line(`M${at(lane)} 0C${at(lane)} 14 ${at(row.own)} 8 ${at(row.own)} 20`)),
    row.goes && line(`M${at(row.own)} 20V40`), line(`M${at(row.own)} 20h0.01`).cloneNode(), dot(at(row.own)));

  function dot(x) { return svg("path", { d: `M${x} 20h0.01`, class: "dot" }); }
}

function metrics() {
  const clocks = builds.map(clockOf), found = [];
  const has = key => builds.some(build => build.steps.some(step => step[key] !== undefined));
  const clock = clocks.find(Boolean);
  if (clock && clocks.every(each => each === clock)) found.push({ key: "time", title: clock[1], note: clock[0] === "us" ? `µs, ${clock[3]}` : clock[3],
    value: step => step[clock[0]], form: brief });
  else if (clock) found.push({ key: "time", title: "Time", note: "share of the build",
    value: (step, b) => clocks[b] && step[clocks[b][0]] / totalOf(builds[b], clocks[b][0]), form: percent });
  found.push({ key: "macs", title: "MACs", note: "multiply-accumulates", value: step => step.macs, form: brief });
  const code = has("code_bytes");
  found.push({ key: "flash", title: "Flash", note: code ? "weights, and code as compiled" : "weights", value: flashOf, form: size });
  found.push({ key: "ram", title: "RAM", note: "tensors and workspace", value: step => step.ram_bytes, form: size });
  if (has("signal_to_noise")) found.push({ key: "noise", title: "SNR, dB", note: "signal to noise against float (a longer bar is worse; 20 dB: an error of 10%, 40 dB: 1%; empty: the float model has no such tensor)",
    value: step => step.signal_to_noise === "exact" ? undefined : step.signal_to_noise, form: value => value.toFixed(1), least: true });
  return found;
}
const totalOf = (build, key) => build.steps.reduce((sum, step) => sum + (step[key] || 0), 0) || 1;

/** Rows: a step of the first build, and those of others that do the same work; what only others have stands behind. */
function layerRows() {
  const rows = builds[0].steps.map((_, n) => ({ at: [n] }));
  builds.slice(1).forEach((build, k) => {
    const b = k + 1, twins = new Map();
    for (const [first, other, from, to] of (data.pairs || []).flat()) if (first === 0 && other === b) twins.set(to, from);
    let behind = rows.find(row => row.at[0] === 0);
    build.steps.forEach((_, n) => {
      const from = twins.get(n), row = from !== undefined && rows.find(each => each.at[0] === from);
      if (row && row.at[b] === undefined) { row.at[b] = n; behind = row; return; }
      const own = { at: [] };
      own.at[b] = n;
      rows.splice(behind ? rows.indexOf(behind) + 1 : 0, 0, own);
      behind = own;
    });
  });
  return rows;
}

function metricCell(metric, row, most) {
  const kinds = builds.map((build, b) => {
    const step = row.at[b] === undefined ? null : build.steps[row.at[b]];
    const value = step ? metric.value(step, b) : undefined;
    if (value === undefined || value === null || (value === 0 && builds.length === 1))
      return el("span", { class: "bar", "data-build": b }, el("em", { text: step && step.signal_to_noise === "exact" && metric.least ? "exact" : "" }));
    const share = metric.least ? Math.max(0.02, Math.min(1, (60 - value) / 60)) : value / most;
    return el("span", { class: `bar b${b}${metric.least && value < 20 ? " bad" : ""}`, "data-build": b, "data-step": row.at[b],
      "data-metric": metric.key, "data-value": value },
      el("i", { style: `width: ${(share * 100).toFixed(2)}%` }), el("em", { text: metric.form(value) }));
  });
  return el("div", { class: "metric", "data-title": metric.title }, kinds);
}

function drawLayers() {
  const clock = clockOf(builds[0]), columns = metrics(), { rows: lanes, count } = lanesOf(builds[0].steps);
  let rows = layerRows();
  const metric = columns.find(each => each.key === layerOrder.key);
  if (metric) {
    const worth = row => {
      const found = builds.map((build, b) => row.at[b] === undefined ? undefined : metric.value(build.steps[row.at[b]], b))
        .filter(value => value !== undefined && value !== null);
      return found.length ? metric.least ? -Math.min(...found) : Math.max(...found) : -Infinity;
    };
    rows = [...rows].sort((p, q) => worth(q) - worth(p));
  }
  const most = columns.map(column => Math.max(1e-12, ...builds.flatMap((build, b) => build.steps.map(step => column.value(step, b) || 0))));
  const style = `--metrics: ${columns.length}; --lanes: ${count * (narrow() ? 8 : 14) + 6}px`;
  const sort = column => el("button", { class: `sort${layerOrder.key === column.key ? " chosen" : ""}`, "data-sort": column.key,
    title: column.note, text: narrow() && clock && column.title === clock[1] ? clock[2].replace(/^i/, "I") : column.title,
    on: { click: () => { layerOrder.key = layerOrder.key === column.key ? "" : column.key; drawLayers(); } } });
  $("layers").replaceChildren(el("h2", { text: "Layers" }),
    el("p", { class: "soft", text: "Each row is a step of a run, which does the work of one layer or of several that were " +
      "fused; lines lead from a step to those that read its result. Click a column to sort, a row to see its code." +
      ` ${columns.map(column => `${column.title}: ${column.note}`).join(". ")}.` }),
    el("div", { class: "layers", style }, el("div", { class: "lrow lhead" }, el("span"),
      el("button", { class: `sort${layerOrder.key ? "" : " chosen"}`, "data-sort": "", text: "Step, in order",
        on: { click: () => { layerOrder.key = ""; drawLayers(); } } }), columns.map(sort)),
    rows.map(row => {
      const b = row.at.findIndex(n => n !== undefined), n = row.at[b], step = builds[b].steps[n];
      const lane = b === 0 && !metric ? laneCell(lanes[n], count) : el("span", { class: "lanes", style: "width: 0" });
      return el("div", { ...pick("step", b, n), class: `lrow${b ? " other" : ""}`, title: step.nodes.join("\n") }, lane,
        el("div", { class: "what" }, el("span", { class: "name" }, el("b", { text: n }), ` ${step.label}`),
          builds.map((build, k) => row.at[k] !== undefined && el("span", { class: "kernel" }, builds.length > 1 && chip(k),
            builds[k].steps[row.at[k]].kernel))),
        columns.map((column, c) => metricCell(column, row, most[c])));
    })));
  mark();
}
