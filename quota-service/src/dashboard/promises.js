// Whether promises were kept: by day, by hours, and the broken ones one by one.

import { address } from "./api.js";
import { badge, choice, facts, field, h, responsive, s, table } from "./dom.js";
import { figure } from "./figure.js";
import { NONE, number, percent, sentence, time } from "./format.js";
import { Section } from "./section.js";

const KINDS = {
  kept: "kept",
  broken: "broken by HP demand",
  node_failure: "node failed",
  node_lost: "node was lost",
  drain: "node was drained",
  user_deleted: "deleted by the user",
};
const HEIGHT = 200;
const FOOT = 22;
const LEFT = 40;

const DAY = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", timeZone: "UTC" });
const dayName = (day) => DAY.format(new Date(`${day}T00:00:00Z`));

/** A round number at or above: the top of the axis. */
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((one) => one >= value);
}

function dayBars(one, x, width, y) {
  const parts = [
    ["kept", one.kept],
    ["broken", one.broken],
    ["other", one.other],
  ];
  let below = 0;
  return parts.map(([cls, value]) => {
    const [bottom, top] = [y(below), y(below + value)];
    below += value;
    return value > 0 && s("rect", { class: cls, x, y: top, width, height: Math.max(0.5, bottom - top) });
  });
}

function drawDays(host, width, days, rate) {
  const top = roundUp(Math.max(1, ...days.map(({ kept, broken, other }) => kept + broken + other)));
  const y = (value) => HEIGHT - FOOT - ((HEIGHT - FOOT - 8) * value) / top;
  const step = (width - LEFT) / Math.max(days.length, 1);
  const every = Math.ceil(58 / step);
  const x = (index) => LEFT + index * step;
  const grid = [0, top / 2, top].map((value) => [
    s("line", { class: "grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
    s("text", { x: LEFT - 6, y: y(value) + 4, class: "end" }, number(value)),
  ]);
  const bars = days.map((one, index) =>
    s(
      "g",
      null,
      s("title", null, `${one.day}: ${one.kept} kept, ${one.broken} broken, ${one.other} otherwise`),
      dayBars(one, x(index) + step * 0.12, step * 0.76, y),
    ),
  );
  const target = days.map(
    ({ kept, broken }, index) =>
      kept + broken > 0 &&
      s("line", {
        class: "target",
        x1: x(index),
        x2: x(index) + step,
        y1: y((kept + broken) * rate),
        y2: y((kept + broken) * rate),
      }),
  );
  const names = days.map(
    ({ day }, index) => index % every === 0 && s("text", { x: x(index) + step * 0.12, y: HEIGHT - 6 }, dayName(day)),
  );
  host.replaceChildren(
    s(
      "svg",
      { class: "days", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" },
      grid,
      bars,
      target,
      names,
    ),
  );
}

function days(answer) {
  const host = responsive(h("div", { class: "chart", vars: { "--height": `${HEIGHT}px` } }), (width) =>
    drawDays(host, width, answer.days, answer.guarantee_rate),
  );
  const columns = [
    { name: "Day (UTC)" },
    ...["Kept", "Broken", "Otherwise", "Kept, of those that count"].map((name) => ({ name, number: true })),
  ];
  const row = ({ day, kept, broken, other }) => [
    day,
    number(kept),
    number(broken),
    number(other),
    kept + broken > 0 ? percent(kept / (kept + broken)) : NONE,
  ];
  return figure({
    key: "days",
    title: "Promises that ended, by day (UTC)",
    host,
    numbers: () => ({ columns, rows: answer.days.map(row) }),
    label: `${answer.kept} kept and ${answer.broken} broken over ${answer.days.length} days; at least ${percent(answer.guarantee_rate)} are to be kept.`,
    legend: [
      { cls: "kept", words: "kept" },
      { cls: "broken", words: "broken" },
      { cls: "other", words: "ended otherwise (do not count)" },
      { cls: "target", words: `how many had to be kept: ${percent(answer.guarantee_rate)} of those that count` },
    ],
  });
}

function verdict(answer) {
  const ended = answer.kept + answer.broken;
  if (ended === 0) return badge("none", "no promise has ended");
  const rate = answer.guarantee_eviction_rate ?? answer.broken / ended;
  return rate <= answer.target_eviction_rate
    ? badge("good", "the promise is kept")
    : badge("bad", "more were broken than may be");
}

function totals(answer) {
  const ended = answer.kept + answer.broken;
  const others = Object.entries(answer.by_kind).filter(
    ([kind, value]) => !["kept", "broken"].includes(kind) && value > 0,
  );
  return facts([
    ["sold", number(answer.sold)],
    ["kept", number(answer.kept)],
    ["broken", number(answer.broken)],
    ["open now", answer.open === null ? null : number(answer.open)],
    ["kept, of those that count", ended > 0 ? percent(answer.kept / ended) : NONE],
    [
      "guarantee eviction rate",
      `${percent(answer.guarantee_eviction_rate)} (target: at most ${percent(answer.target_eviction_rate)})`,
    ],
    ...others.map(([kind, value]) => [KINDS[kind] ?? kind, number(value)]),
  ]);
}

function brokenOnes(list) {
  if (list.length === 0) return h("p", { class: "quiet" }, "None was broken.");
  const columns = [
    { name: "Ended" },
    { name: "Promised", number: true },
    { name: "Task" },
    { name: "Node" },
    { name: "Why" },
  ];
  const row = (one) => [
    time(one.ended_at),
    `${number(one.hours)} h`,
    one.task ?? NONE,
    one.node ?? NONE,
    h("span", { class: "sentence" }, sentence(one.why)),
  ];
  return table({ caption: "Broken promises, newest first", columns, cards: true, rows: list.map(row) });
}

function byHours(list) {
  const ended = list.filter(({ kept, broken }) => kept + broken > 0);
  if (ended.length === 0) return null;
  const columns = [{ name: "Promised" }, ...["Kept", "Broken", "Share kept"].map((name) => ({ name, number: true }))];
  const row = ({ hours, kept, broken }) => [
    `${hours} h`,
    number(kept),
    number(broken),
    percent(kept / (kept + broken)),
  ];
  return table({ caption: "Promises by hours", hideCaption: false, columns, rows: ended.map(row) });
}

function report(answer) {
  const isAny = answer.days.some(({ kept, broken, other }) => kept + broken + other > 0);
  return [
    h("p", null, verdict(answer), " from ", time(answer.from, true), " to ", time(answer.to, true)),
    totals(answer),
    isAny && [days(answer), byHours(answer.by_hours), h("h3", null, "Broken promises"), brokenOnes(answer.broken_ones)],
  ];
}

/** Promises kept and broken over the last weeks. */
export function promisesSection(pool) {
  let chosen = 28;
  const spans = [7, 28, 84].map((days_) => [days_, days_ === 7 ? "7 days" : `${days_ / 7} weeks`]);
  const choose = (value) => {
    chosen = Number(value);
    section.refresh();
  };
  const before = h("div", { class: "controls" }, field("Days", choice("promise-days", spans, chosen, choose)));
  const query = () => ({ cluster: pool.cluster, gpu_model: pool.gpu_model, days: chosen });
  const section = new Section({
    id: "promises",
    title: "Promises",
    before,
    sources: () => ({ answer: address("/v1/promises", query()) }),
    // The report ends now, whenever that is.
    same: (answer) => JSON.stringify({ ...answer, to: null }),
    render: ({ answer }) => report(answer),
  });
  return section;
}
