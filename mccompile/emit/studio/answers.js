// The six questions that bring people here, answered in a sentence each.
function drawAnswers() {
  const build = builds[0], b = 0;
  const box = el("input", { type: "number", id: "budget", min: "0", step: "any", value: budget / 1024, "aria-label": "Budget of RAM in KB",
    on: { change: event => { budget = Math.max(0, Number(event.target.value)) * 1024; drawAnswers(); drawMemory(); drawPlans(); } } });
  $("answers").replaceChildren(el("div", { class: "cards" },
    largest(build, b), fits(build, b, box), slowest(build, b), worst(), changed(), advised(build, b)));
  mark();
}

const card = (title, what, ...lines) => el("div", { class: "card", ...what }, el("h3", {}, title), lines);
const of = (b, ...title) => el("span", {}, builds.length > 1 && chip(b), title);
const flag = text => el("code", { class: "flag", text });
const big = text => el("b", { class: "big", text });
/** The step, and the nodes that it does the work of where tensors are called otherwise than these. */
function named(b, n) {
  const step = builds[b].steps[n], nodes = step.nodes.filter(node => node && !/QuantizeLinear/i.test(node));
  const told = nodes.length > 0 && !nodes.some(node => node.includes(step.label));
  return [el("p", { class: "name", title: step.nodes.join("\n") }, builds.length > 1 && chip(b), stepTitle(step, n)),
    told && el("p", { class: "soft name", text: nodes.slice(0, 2).join(", ") })];
}
const soft = (...parts) => el("p", { class: "soft" }, parts);

function largest(build, b) {
  const all = build.buffers.map((_, n) => n).sort((p, q) => span(build.buffers[q]) - span(build.buffers[p]));
  const order = all.filter(n => build.buffers[n].role !== "workspace"), top = all[0];
  if (!order.length) return card(of(b, "Largest tensor"), {}, soft("None: nothing is in the arena."));
  const n = order[0], buffer = build.buffers[n], alike = order.filter(k => span(build.buffers[k]) === span(buffer)).length;
  return card(of(b, "Largest tensor"), pick("buffer", b, n), big(bytes(span(buffer))), el("p", { class: "name", title: buffer.name, text: buffer.label }),
    buffer.type && soft(typeText(buffer)), soft(`${percent(span(buffer) / build.figures.arena_bytes)} of the arena; live: ${lifeText(build, buffer)}`,
      alike > 1 && `. It is one of ${alike} of that size`,
      top !== n && span(build.buffers[top]) > span(buffer) && [". Larger: ", link("buffer", b, top,
        `${build.buffers[top].label}, ${bytes(span(build.buffers[top]))}`, build.buffers[top].name)]));

  function span(each) { return each.high - each.low; }
}

function needed(build) {
  const figures = build.figures;
  return figures.arena_bytes + (figures.struct_bytes || 0) + (figures.run_stack_bytes || 0) + (figures.external_bytes || 0);
}

function fits(build, b, box) {
  const used = needed(build), all = build.figures.struct_bytes !== undefined, title = of(b, "Does it fit in ", box, " KB?");
  const what = all ? "Arena, struct and stack" : "The arena; struct and stack were not measured";
  if (used <= budget) return card(title, {}, big(`Yes: ${size(used)}`), soft(`${what}; ${size(budget - used)} left.`));
  const best = build.frontier.length && bestPlan(build), plan = best && planRam(best) <= budget && best;
  const peak = build.buffers.map((buffer, n) => [buffer, n]).filter(([buffer]) => buffer.at_peak)
    .sort((p, q) => q[0].high - q[0].low - p[0].high + p[0].low).slice(0, 3);
  const over = big(`No: ${size(used)}, ${size(used - budget)} too much`);
  const held = soft("Largest at the peak:", peak.map(([buffer, n]) => [el("br"), link("buffer", b, n, `${buffer.label} ${size(buffer.high - buffer.low)}`, buffer.name)]));
  if (plan) return card(title, {}, over, el("p", {}, "Take ", link("plan", b, build.frontier.indexOf(plan), planName(plan)), `: ${size(planRam(plan))}.`), held);
  const least = build.frontier.length ? build.frontier.reduce((p, q) => planRam(q) < planRam(p) ? q : p) : build.smallest;
  const rest = build.frontier.length ? 0 : used - build.figures.arena_bytes, takes = least && planRam(least) + rest;
  const other = `make these tensors smaller (resolution, channels${build.buffers.some(isFloat) ? ", int8" : ""})`;
  const words = !least ? `Try --prefer ram, which runs layers row by row, or ${other}.` :
    takes <= budget ? `Take ${least.options}: ${size(takes)}; --plans measures how much slower that is.` :
      takes < used ? `Options alone do not do it, ${least.options} takes ${size(takes)}: ${other}.` : `No options take less RAM: ${other}.`;
  return card(title, {}, over, el("p", { text: words }), held);
}

function slowest(build, b) {
  const clock = clockOf(build) || ["macs", "MACs", "MACs", "work, not time"], key = clock[0];
  const order = build.steps.map((_, n) => n).sort((p, q) => (build.steps[q][key] || 0) - (build.steps[p][key] || 0));
  if (!order.length) return card(of(b, "Slowest layer"), {}, soft("There are no steps."));
  const n = order[0], step = build.steps[n], why = build.portable.find(each => step.nodes.join(" + ") === each.name);
  return card(of(b, "Slowest layer"), pick("step", b, n), big(`${percent((step[key] || 0) / totalOf(build, key))} of a run`),
    named(b, n), el("p", {}, el("code", { text: step.kernel })),
    soft(`${brief(step[key] || 0)} ${clock[2]}, ${clock[3]}.`, why && ` ${why.why}`));
}

const isFloat = buffer => /^f(16|32|64)\[/.test(buffer.type);
const ofIntegers = build => build.buffers.some(buffer => buffer.role !== "workspace" && /^[iu]8\[/.test(buffer.type));

function worst() {
  const found = builds.flatMap((build, b) => build.steps.map((step, n) => ({ b, n, step, value: step.signal_to_noise })))
    .filter(each => typeof each.value === "number");
  if (!found.length) {
    const noise = builds.flatMap(build => build.quantized ? build.quantized.noise : []).filter(each => each[2] !== null);
    if (!noise.length && !builds.some(ofIntegers))
      return card("Where accuracy is lost", {}, soft("Nowhere: it computes in floats. After ", flag("mccompile quantize"), ", give both models to ", flag("mccompile studio"), "."));
    if (!noise.length) return card("Where accuracy is lost", {}, soft("Not measured: name the float model with ", flag("--float"), ", and samples with ", flag("--data"), "."));
    const [name, short, value] = noise.reduce((p, q) => q[2] < p[2] ? q : p);
    return card("Where accuracy is lost", {}, big(decibels(value)), el("p", { class: "name", title: name, text: short }), soft("signal to noise against float: the least of all tensors."));
  }
  // of what a step reads, through steps that have no figure; 99: nothing is lost before it
  const heard = new Map();
  const at = (b, n) => {
    if (!heard.has(`${b} ${n}`)) {
      const own = builds[b].steps[n].signal_to_noise;
      heard.set(`${b} ${n}`, typeof own === "number" ? own : own === "exact" ? 99 : before({ b, step: builds[b].steps[n] }));
    }
    return heard.get(`${b} ${n}`);
  };
  const before = ({ b, step }) => Math.min(99, ...step.after.map(k => at(b, k)));
  // what a step adds of noise, of the signal: decibels alone would say that little on top of nothing is much
  const steps = found.map(each => ({ ...each, from: before(each) }));
  const loss = each => each.from - each.value, added = each => 10 ** (-each.value / 10) - 10 ** (-each.from / 10);
  const most = steps.reduce((p, q) => added(q) > added(p) ? q : p);
  const last = found.filter(each => each.b === most.b).pop();
  const whence = most.from === 99 ? "Nothing is lost before it, " : `${decibels(most.from)} before it, `;
  return card("Where accuracy is lost", pick("step", most.b, most.n),
    big(most.from === 99 ? decibels(most.value) : `−${loss(most).toFixed(1)} dB`),
    named(most.b, most.n),
    soft(`${whence}${decibels(most.value)} after it, an error of ${percent(10 ** (-most.value / 20))}; ${decibels(last.value)} at the end. Signal to noise against float, on ${builds[most.b].heard || "samples"}.`));
}

function changed() {
  const since = data.since;
  if (!since) return card("What changed", {}, soft("Not asked: name an older output folder or report.json with ", flag("--since"), "."));
  const same = !since.no_steps && !since.steps.length && since.figures.every(({ before, after }) => before === after);
  const lost = worse(since), gained = better(since);
  return card("What changed", {}, big(same ? "Nothing" : lost[0] || gained[0] || "No figure changed"),
    lost.length > 0 && gained.length > 0 && el("p", { text: `Largest saving: ${gained[0]}` }),
    el("p", { text: stepsChanged(since) }),
    (since.options || []).length > 0 && el("p", {}, "Options: ", el("code", { text: since.options.join("; ") })),
    soft(el("a", { href: "#changes", text: "All figures" }), ` since ${since.before}. ${unknownTime(since)}`));
}

/** Of the steps that are there now, and of the older ones. */
function stepsChanged(since) {
  if (since.no_steps) return `${since.no_steps[0].toUpperCase()}${since.no_steps.slice(1)}.`;
  const now = since.steps.filter(({ step }) => step !== undefined).length, gone = since.steps.length - now, all = builds[since.build].steps.length;
  const older = gone ? `; gone: ${gone}` : "";
  return `${now || "None"} of ${all} steps ${now > 1 ? "are" : "is"} new or changed${older}.`;
}

/** By which share of what it was; less is better. */
const grown = ({ before, after }) => before ? after / before - 1 : after > 0 ? 1 : 0;
const told = figure => `${figure.what}: ${whole(figure.before)} → ${whole(figure.after)} (${grown(figure) > 0 ? "+" : "−"}${percent(Math.abs(grown(figure)))})`;
const worse = since => since.figures.filter(each => grown(each) > 0).sort((p, q) => grown(q) - grown(p)).map(told);
const better = since => since.figures.filter(each => grown(each) < 0).sort((p, q) => grown(p) - grown(q)).map(told);

function unknownTime(since) {
  const known = since.figures.some(({ what }) => /^(instructions per run|time)/.test(what));
  return known ? "" : "The older report has no time: give what `mccompile analyze --measure --json` prints of that build.";
}

function advised(build, b) {
  if (!build.frontier.length) return card(of(b, "Which plan"), {}, soft("Not tried: add ", flag("--plans"), ", which compiles the best plans and measures each."));
  const plan = bestPlan(build), [key, unit, how] = planClock(build), fits = planRam(plan) <= budget;
  const least = leastRam(build);
  const at = each => build.frontier.indexOf(each);
  const takes = each => `${size(planRam(each))} of RAM, ${size(planFlash(each))} of ${each.code_bytes ? "flash" : "weights"}, ${brief(each[key])} ${unit}`;
  return card(of(b, "Which plan"), pick("plan", b, at(plan)), big(planName(plan)), el("p", { text: takes(plan) }),
    !fits ? soft(`No plan fits ${size(budget)}; this one takes least.`) :
      [soft(`The fastest within ${size(budget)}. ${how}.`), plan !== least && el("p", {}, "Least RAM: ",
        link("plan", b, at(least), planName(least)), ` takes ${takes(least)} (${percent(least[key] / plan[key] - 1)} more time).`)]);
}
