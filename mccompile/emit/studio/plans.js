// The best plans: none of them is better in RAM, flash and time at once.
const PLAN_CLOCKS = [["us", "µs", "measured on this machine"], ["instructions", "instructions", "counted under emulation"],
  ["estimated_time", "cycles", "estimated"]];
const planClock = build => PLAN_CLOCKS.find(([key]) => build.frontier.every(plan => plan[key] !== undefined));
const planFlash = plan => plan.weights_bytes + (plan.code_bytes || 0);

/** Of the plans within the budget the best one, where RAM may cost as much time as when kernels are chosen; of none, that of least RAM. */
function bestPlan(build, room = budget) {
  const [key] = planClock(build) || [], least = (of, plans) => plans.reduce((p, q) => of(q) < of(p) ? q : p);
  const fits = build.frontier.filter(plan => plan.ram_bytes <= room);
  if (!fits.length) return least(plan => plan.ram_bytes, build.frontier);
  return least(plan => Math.max(1, plan.ram_bytes) ** build.worth * plan[key], fits);
}

const rateOf = build => build.worth ? `1 % of RAM counts as ${build.worth} % of time` : "time alone counts";

function drawPlans() {
  const shown = builds.map((build, b) => [build, b]).filter(([build]) => build.frontier.length);
  if (!shown.length) return;
  $("plans").replaceChildren(el("h2", { text: "Plans" }), ...shown.flatMap(([build, b]) => plansOf(build, b)));
  mark();
}

function plansOf(build, b) {
  const [key, unit, how] = planClock(build), points = build.frontier, best = bestPlan(build);
  const code = points.every(plan => plan.code_bytes !== undefined);
  return [
    el("p", { class: "soft" }, builds.length > 1 && chip(b), `Time is ${how}. Each point is a plan that no other one ` +
      "beats in everything; click it for the options that lead to it."),
    scatter(points, key, unit, b, best),
    el("div", { class: "plist" }, el("div", { class: "prow thead" },
      ["", "RAM", code ? "Flash" : "Weights", `Time, ${unit}`, "Options"].map(text => el("span", { text }))),
    points.map((plan, n) => el("div", { ...pick("plan", b, n), class: `prow${plan === best ? " best" : ""}` },
      el("span", { class: "number", text: n + 1 }), el("span", { class: "n", "data-ram": plan.ram_bytes, text: bytes(plan.ram_bytes) }),
      el("span", { class: "n", text: bytes(planFlash(plan)) }), el("span", { class: "n", "data-time": plan[key], text: brief(plan[key]) }),
      el("code", { text: plan.options }), plan === best && el("small", { text: plan.ram_bytes <= budget ?
        `best within ${size(budget)}: ${rateOf(build)}` : `least RAM; more than ${size(budget)}` })))),
  ];
}

function scatter(points, key, unit, b, best) {
  const width = Math.min(Math.max($("plans").clientWidth, 260), 820), height = 240, left = 62, right = 16, top = 14, bottom = 34;
  const wide = width - left - right, high = height - top - bottom;
  const mostRam = 1.08 * Math.max(...points.map(plan => plan.ram_bytes)), mostTime = 1.12 * Math.max(...points.map(plan => plan[key]));
  const x = ram => left + ram / mostRam * wide, y = time => top + high - time / mostTime * high;
  const spots = [], marks = points.map((plan, n) => {
    let at = { x: x(plan.ram_bytes), y: y(plan[key]) };
    const cx = at.x, cy = at.y;
    while (spots.some(other => Math.hypot(other.x - at.x, other.y - at.y) < 19)) at = { x: at.x, y: at.y - 19 };
    spots.push(at);
    return svg("g", { ...pick("plan", b, n), class: `plan${plan === best ? " best" : ""}` },
      svg("title", { text: `${plan.options}\n${bytes(plan.ram_bytes)} of RAM, ${brief(plan[key])} ${unit}` }),
      cy !== at.y && svg("line", { class: "lead", x1: cx, x2: at.x, y1: cy, y2: at.y }),
      svg("circle", { class: "exact", cx, cy, r: 3 }),
      svg("circle", { cx: at.x, cy: at.y, r: 9, "data-ram": plan.ram_bytes }),
      svg("text", { x: at.x, y: at.y + 4, "text-anchor": "middle", text: n + 1 }));
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
