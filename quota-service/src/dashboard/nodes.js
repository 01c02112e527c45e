// Nodes by hour, as in figure 8 of the GFS paper: a row for each node, a column for each hour, the peak of allocated GPUs as colour.

import { address } from "./api.js";
import { badge, choice, field, h, responsive, table } from "./dom.js";
import { asTable, figure } from "./figure.js";
import { count, dayOf, moment, number, percent } from "./format.js";
import { Section } from "./section.js";

/** Rows that are drawn at most; more nodes share one. */
const ROWS = 320;
/** Nodes of a part that is chosen from many. */
const PART = 100;
/** Nodes in the table. */
const LISTED = 500;
/** So few nodes need no filter. */
const FEW = 20;
const GUTTER = 8;
const AXIS = 34;
/** Room for names on the left, where there is room at all. */
const NAMES = 104;
const WIDE = 560;
/** From few to many, distinct by lightness alone as well. */
const LIGHT = ["#f1f4f8", "#c6dbef", "#82b8dd", "#3787c0", "#0b4f8a", "#062a52"];
const DARK = ["#1a212a", "#17405f", "#1f6a9a", "#4a9bc9", "#95cbe6", "#eaf6fd"];

const isDark = () => getComputedStyle(document.documentElement).getPropertyValue("color-scheme").trim() === "dark";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const parsed = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** A colour of the scale for a share of 0 to 1. */
function shade(scale, share) {
  const place = Math.min(1, Math.max(0, share)) * (scale.length - 1);
  const [low, high] = [parsed(scale[Math.floor(place)]), parsed(scale[Math.ceil(place)])];
  const part = place - Math.floor(place);
  return `rgb(${low.map((value, index) => Math.round(value + (high[index] - value) * part)).join(",")})`;
}

const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
const highest = (values) =>
  values.reduce((most, value) => (value !== null && (most === null || value > most) ? value : most), null);

/** Nodes in groups of equal size, in the order of their names, so that no more than ROWS are left; a group shows its mean. */
function grouped(nodes, most = ROWS) {
  const size = Math.ceil(nodes.length / most) || 1;
  const groups = [];
  for (let first = 0; first < nodes.length; first += size) {
    const part = nodes.slice(first, first + size);
    const hours = part[0].peak_gpus.map((_, hour) =>
      mean(part.map((node) => node.peak_gpus[hour]).filter((value) => value !== null)),
    );
    groups.push({
      first: part[0].node,
      name: part.length === 1 ? part[0].node : `${part[0].node} to ${part.at(-1).node}`,
      count: part.length,
      hours,
    });
  }
  return { groups, size };
}

const rowHeightOf = (groups) => Math.max(2, Math.min(16, Math.floor(560 / groups.length)));

function paint(canvas, width, { groups, hours, most }, marked) {
  const rowHeight = rowHeightOf(groups);
  const height = rowHeight * groups.length;
  const ratio = window.devicePixelRatio || 1;
  const left = width > WIDE ? NAMES : 0;
  const inner = width - left - GUTTER;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round((height + AXIS) * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height + AXIS}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const scale = isDark() ? DARK : LIGHT;
  const column = inner / hours.length;
  if (left > 0) rowNames(context, groups, rowHeight, left);
  context.translate(left, 0);
  groups.forEach((group, row) =>
    group.hours.forEach((value, hour) => {
      context.fillStyle = value === null ? css("--unknown") : shade(scale, value / most);
      context.fillRect(hour * column, row * rowHeight, column + 0.5, rowHeight);
    }),
  );
  axis(context, hours, column, height, inner);
  if (marked) {
    context.strokeStyle = css("--bound");
    context.lineWidth = 2;
    context.strokeRect(marked.hour * column, marked.row * rowHeight, Math.max(column, 3), Math.max(rowHeight, 3));
  }
  return { column, rowHeight, left };
}

/** Names of rows beside the picture, as many as there is room for. */
function rowNames(context, groups, rowHeight, left) {
  context.fillStyle = css("--muted");
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  const every = Math.ceil(16 / rowHeight);
  groups.forEach(({ first }, row) => {
    if (row % every !== 0) return;
    const name = first.length > 15 ? `…${first.slice(-14)}` : first;
    context.fillText(name, left - 8, Math.max(7, (row + 0.5) * rowHeight));
  });
  context.textAlign = "left";
}

/** Days below the picture, as far apart as their names need. */
function axis(context, hours, column, height, inner) {
  context.fillStyle = css("--muted");
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "top";
  let free = 0;
  hours.forEach((text, hour) => {
    const date = new Date(text);
    if (date.getHours() !== 0 && hour !== 0) return;
    const x = hour * column;
    context.fillRect(x, height, 1, 5);
    if (x >= free && x + 46 <= inner) {
      context.fillText(dayOf(date), x, height + 8);
      free = x + 54;
    }
  });
}

function cellText({ groups, hours }, { row, hour }) {
  const group = groups[row];
  const value = group.hours[hour];
  const where = group.count > 1 ? `${group.name} (the mean of ${group.count} nodes)` : group.name;
  return `${where}, ${moment(new Date(hours[hour]))}: ${value === null ? "not known" : `${number(value)} GPUs at the peak`}`;
}

const MOVES = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};

function heat(picture, title, label) {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const readout = h("p", { class: "readout" }, "Point at an hour, or move with the arrow keys.");
  let [marked, cell, width] = [null, null, 0];
  const clamp = (value, top) => Math.min(top, Math.max(0, value));
  const mark = (row, hour) => {
    marked = { row: clamp(row, picture.groups.length - 1), hour: clamp(hour, picture.hours.length - 1) };
    cell = paint(canvas, width, picture, marked);
    readout.textContent = cellText(picture, marked);
  };
  const frame = h(
    "div",
    {
      class: "keyed heat",
      vars: { "--height": `${rowHeightOf(picture.groups) * picture.groups.length + AXIS}px` },
      tabindex: "0",
      role: "group",
      "aria-label": `${title}: arrow keys read out nodes and hours`,
      data: { key: "heat" },
    },
    canvas,
  );
  frame.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || !cell) return;
    event.preventDefault();
    const from = marked ?? { row: 0, hour: picture.hours.length };
    mark(from.row + move[0], from.hour + move[1]);
  });
  frame.addEventListener("focus", () => readout.setAttribute("aria-live", "polite"));
  frame.addEventListener("blur", () => readout.removeAttribute("aria-live"));
  canvas.addEventListener("pointermove", (event) => {
    if (!cell) return;
    const place = canvas.getBoundingClientRect();
    mark(
      Math.floor((event.clientY - place.top) / cell.rowHeight),
      Math.floor((event.clientX - place.left - cell.left) / cell.column),
    );
  });
  responsive(frame, (now) => {
    width = now;
    cell = paint(canvas, width, picture, marked);
  });
  const key = h(
    "div",
    { class: "scale" },
    "0 GPUs",
    h("span", { class: "ramp", "aria-hidden": "true" }),
    `${number(picture.most)} GPUs`,
    h("span", { class: "swatch unknown", "aria-hidden": "true" }),
    "not known",
  );
  return [figure({ title, host: frame, readout, key: "heat" }), key];
}

function nodeRow(node) {
  const known = node.peak_gpus.filter((value) => value !== null);
  return [
    node.node,
    number(node.gpus),
    number(node.hp_gpus),
    number(node.spot_gpus),
    number(node.idle_gpus),
    number(node.evictions_24h),
    node.drains ? badge("warn", "drains") : "no",
    number(highest(known)),
    percent(known.length ? mean(known) / node.gpus : null),
  ];
}

function nodeTable(nodes) {
  const number_ = (name) => ({ name, number: true });
  const columns = [
    { name: "Node" },
    ...["GPUs", "HP", "Spot", "Idle", "Evictions, 24 h"].map(number_),
    { name: "Drains" },
    number_("Highest peak"),
    number_("Mean peak, of its GPUs"),
  ];
  return asTable("Nodes now, and their peaks", () => ({ columns, rows: nodes.slice(0, LISTED).map(nodeRow) }), "nodes");
}

/** The whole in a sentence or two, for those who read rather than look. */
function summary(nodes, hours) {
  const shares = nodes.flatMap((node) =>
    node.peak_gpus.filter((value) => value !== null).map((value) => value / Math.max(node.gpus, 1)),
  );
  const full = shares.filter((share) => share >= 1).length;
  const idle = shares.filter((share) => share === 0).length;
  if (shares.length === 0) return `${count(nodes.length, "node")}; no hour of them is known yet.`;
  const known = hours.filter((_, hour) => nodes.some((node) => node.peak_gpus[hour] !== null)).length;
  const over = `${known < hours.length ? `${number(known)} of ` : ""}${count(hours.length, "hour")}`;
  // A node that was added within these hours lacks some that others have.
  const whose = shares.length < nodes.length * hours.length ? "known node hours" : "node hours";
  const part = percent(mean(shares));
  const allocated = `at the highest reading of an hour ${part} of a node's GPUs are allocated on average`;
  const [fullShare, idleShare] = [full, idle].map((some) => percent(some / shares.length));
  const states = `${fullShare} of the ${whose} are full, ${idleShare} empty`;
  return `${count(nodes.length, "node")} over ${over}: ${allocated}; ${states}.`;
}

/** Which nodes the reader wants to see: those with a text in their name, and a part of many. */
function controls(view, redraw) {
  const typed = () => {
    Object.assign(view, { filter: filter.value.trim().toLowerCase(), part: "all" });
    redraw();
  };
  const filter = h("input", {
    id: "node-filter",
    type: "search",
    autocomplete: "off",
    spellcheck: "false",
    on: { input: typed },
  });
  const parts = choice("node-part", [["all", "all nodes"]], "all", (value) => {
    view.part = value;
    redraw();
  });
  const element = h("div", { class: "controls" }, field("Nodes whose name has", filter), field("Shown", parts));
  element.hidden = true;
  const offer = (length) => {
    const pages = Array.from({ length: length > ROWS ? Math.ceil(length / PART) : 0 }, (_, page) => [
      String(page),
      `nodes ${page * PART + 1} to ${Math.min(length, page * PART + PART)}`,
    ]);
    parts.replaceChildren(...[["all", "all nodes"], ...pages].map(([value, words]) => h("option", { value }, words)));
    parts.value = view.part;
  };
  return { element, offer };
}

/** The picture of these nodes, what it shows in words, and its table. */
function picture(nodes, answer) {
  const words = h("p", null, summary(nodes, answer.hours));
  // Nothing is drawn where nothing is known.
  if (nodes.every((node) => node.peak_gpus.every((value) => value === null))) return [words, nodeTable(nodes)];
  const { groups, size } = grouped(nodes);
  const most = Math.max(1, ...answer.nodes.map((node) => node.gpus));
  const each = "that follow each other by name: choose a part of them, or filter, to see them one by one.";
  const shown = size > 1 ? `Each row shows the mean of ${size} nodes ${each}` : "Each row is a node.";
  const limit = nodes.length > LISTED ? ` The table below lists the first ${LISTED}.` : "";
  return [
    words,
    h("p", { class: "quiet" }, shown + limit),
    ...heat({ groups, hours: answer.hours, most }, "Peak of allocated GPUs by node and hour", words.textContent),
    nodeTable(nodes),
  ];
}

/** The heat map of a pool's nodes. */
export function nodesSection(pool) {
  const view = { filter: "", part: "all" };
  const { element, offer } = controls(view, () => section.redraw());
  const section = new Section({
    id: "nodes",
    title: "Nodes",
    about: "Nodes are read at each renewal of the quotas: a peak is the highest reading of an hour, and what rises and falls between two is not seen.",
    everyMs: 120_000,
    elsewhere: () =>
      pool.isExternal && "Another scheduler places the tasks of this pool: what runs on its nodes is not known here.",
    before: element,
    sources: () => ({ answer: address(`/v1/pools/${encodeURIComponent(pool.id)}/nodes`, { hours: 168 }) }),
    render: ({ answer }) => {
      const found = answer.nodes.filter((node) => node.node.toLowerCase().includes(view.filter));
      element.hidden = answer.nodes.length < FEW;
      offer(found.length);
      const nodes =
        view.part === "all" ? found : found.slice(Number(view.part) * PART, Number(view.part) * PART + PART);
      if (nodes.length > 0) return picture(nodes, answer);
      const none = answer.nodes.length === 0 ? "The pool has no nodes." : "No node has that in its name.";
      return h("p", { class: "quiet" }, none);
    },
  });
  return section;
}
