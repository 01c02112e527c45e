// The statement of a month: where the GPU time of each pool went, who used it, what became of promises, and who preempts whom.

import { address, save } from "./api.js";
import { facts, field, h, table } from "./dom.js";
import { NONE, number, percent, time } from "./format.js";
import { Section } from "./section.js";

/** The months to choose from: as long as statements are kept by default. */
const MONTHS = 24;

const link = (month) => `#/statement/${encodeURIComponent(month)}`;
const hours = (value) => number(value === null || value === undefined ? value : Math.round(value * 10) / 10);

/** Months up to the present one, newest first, as the service writes them. */
function months(now = new Date()) {
  const month = (back) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7);
  return Array.from({ length: MONTHS }, (_, back) => month(back));
}

const money = (value, currency) =>
  value === null || value === undefined ? NONE : `${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ${currency}`;

const nameOf = ({ cluster, gpu_model }) => `${cluster}:${gpu_model}`;

/** As in deploy/STATEMENTS.md. */
const WORDS = [
  ["Spot, guaranteed; at will", "held by spot tasks inside their guarantee; by others, and on lent GPUs"],
  ["Idle, offered", "idle, and within the quota of the shortest guarantee: no task wanted it"],
  ["Idle, kept for high priority", "idle beyond that quota: kept for high-priority tasks that may come"],
  ["Handover and drained", "given to a task while the ones before it still leave; idle on nodes that take no new tasks"],
  ["Lost work", "work since the last checkpoint of tasks that were evicted or whose node was lost. It is a part of what ran"],
  [
    "Reserved beyond demand",
    "kept for high priority by the quota of the shortest guarantee, beyond what was needed at that moment. Spot at will may have run on it",
  ],
  ["Goodput", "what ran less what was lost, as a share of the capacity"],
  ["Voided", "promises that ended by a lost node, a drain or the user: neither kept nor broken"],
];

function glossary() {
  const pairs = WORDS.map(([word, meaning]) => h("div", null, h("dt", null, word), h("dd", null, meaning)));
  const list = h("dl", { class: "words" }, pairs);
  return h("details", { data: { key: "words" } }, h("summary", null, "Meaning of the words"), list);
}

/** A share of the capacity in words. */
const of = (part, pool) => `${hours(part)} GPU h (${percent(pool.pool_gpu_hours.capacity > 0 ? part / pool.pool_gpu_hours.capacity : null)})`;

function poolFacts(pool, source, currency) {
  const lost = pool.gpu_hours.lost_to_evictions + pool.gpu_hours.lost_to_nodes;
  const pairs = [
    ["Capacity", `${hours(pool.pool_gpu_hours.capacity)} GPU h in ${hours(pool.accounted_hours)} h`],
    ["High priority", of(pool.gpu_hours.hp, pool)],
    ["Spot, guaranteed", of(pool.gpu_hours.guaranteed, pool)],
    ["Spot, at will", of(pool.gpu_hours.at_will, pool)],
    ["Idle, offered", of(pool.pool_gpu_hours.idle_offered, pool)],
    ["Idle, kept for high priority", of(pool.pool_gpu_hours.idle_reserved, pool)],
    ["Handover and drained", of(pool.gpu_hours.handover + pool.pool_gpu_hours.drained, pool)],
    ["Lost work", of(lost, pool)],
    ["Reserved beyond demand", of(pool.pool_gpu_hours.over_reserved, pool)],
    ["Goodput", percent(pool.goodput)],
    ["Promises kept, broken, voided", `${number(pool.promises.kept)}, ${number(pool.promises.broken)}, ${number(pool.promises.voided)}`],
    ["Charged", pool.charges && money(pool.charges.total, currency)],
    ["Cost of idle GPUs", pool.costs && money(pool.costs.idle, currency)],
    ["Complete until", source && [time(source.until, true), source.missing && `: ${source.missing}`]],
  ];
  return [h("h3", null, nameOf(pool)), facts(pairs)];
}

function pools({ answer }) {
  if (answer.pools.length === 0)
    return h("p", { class: "quiet" }, "No GPU time is accounted for in this month. Accounts are kept of pools whose tasks Headroom places.");
  const source = (pool) => answer.sources.find((one) => nameOf(one) === nameOf(pool));
  return [glossary(), answer.pools.map((pool) => poolFacts(pool, source(pool), answer.currency))];
}

function organizations({ answer }) {
  if (answer.organizations.length === 0) return h("p", { class: "quiet" }, "No organization held a GPU.");
  const priced = answer.organizations.some((line) => line.charges);
  const columns = [
    { name: "Organization" },
    { name: "Pool" },
    ...["High priority", "Guaranteed", "At will", "Lost", "Sold", "Kept", "Broken", "Evictions"].map((name) => ({ name, number: true })),
    ...(priced ? [{ name: `Charged, ${answer.currency}`, number: true }] : []),
  ];
  const row = (line) => [
    line.organization,
    nameOf(line),
    hours(line.gpu_hours.hp),
    hours(line.gpu_hours.guaranteed),
    hours(line.gpu_hours.at_will),
    hours(line.gpu_hours.lost_to_evictions + line.gpu_hours.lost_to_nodes),
    hours(line.gpu_hours.sold),
    hours(line.gpu_hours.kept),
    hours(line.gpu_hours.broken),
    number(line.evictions),
    ...(priced ? [line.charges ? number(line.charges.total) : NONE] : []),
  ];
  return table({ caption: "GPU hours by organization", columns, cards: true, rows: answer.organizations.map(row) });
}

function preemptions({ answer }) {
  if (answer.preemptions.length === 0) return h("p", { class: "quiet" }, "No spot task was evicted for high-priority work.");
  const columns = [
    { name: "High-priority tasks of" },
    { name: "evict spot tasks of" },
    { name: "Pool" },
    ...["Evictions", "Promises broken", "Lost GPU h"].map((name) => ({ name, number: true })),
  ];
  const row = (one) => [one.by, one.of, nameOf(one), number(one.evictions), number(one.broken), hours(one.lost_gpu_hours)];
  return table({ caption: "Who preempts whom", columns, cards: true, rows: answer.preemptions.map(row) });
}

function chooser(month) {
  const go = (event) => {
    location.hash = link(event.target.value);
  };
  const all = months();
  const known = all.includes(month) ? all : [month, ...all];
  const options = known.map((one) => h("option", { value: one, selected: one === month }, one));
  const download = (format, words) =>
    h("button", { type: "button", on: { click: () => save(address("/v1/statement", { month, by: "day", format }), `statement-${month}-${format}.csv`) } }, words);
  return h(
    "div",
    { class: "controls" },
    field("Month (UTC)", h("select", { id: "month", on: { change: go } }, options)),
    download("csv", "Download CSV"),
    download("opencost", "Download rows of OpenCost"),
  );
}

/** The page `#/statement/MONTH`. */
export function statementPage(asked) {
  const month = asked ?? months()[0];
  const sources = () => ({ answer: address("/v1/statement", { month }) });
  // Time passes in every answer: what is drawn changes with tenths of GPU hours.
  const same = (answer) => JSON.stringify(answer, (_, value) => (typeof value === "number" ? Math.round(value * 10) : value));
  const part = (id, title, about, render) => new Section({ id, title, about, sources, same, everyMs: 60_000, render });
  return {
    title: `Statement ${month}`,
    heading: `Statement of ${month}`,
    lead: [chooser(month)],
    sections: [
      part("statement", "Where GPU time went", "What tasks held, idle and drained GPUs add up to the capacity, to the second.", pools),
      part("organizations", "By organization", "GPU hours. Sold, kept and broken are those that ended promises had promised.", organizations),
      part("preemptions", "Who preempts whom", null, preemptions),
    ],
    clock: () => null,
  };
}
