// What is picked, in full: names, figures, links, and the lines of C.
function showDetail(host) {
  const panel = $("detail"), { kind, build, index } = picked;
  const inside = panel.contains(host), show = { step: stepDetail, buffer: bufferDetail, plan: planDetail }[kind];
  panel.replaceChildren(el("button", { class: "close", "aria-label": "Close", text: "×", on: { click: hideDetail } }),
    ...show(builds[build], build, index).flat(Infinity).filter(Boolean));
  panel.classList.add("open");
  if (!narrow()) { document.querySelector("main").append(panel); panel.scrollTop = 0; return; }
  if (inside) return;
  const place = host.closest(".lrow, .trow, .prow, figure, .card, li, svg") || host;
  (place.matches(".card") ? $("answers") : place).after(panel);
}

function hideDetail() {
  Object.assign(picked, { kind: "", index: -1 });
  $("detail").classList.remove("open");
  emptyDetail();
  mark();
}

function emptyDetail() {
  $("detail").replaceChildren(el("p", { class: "soft", text: "Click a layer, a tensor or a plan: its full name, its memory, " +
    "its kernel and its lines of C appear here." }));
  document.querySelector("main").append($("detail"));
}

const facts = pairs => el("dl", { class: "facts" }, pairs.filter(Boolean).map(([title, ...value]) =>
  [el("dt", { text: title }), el("dd", {}, value)]));
const link = (kind, b, index, text, title) => el("button", { ...pick(kind, b, index), class: "link", title, text });
const stepLink = (b, n) => link("step", b, n, stepTitle(builds[b].steps[n], n));
const bufferLink = (b, n) => link("buffer", b, n, builds[b].buffers[n].label, builds[b].buffers[n].name);
const listed = items => el("ul", {}, items.map(item => el("li", {}, item)));

function stepDetail(build, b, n) {
  const step = build.steps[n], clock = clockOf(build), readers = build.steps.map((s, k) => [s, k]).filter(([s]) => s.after.includes(n));
  const unit = (title, value, note) => value !== undefined && [title, whole(value), el("small", { text: note })];
  const time = clock && step[clock[0]];
  const used = mode => step.touches.filter(([, written]) => written === mode).map(([buffer]) => buffer);
  const sharing = build.steps.filter(other => other.function === step.function).length;
  return [el("h3", {}, builds.length > 1 && chip(b), `Step ${n}: ${step.op}`), el("p", { class: "full", text: step.label }),
    facts([["Kernel", el("code", { text: step.kernel })], ["Function", el("code", { text: step.function })], ["Result", step.result],
      time !== undefined && [clock[1], `${brief(time)} ${clock[2]}`, el("small", { text: ` ${percent(time / totalOf(build, clock[0]))} of all; ${clock[3]}` })],
      unit("MACs", step.macs, step.macs && time ? ` ${brief(time / step.macs)} ${clock[2]} per MAC` : ""),
      ["Weights", bytes(step.weights_bytes)],
      step.code_bytes !== undefined && ["Code", bytes(step.code_bytes), el("small", { text: sharing > 1 ? ` shared by ${sharing} steps` : " as compiled" })],
      ["RAM", bytes(step.ram_bytes), el("small", { text: " read and written" })],
      step.stack_bytes !== undefined && ["Stack", bytes(step.stack_bytes)],
      step.signal_to_noise !== undefined && ["SNR", decibels(step.signal_to_noise), el("small", { text: " signal to noise against float" })]]),
    el("h4", { text: "Memory" }), el("p", {}, "reads ", used(0).map(k => [bufferLink(b, k), " "]), el("br"), "writes ", used(1).map(k => [bufferLink(b, k), " "])),
    el("h4", { text: "Graph" }), el("p", {}, "after ", step.after.length ? step.after.map(k => [stepLink(b, k), " "]) : "the inputs", el("br"),
      "read by ", readers.length ? readers.map(([, k]) => [stepLink(b, k), " "]) : "the outputs"),
    twins(b, n), el("h4", { text: `${step.nodes.length} nodes of the model` }), listed(step.nodes.map(name => el("code", { text: name }))),
    step.others.length > 0 && [el("h4", { text: "Kernels that were not chosen" }),
      listed(step.others.map(([kernel, cycles]) => [el("code", { text: kernel }), ` ${brief(cycles)} cycles, estimated` +
        (step.estimated_cycles ? `; chosen: ${brief(step.estimated_cycles)}` : "")]))],
    sourceOf(build, n)];
}

function twins(b, n) {
  const found = (data.pairs || []).flat().flatMap(([first, other, from, to]) =>
    first === b && from === n ? [[other, to]] : other === b && to === n ? [[first, from]] : []);
  return found.length > 0 && [el("h4", { text: "The same layer in other builds" }),
    found.map(([other, to]) => el("p", {}, chip(other), stepLink(other, to)))];
}

function sourceOf(build, n) {
  const pieces = build.lines.map((piece, k) => [piece, k]).filter(([piece]) => piece.steps.includes(n) && piece.what !== "control");
  return pieces.length > 0 && [el("h4", { text: "In the generated C" }), pieces.map(([piece]) => {
    const title = `${piece.file}, lines ${piece.first}–${piece.last}`;
    if (piece.text === undefined) return el("p", { class: "source", text: title });
    return el("details", { class: "source", ...(piece.what === "step" ? { open: "" } : {}) }, el("summary", { text: title }),
      el("pre", { tabindex: "0" }, undented(piece.text).map((line, k) => el("span", { "data-line": piece.first + k, text: line }))));
  })];
}

function undented(text) {
  const lines = text.split("\n"), filled = lines.filter(line => line.trim());
  const least = Math.min(...filled.map(line => line.length - line.trimStart().length));
  return lines.map(line => line.slice(least));
}

function bufferDetail(build, b, n) {
  const buffer = build.buffers[n], count = buffer.high - buffer.low;
  const writers = buffer.steps.filter(k => build.steps[k].touches.some(([at, written]) => at === n && written));
  const readers = buffer.steps.filter(k => build.steps[k].touches.some(([at, written]) => at === n && !written));
  return [el("h3", {}, builds.length > 1 && chip(b), { input: "Input", output: "Output", state: "State", workspace: "Workspace",
    tensor: "Tensor" }[buffer.role]), el("p", { class: "full" }, el("code", { text: buffer.name })),
    facts([["Size", bytes(count), el("small", { text: ` ${percent(count / build.figures.arena_bytes)} of the arena` })],
      buffer.type && ["Type", typeText(buffer)], ["Bytes", `${whole(buffer.low)} to ${whole(buffer.high)}`,
        buffer.pool && el("small", { text: ` of pool ${buffer.pool}` })], ["Live", lifeText(build, buffer)],
      ["Peak", buffer.at_peak ? "live at the peak of the arena" : "not live at the peak"]]),
    el("h4", { text: "Written by" }), writers.length ? listed(writers.map(k => stepLink(b, k))) : el("p", { text: "your program" }),
    el("h4", { text: "Read by" }), readers.length ? listed(readers.map(k => stepLink(b, k))) : el("p", { text: buffer.role === "output" ? "your program" : "no step" }),
    (buffer.shares || []).length > 0 && [el("h4", { text: "Shares bytes with" }), listed(buffer.shares.map(k => [bufferLink(b, k), ` ${how(k)}`]))]];

  function how(k) {
    const other = build.buffers[k];
    const together = Math.min(buffer.end, other.end) - Math.max(buffer.start, other.start);
    return together <= 1 ? "in place: the step that reads one last writes the other" : "one is a part of the other";
  }
}

function planDetail(build, b, n) {
  const plan = build.frontier[n], [key, unit] = planClock(build), fastest = Math.min(...build.frontier.map(each => each[key]));
  const others = Object.keys(build.options).filter(name => !["target", "prefer", "enough", "budget"].includes(name));
  return [el("h3", {}, builds.length > 1 && chip(b), `Plan ${n + 1}${plan.shown ? ": that of this page" : ""}`),
    el("pre", { tabindex: "0" }, el("span", { text: `mccompile ${build.file || `${build.model}.onnx`} -o out/ --target ${build.target} ${plan.options}`.trim() })),
    others.length > 0 && el("p", { class: "soft", text: `and the other options of this page: ${others.join(", ")}` }),
    facts([["RAM", bytes(planRam(plan)), el("small", { text: planRam(plan) <= budget ? ` within ${size(budget)}` : ` ${bytes(planRam(plan) - budget)} over ${size(budget)}` })],
      ["Weights", bytes(plan.weights_bytes)], plan.code_bytes !== undefined && ["Code", bytes(plan.code_bytes), el("small", { text: " as compiled" })],
      ["Time", `${brief(plan[key])} ${unit}`, el("small", { text: ` ${(plan[key] / fastest).toFixed(2)}x the fastest` })]])];
}
