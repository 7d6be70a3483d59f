// The head of the page, and the figures of all builds beside each other.
const FIGURES = [
  ["arena_bytes", "RAM: arena", bytes], ["arena_bound_bytes", "arena: lower bound for this order of steps", bytes],
  ["arena_naive_bytes", "arena: without sharing memory", bytes], ["struct_bytes", "RAM: struct of the model", bytes],
  ["run_stack_bytes", "RAM: stack of a run", bytes], ["external_bytes", "RAM: inputs and outputs outside the arena", bytes],
  ["weights_bytes", "Flash: weights", bytes], ["code_bytes", "Flash: code", bytes],
  ["macs", "Multiply-accumulates", whole], ["run_instructions", "Instructions per run", whole],
  ["run_ticks", "Ticks of the board's clock per run", whole],
  ["median_us", "Time per run, median", value => `${value < 1000 ? value.toFixed(1) : whole(value)} µs`],
];
const chip = b => el("span", { class: `chip b${b}`, text: LETTERS[b] });

function drawHead() {
  const first = builds[0], options = Object.entries(first.options);
  $("top").replaceChildren(
    el("h1", { text: builds.length === 1 ? first.title : `${builds.length} builds side by side` }),
    ...(builds.length > 1 ? [el("ul", { class: "builds" }, builds.map((build, b) => el("li", {}, chip(b),
      el("b", { text: build.title }), ` ${build.steps.length} steps`)))] : []),
    el("p", { class: "soft", text: [`mccompile ${first.version}`, ...(builds.length > 1 ? [] : [`${first.steps.length} steps`,
      ...options.map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`)])].join(" · ") }),
    ...(data.without || []).map(text => el("p", { class: "worse", text })));
}

function change(value, base) {
  if (value === undefined || !base || value === base) return null;
  const share = (value - base) / base;
  return el("small", { class: share < 0 ? "better" : "worse", text: ` ${share > 0 ? "+" : "−"}${percent(Math.abs(share))}` });
}

function drawFigures() {
  const rows = FIGURES.filter(([key]) => builds.some(build => build.figures[key] !== undefined))
    .filter(([key]) => key !== "external_bytes" || builds.some(build => build.figures[key]));
  const accuracy = builds.map(build => build.quantized && build.quantized.accuracy);
  if (builds.length === 1) {
    $("figures").replaceChildren(el("h2", { text: "Figures" }), el("dl", { class: "tiles" },
      rows.map(([key, title, form]) => el("div", { "data-figure": key, "data-value": first(key) },
        el("dt", { text: title }), el("dd", { text: form(first(key)) })))), ...accuracyLine());
    return;
  }
  $("figures").replaceChildren(el("h2", { text: "Figures" }), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th"), builds.map((build, b) => el("th", { class: "n" }, chip(b))))),
    el("tbody", {}, rows.map(([key, title, form]) => el("tr", {}, el("th", { text: title }),
      builds.map((build, b) => {
        const value = build.figures[key];
        return el("td", { class: "n", "data-figure": key, "data-build": b, "data-value": value },
          value === undefined ? "–" : form(value), b > 0 && change(value, first(key)));
      })))))), ...accuracyLine());

  function first(key) { return builds[0].figures[key]; }
  function accuracyLine() {
    return accuracy.flatMap((found, b) => !found ? [] : el("p", { text: `${builds.length > 1 ? `${LETTERS[b]}: ` : ""}Right ` +
      `answers: ${(found.before * 100).toFixed(2)}% in float, ${(found.after * 100).toFixed(2)}% here, ` +
      `of ${found.samples} samples.` }));
  }
}

function drawMore() {
  const parts = builds.map((build, b) => el("details", {},
    el("summary", { text: `Passes, and copies that remain${builds.length > 1 ? `: build ${LETTERS[b]}` : ""}` }),
    el("p", { text: build.moves.length ? `${build.moves.length} transposes or copies remain:` :
      "No transposes or copies remain." }),
    el("ul", {}, build.moves.map(move => el("li", {}, el("code", { text: move.name }), ` ${bytes(move.bytes)}; ${move.reason}`))),
    build.float_in_quantized.length > 0 && el("p", { text: "Computed in float between quantized tensors:" }),
    el("ul", {}, build.float_in_quantized.map(each => el("li", {}, el("code", { text: each.node }), ` ${each.why}`))),
    el("p", { text: "Passes that changed something: nodes, copies and bytes between nodes, before → after." }),
    el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Pass", "Nodes", "Copies", "Bytes"].map(text => el("th", { text })))),
      el("tbody", {}, build.passes.map(([name, ...pairs]) => el("tr", {}, el("td", { text: name }),
        pairs.map(([before, after]) => el("td", { class: "n", text: before === after ? after === null ? "" : whole(after) :
          `${before === null ? "–" : whole(before)} → ${after === null ? "–" : whole(after)}` })))))))));
  $("more").replaceChildren(el("h2", { text: "How it was made" }), ...parts);
}

function drawChanges() {
  const since = data.since;
  if (!since) return;
  $("changes").replaceChildren(el("h2", { text: "What changed" }),
    el("p", { class: "soft", text: `${since.before} → ${since.after}` }),
    ...(since.options || []).map(text => el("p", {}, "Options: ", el("code", { text }))),
    ...(worse(since).length ? [] : [el("p", { text: "No figure got worse." })]),
    el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["", "before", "now", "change"].map((text, n) => el("th", { class: n ? "n" : "", text })))),
      el("tbody", {}, [...since.figures].sort((p, q) => grown(q) - grown(p)).map(({ what, before, after }) => el("tr", {}, el("th", { text: what }),
        el("td", { class: "n", text: whole(before) }), el("td", { class: "n", text: whole(after) }),
        el("td", { class: "n" }, before === after ? "same" : change(after, before) || "new")))))),
    el("p", { text: stepsChanged(since) }),
    el("ul", { class: "changes" }, since.steps.map(({ name, change: what, step }) =>
      el("li", step === undefined ? {} : { ...pick("step", since.build, step), class: "link" },
        el("span", { class: "name", title: name, text: step === undefined ? name : stepTitle(builds[since.build].steps[step], step) }),
        " ", el("span", { class: "soft", text: what })))));
}
