// Whether what is sold is kept: by the hours of the promise, lately and at its worst, and what the bounds did that were served.

import { address } from "./api.js";
import { badge, h, responsive, s, table } from "./dom.js";
import { figure } from "./figure.js";
import { NONE, number, percent, time } from "./format.js";
import { Section } from "./section.js";

/** As in the alert: chance alone shows as much in at most one of twenty months. */
const ALARM = 20;
/** From here on it is worth a look. */
const SIGNS = 5;
const LEFT = 104;
const RIGHT = 18;
const ROW = 26;
const FOOT = 24;

const clipped = (value) => Math.min(1, Math.max(0, value));

/** The 95 % interval of a kept rate, from its standard error over days; none where all promises are of one day. */
function interval(kept) {
  const error = kept?.kept_rate_deviation;
  if (error === null || error === undefined) return null;
  return [clipped(kept.kept_rate - 1.96 * error), clipped(kept.kept_rate + 1.96 * error)];
}

/** What the evidence says, in words. */
function verdict({ e_value: value, e_value_since: since }) {
  if (value === null) return badge("none", "too little has ended to tell");
  const title = `e = ${number(value)}: chance alone shows ${ALARM} or more in at most one of twenty months`;
  if (value >= ALARM) {
    const when = since && h("div", { class: "small" }, "since ", time(since));
    return [badge("bad", "the promise fails", title), when];
  }
  if (value >= SIGNS) return badge("warn", "first signs that the promise fails", title);
  return badge("good", "no sign that the promise fails", title);
}

/** A kept rate with its interval below it. */
function rate(kept) {
  if (kept?.kept_rate === null || kept?.kept_rate === undefined) return NONE;
  const bounds = interval(kept);
  const range = bounds && h("div", { class: "small" }, `${percent(bounds[0])} to ${percent(bounds[1])}`);
  return h("div", null, h("div", { class: "big" }, percent(kept.kept_rate)), range);
}

/** A value at its worst, with when that was. */
function worst(one, value) {
  if (!one) return NONE;
  return h("div", null, h("div", null, percent(value)), h("div", { class: "small" }, "from ", time(one.from)));
}

function keptTable(answer) {
  const columns = [
    { name: "Promised" },
    { name: "Sold now for at least so long, GPUs", number: true },
    { name: "Kept, 7 days", number: true },
    { name: "Kept, 28 days", number: true },
    { name: "Worst 24 h", number: true },
    { name: "Worst 7 days", number: true },
    { name: "Does the promise hold?" },
  ];
  const row = (one) => [
    `${one.hours} h`,
    number(one.sold_gpus),
    rate(one.last_7_days),
    rate(one),
    worst(one.worst_day, one.worst_day?.kept_rate),
    worst(one.worst_week, one.worst_week?.kept_rate),
    h("div", null, verdict(one)),
  ];
  const caption = "Kept rates by the hours of the promise";
  return table({ caption, columns, cards: true, rows: answer.by_hours.map(row) });
}

/** What stands on a line of the picture. */
function lines(answer) {
  const of = (one) => [
    { words: `${one.hours} h, 7 days`, kept: one.last_7_days, least: [] },
    { words: `${one.hours} h, 28 days`, kept: one, least: [one.worst_day, one.worst_week].filter(Boolean) },
  ];
  return answer.by_hours.flatMap(of).filter(({ kept }) => Number.isFinite(kept?.kept_rate));
}

function drawLine({ words, kept, least }, y, x, promised) {
  const bounds = interval(kept);
  const cls = (bounds?.[1] ?? kept.kept_rate) < promised ? "broken" : "kept";
  return [
    s("text", { x: LEFT - 10, y: y + 4, class: "end" }, words),
    bounds && s("line", { class: `whisker ${cls}`, x1: x(bounds[0]), x2: x(bounds[1]), y1: y, y2: y }),
    least.map((one) => s("circle", { class: "least", cx: x(one.kept_rate), cy: y, r: 4 })),
    s("circle", { class: `dot ${cls}`, cx: x(kept.kept_rate), cy: y, r: 5 }),
  ];
}

function draw(host, width, answer) {
  const shown = lines(answer);
  const promised = answer.guarantee_rate;
  const values = shown.flatMap(({ kept, least }) => [...(interval(kept) ?? [kept.kept_rate]), ...least.map((one) => one.kept_rate)]);
  const bottom = Math.max(0, Math.floor(Math.min(promised - 0.05, ...values) * 20) / 20);
  const x = (value) => LEFT + ((width - LEFT - RIGHT) * (value - bottom)) / (1 - bottom);
  const foot = shown.length * ROW + 6;
  const grid = [bottom, (bottom + 1) / 2, 1].map((value) => [
    s("line", { class: "grid", x1: x(value), x2: x(value), y1: 0, y2: foot }),
    s("text", { x: x(value), y: foot + 16, class: value === 1 ? "end" : value === bottom ? "" : "middle" }, percent(value)),
  ]);
  const target = s("line", { class: "target", x1: x(promised), x2: x(promised), y1: 0, y2: foot });
  const marks = shown.map((line, index) => drawLine(line, index * ROW + ROW / 2 + 3, x, promised));
  const size = { viewBox: `0 0 ${width} ${foot + FOOT}`, width, height: foot + FOOT };
  host.replaceChildren(s("svg", { class: "intervals", ...size, "aria-hidden": "true" }, grid, target, marks));
}

function picture(answer) {
  const shown = lines(answer);
  const height = shown.length * ROW + 6 + FOOT;
  const host = responsive(h("div", { class: "chart", vars: { "--height": `${height}px` } }), (width) => draw(host, width, answer));
  const rates = shown.map(({ words, kept }) => `${words}: ${percent(kept.kept_rate)}`).join("; ");
  return figure({
    key: "kept",
    title: "Kept rate beside what is promised",
    host,
    label: `Kept share of the promises: ${rates}. At least ${percent(answer.guarantee_rate)} is promised.`,
    legend: [
      { cls: "kept", words: "kept, with its 95 % interval" },
      { cls: "broken", words: "the same, certainly less than promised" },
      { cls: "least", words: "the worst 24 h and 7 days of the 28 days" },
      { cls: "target dashed", words: `promised: ${percent(answer.guarantee_rate)}` },
    ],
  });
}

/** One measure of the bounds that quotas were cut from, lately and at its worst. */
function servedTable(list, caption, of) {
  const columns = [
    { name: "Promised" },
    ...["24 h", "7 days", "28 days", "Worst 24 h", "Worst 7 days"].map((name) => ({ name, number: true })),
  ];
  const row = ({ hours, served }) => {
    const { spans, day, week } = of(served);
    return [`${hours} h`, ...spans.map(percent), worst(day, day?.value), worst(week, week?.value)];
  };
  return [h("h3", null, caption), table({ caption, columns, cards: true, rows: list.map(row) })];
}

const held = (served) => ({
  spans: [served.last_24_hours, served.last_7_days, served.last_28_days].map((span) => span.coverage),
  day: served.least_covered_day,
  week: served.least_covered_week,
});

const broken = (served) => ({
  spans: [served.last_24_hours, served.last_7_days, served.last_28_days].map((span) => span.broken_share),
  day: served.most_broken_day,
  week: served.most_broken_week,
});

function served(answer) {
  const list = answer.by_hours.filter((one) => one.served?.last_28_days.looks > 0);
  const about = `Each quarter of an hour the bound that the quota is cut from is held against the demand that comes. What would have been broken is to stay below ${percent(1 - answer.guarantee_rate)}; how often the bound holds follows from it.`;
  const tables = () => [
    servedTable(list, "GPUs that would have been taken back, had all been sold", broken),
    servedTable(list, "Times at which demand stayed below the bound", held),
  ];
  return h(
    "details",
    { data: { key: "served" } },
    h("summary", null, "The bounds that were served, sold or not"),
    h("p", { class: "about" }, about),
    list.length > 0 ? tables() : h("p", { class: "quiet" }, "None of them is over yet, or another service serves them."),
  );
}

function report(answer) {
  if (answer.by_hours.length === 0) return h("p", { class: "quiet" }, "Nothing is offered and no promise has ended.");
  const isAny = lines(answer).length > 0;
  const promised = h("p", null, "At least ", h("strong", null, percent(answer.guarantee_rate)), " is promised.");
  return [promised, keptTable(answer), isAny && picture(answer), served(answer)];
}

/** What is sold, and how much of what was sold was kept. */
export function keptSection(pool) {
  return new Section({
    id: "kept",
    title: "Sold, kept, broken",
    about:
      "Sold now: the GPUs of promises of at least so many hours, so that one of 4 h counts in each row up to 4 h. Kept: the share of promised GPUs that high-priority work left where they were for the whole promise. A task that ends early says nothing of the rest.",
    sources: () => ({ answer: address("/v1/promises", { cluster: pool.cluster, gpu_model: pool.gpu_model, days: 28 }) }),
    same: ({ by_hours, guarantee_rate }) => JSON.stringify({ by_hours, guarantee_rate }),
    render: ({ answer }) => report(answer),
  });
}
