// Elements, numbers, and what is picked: an element with data-pick="step 0 3" shows step 3 of build 0 when clicked.
const data = JSON.parse(document.getElementById("data").textContent);
const builds = data.builds;
const LETTERS = "ABCDEFGH";
const narrow = () => window.innerWidth < 1000;
const $ = id => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [event, call] of Object.entries(value)) node.addEventListener(event, call);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** What can be clicked, and by keyboard. */
const pick = (kind, build, index) => ({ "data-pick": `${kind} ${build} ${index}`, tabindex: "0", role: "button" });

const whole = value => Math.round(value).toLocaleString("en-US");
const bytes = value => `${whole(value)} B`;
function size(value) {
  if (value < 1024) return `${whole(value)} B`;
  const [unit, over] = value < 1 << 20 ? ["KB", 1024] : ["MB", 1 << 20];
  const number = value / over;
  return `${number >= 100 ? Math.round(number) : number.toFixed(number >= 10 ? 1 : 2).replace(/\.?0+$/, "")} ${unit}`;
}
function brief(value) {
  for (const [over, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    const scale = unit === "k" ? 1e3 : over;
    if (value >= over) return `${(value / scale).toPrecision(3)}${unit}`;
  }
  return value >= 100 || Number.isInteger(value) ? whole(value) : value.toPrecision(3);
}
const decibels = value => value === "exact" ? "exact" : `${value.toFixed(1)} dB`;
const percent = share => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}%`;

/** What time is measured in, in a build: the best that is known. */
const CLOCKS = [
  ["us", "Time", "µs", "measured on this machine"],
  ["ticks", "Ticks", "ticks", "measured on a board"],
  ["instructions", "Instructions", "instr.", "counted under emulation"],
  ["estimated_cycles", "Cycles", "cycles", "estimated, not measured"],
];
const clockOf = build => CLOCKS.find(([key]) => build.steps.some(step => step[key] !== undefined));

const flashOf = step => step.weights_bytes + (step.code_bytes || 0);
const stepTitle = (step, number) => `step ${number}: ${step.label}`;

/** What a buffer holds: of a tensor that is made line by line a few lines at a time. */
const typeText = buffer => buffer.lines ? `ring of ${buffer.lines} ${buffer.lines > 1 ? "lines" : "line"} of ${buffer.type}` : buffer.type;

/** What is picked, and what is linked to it. */
const picked = { kind: "", build: 0, index: -1 };
let budget = data.budget || 64 * 1024;

function linkedTo(kind, b, index) {
  const build = builds[b], found = new Set([`${kind} ${b} ${index}`]);
  const pairs = (data.pairs || []).flat();
  if (kind === "step") {
    for (const [buffer] of build.steps[index].touches) found.add(`buffer ${b} ${buffer}`);
    for (const [first, other, from, to] of pairs) {
      if (first === b && from === index) found.add(`step ${other} ${to}`);
      if (other === b && to === index) found.add(`step ${first} ${from}`);
    }
  } else if (kind === "buffer") for (const step of build.buffers[index].steps) found.add(`step ${b} ${step}`);
  return found;
}

function mark() {
  const key = `${picked.kind} ${picked.build} ${picked.index}`;
  const linked = picked.kind ? linkedTo(picked.kind, picked.build, picked.index) : new Set();
  for (const node of document.querySelectorAll("[data-pick]")) {
    node.classList.toggle("on", node.dataset.pick === key);
    node.classList.toggle("linked", node.dataset.pick !== key && linked.has(node.dataset.pick));
  }
}

function choose(kind, build, index, host) {
  Object.assign(picked, { kind, build, index });
  showDetail(host);
  mark();
}

function onPick(event) {
  if (event.type === "keydown" && event.key !== "Enter") return;
  const node = event.target.closest("[data-pick]");
  if (!node || $("detail").contains(node) && node.dataset.pick === "") return;
  const [kind, build, index] = node.dataset.pick.split(" ");
  choose(kind, Number(build), Number(index), node);
}
document.addEventListener("click", onPick);
document.addEventListener("keydown", onPick);

/** The width of text in the page's small print, and as much of it as fits: its beginning and its end. */
const measuring = document.createElement("canvas").getContext("2d");
measuring.font = "11px system-ui, sans-serif";
const textWidth = text => measuring.measureText(text).width * 1.04;
function fitted(text, room, fewest = 6) {
  if (textWidth(text) <= room) return text;
  for (let kept = text.length - 1; kept >= fewest; kept--) {
    const tail = Math.ceil(kept * 0.6), cut = `${text.slice(0, kept - tail)}…${text.slice(-tail)}`;
    if (textWidth(cut) <= room) return cut;
  }
  return "";
}

/** Round numbers from 0 to `most`, at most `count` of them; of bytes powers of two. */
function ticks(most, count, ofBytes) {
  let step = 1;
  const larger = ofBytes ? [2] : [2, 2.5, 2];
  for (let turn = 0; most / step > count; turn++) step *= larger[turn % larger.length];
  const found = [];
  for (let at = 0; at <= most; at += step) found.push(at);
  return found;
}
