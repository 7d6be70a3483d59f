// Steps over time, and under them the copies: from the call that begins one to the call that it is there behind.
function callTimes(build, key) {
  const found = [0];
  for (const [step, part] of build.timeline.calls) found.push(found[found.length - 1] + (build.steps[step][key] || 0) * part);
  return found;
}

function drawLanes(build, b, room) {
  const [key, , unit] = clockOf(build), times = callTimes(build, key), whole = times[times.length - 1] || 1;
  const { calls, copies } = build.timeline, memories = [...new Set(copies.map(copy => copy.memory))];
  const left = 70, right = 14, high = 22, width = Math.max(room, 260), wide = width - left - right;
  const height = (memories.length + 1) * (high + 8) + 26, x = time => left + time / whole * wide, y = row => 4 + row * (high + 8);
  const bar = (from, to, row) => ({ x: x(from), y: y(row), width: Math.max(x(to) - x(from), 0.4), height: high });
  const steps = calls.map(([step], n) => svg("rect", { ...pick("step", b, step), class: "span", ...bar(times[n], times[n + 1], 0) },
    svg("title", { text: stepTitle(build.steps[step], step) })));
  const moved = copies.map(copy => {
    const early = copy.last > copy.first, row = 1 + memories.indexOf(copy.memory);
    const to = calls.length ? times[copy.last + 1] : whole;
    return svg("rect", { class: `copy${copy.written ? " written" : ""}${early ? " early" : ""}`, "data-bytes": copy.bytes,
      ...bar(times[copy.first], to, row) },
      svg("title", { text: `${bytes(copy.bytes)} ${copy.written ? "to" : "from"} ${copy.memory}${early ? ", while steps run" : ""}` }));
  });
  const names = ["steps", ...memories].map((text, row) => svg("text", { class: "tick", x: left - 6, y: y(row) + 15,
    "text-anchor": "end", text: fitted(text, left - 10, 3) || text.slice(0, 4) }));
  const axis = ticks(whole, width < 600 ? 3 : 6).map(at => svg("text", { class: "tick", x: Math.min(x(at), width - 30), y: height - 6,
    "text-anchor": "middle", text: at ? brief(at) : "0" }));
  return el("figure", {}, el("figcaption", {}, builds.length > 1 && chip(b), `Across: ${unit} of a run`),
    svg("svg", { class: "map lanes", width, height, role: "img", "aria-label": "Steps and copies over time" }, names, axis, steps, moved));
}

function drawTimeline() {
  const content = $("timeline"), among = builds.map((build, b) => [build, b]).filter(([build]) => build.timeline && clockOf(build));
  if (!among.length) return;
  content.replaceChildren(el("h2", { text: "Steps and copies" }),
    el("p", { class: "soft", text: "A copy reaches from the call that begins it to the one behind which it is there. What lies under other calls is on its way while they run." }),
    el("ul", { class: "legend" }, [["copy", "copied while nothing else runs"], ["copy early", "copied while steps run"], ["copy written", "results that are taken away"]]
      .map(([kind, text]) => el("li", {}, el("i", { class: kind }), text))),
    ...among.map(([build, b]) => drawLanes(build, b, content.clientWidth)));
  mark();
}
