// The best plans: none of them is better in RAM, flash and time at once.
const PLAN_CLOCKS = [["us", "µs", "Time is measured on this machine"],
  ["instructions", "instructions", "Instructions are counted under emulation"], ["estimated_time", "cycles", "Cycles are estimated"]];
const planClock = build => PLAN_CLOCKS.find(([key]) => build.frontier.every(plan => plan[key] !== undefined));
const planRam = plan => plan.ram_bytes + (plan.struct_bytes || 0) + (plan.run_stack_bytes || 0) + (plan.external_bytes || 0);
const planName = plan => plan.options || "the plan of this page";
const planFlash = plan => plan.weights_bytes + (plan.code_bytes || 0);

const leastRam = build => build.frontier.reduce((p, q) => planRam(q) < planRam(p) ? q : p);

/** Of the plans within the budget the fastest; of none, that of least RAM. */
function bestPlan(build) {
  const [key] = planClock(build) || [], fits = build.frontier.filter(plan => planRam(plan) <= budget);
  return fits.length ? fits.reduce((p, q) => q[key] < p[key] ? q : p) : leastRam(build);
}

function drawPlans() {
  const shown = builds.map((build, b) => [build, b]).filter(([build]) => build.frontier.length);
  if (!shown.length) return;
  $("plans").replaceChildren(el("h2", { text: "Plans" }), ...shown.flatMap(([build, b]) => plansOf(build, b)));
  mark();
}

function plansOf(build, b) {
  const [key, unit, how] = planClock(build), points = build.frontier, best = bestPlan(build);
  const code = points.every(plan => plan.code_bytes !== undefined);
  const ofRam = points.every(plan => plan.struct_bytes !== undefined) ? "arena, struct and stack" : "the arena";
  const notes = plan => [plan === best && (planRam(plan) <= budget ? `fastest within ${size(budget)}` :
    `least RAM; more than ${size(budget)}`), plan.shown && "the plan of this page"].filter(Boolean).join("; ");
  return [
    el("p", { class: "soft" }, builds.length > 1 && chip(b), `${how}. RAM is ${ofRam}. ` +
      "Pareto-optimal plans of RAM, flash and time, and the plan of this page. Click one for its command."),
    scatter(points, key, unit, b, best),
    el("div", { class: "plist" }, el("div", { class: "prow thead" },
      ["", "RAM", code ? "Flash" : "Weights", key === "us" ? "Time, µs" : `${unit[0].toUpperCase()}${unit.slice(1)}`, "Options"].map(text => el("span", { text }))),
    points.map((plan, n) => el("div", { ...pick("plan", b, n), class: `prow${plan === best ? " best" : ""}` },
      el("span", { class: "number", text: n + 1 }), el("span", { class: "n", "data-ram": planRam(plan), text: bytes(planRam(plan)) }),
      el("span", { class: "n", text: bytes(planFlash(plan)) }), el("span", { class: "n", "data-time": plan[key], text: brief(plan[key]) }),
      el("span", {}, el("code", { text: plan.options || "–" }), notes(plan) && el("small", { text: ` ${notes(plan)}` }))))),
  ];
}

function scatter(points, key, unit, b, best) {
  const width = Math.min(Math.max($("plans").clientWidth, 260), 820), height = 240, left = 62, right = 16, top = 14, bottom = 34;
  const wide = width - left - right, high = height - top - bottom;
  const mostRam = 1.08 * Math.max(...points.map(planRam)), mostTime = 1.12 * Math.max(...points.map(plan => plan[key]));
  const x = ram => left + ram / mostRam * wide, y = time => top + high - time / mostTime * high;
  const spots = points.map(plan => ({ x: x(planRam(plan)), y: y(plan[key]), apart: 13 }));
  const marks = points.map((plan, n) => {
    const { x: cx, y: cy } = spots[n];
    // the number stands where no point and no other number is; the point stays where it belongs
    const round = [13, 22, 31].flatMap(far => [[0, -far], [far, 0], [-far, 0], [0, far], [far, -far], [-far, -far]]);
    const free = ([dx, dy]) => cy + dy > top && cy + dy < top + high && spots.every((other, k) => k === n ||
      Math.hypot(other.x - cx - dx, other.y - cy - dy) >= other.apart);
    const [dx, dy] = round.find(free) || round[0];
    spots.push({ x: cx + dx, y: cy + dy, apart: 14 });
    return svg("g", { ...pick("plan", b, n), class: `plan${plan === best ? " best" : ""}` },
      svg("title", { text: `${planName(plan)}\n${bytes(planRam(plan))} of RAM, ${brief(plan[key])} ${unit}` }),
      svg("circle", { cx, cy, r: 6, "data-ram": planRam(plan) }),
      svg("text", { x: cx + dx, y: cy + dy + 4, "text-anchor": "middle", text: n + 1 }));
  });
  let end = 0;
  const across = ticks(mostRam, width < 500 ? 4 : 8, true).map(at => {
    const text = at ? size(at) : "0", half = textWidth(text) / 2;
    if (x(at) - half < end + 6) return null;
    end = x(at) + half;
    return [svg("line", { class: "grid", x1: x(at), x2: x(at), y1: top, y2: top + high }),
      svg("text", { class: "tick", x: x(at), y: top + high + 15, "text-anchor": "middle", text })];
  });
  return svg("svg", { class: "frontier", width, height, role: "img", "aria-label": "Time over RAM" },
    ticks(mostTime, 5, false).map(at => [svg("line", { class: "grid", x1: left, x2: width - right, y1: y(at), y2: y(at) }),
      svg("text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end", text: at ? brief(at) : "0" })]), across,
    budget < mostRam && svg("line", { class: "limit", x1: x(budget), x2: x(budget), y1: top, y2: top + high }),
    svg("text", { class: "tick", x: width - right, y: height - 3, "text-anchor": "end", text: `RAM → · ↑ ${unit}` }), marks);
}
