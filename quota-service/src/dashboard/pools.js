// Pools at a glance.

import { address } from "./api.js";
import { badge, h, s, say } from "./dom.js";
import { count, NONE, number, percent, sentence, time } from "./format.js";
import { Section } from "./section.js";
import { stageBadge } from "./stage.js";
import { firstSteps, STORIES, story } from "./story.js";

/** A filter is worth its place from so many pools on. */
const MANY = 6;

export const poolLink = (id) => `#/pool/${encodeURIComponent(id)}`;
const highest = (values) => (values.length ? Math.max(...values) : null);
const spotUsed = (pool) => highest(Object.values(pool.spot_gpus_by_hours ?? {}));
const demandNow = (pool) => pool.hp_demand_gpus ?? pool.latest_demand_gpus;
/** B_H of the longest hours. The 0.9 quantile of a pool's forecast is that of independent organizations, and holds less often. */
const bound = (pool) => highest(Object.values(pool.demand_bound_gpus_by_hours ?? {}));
const forecastMean = (pool) => highest((pool.forecast ?? []).map((step) => step.mean_gpus));
const broken = (pool) => pool.outcomes_24h?.broken ?? 0;
const longest = (pool) => pool.quota_gpus_by_hours?.[highest(pool.offered_hours ?? [])] ?? null;

/** The capacity as a bar: demand now, what it may rise to, and what spot holds at the other end. */
function bar(pool) {
  const capacity = pool.capacity_gpus;
  const [now, upper, spot] = [demandNow(pool), bound(pool), spotUsed(pool)];
  if (!capacity) return null;
  const x = (gpus) => Math.min(100, (100 * Math.max(0, gpus ?? 0)) / capacity);
  const words = `Of ${number(capacity)} GPUs, high-priority work needs ${number(now)}, its bound is ${number(upper)}; spot tasks hold ${number(spot)}.`;
  return s(
    "svg",
    { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": words },
    s("rect", { class: "free", width: 100, height: 10 }),
    s("rect", { class: "upper", width: x(upper), height: 10 }),
    s("rect", { class: "hp", width: x(now), height: 10 }),
    s("rect", { class: "spot", x: 100 - x(spot), width: x(spot), height: 10 }),
    forecastMean(pool) !== null &&
      s("rect", { class: "mean", x: Math.min(99.2, x(forecastMean(pool))), width: 0.8, height: 10 }),
  );
}

/** The forecast as a small line with its band. */
function spark(pool) {
  const steps = pool.forecast ?? [];
  if (steps.length < 2) return null;
  const now = demandNow(pool) ?? steps[0].mean_gpus;
  const points = [{ mean_gpus: now, q90_gpus: now }, ...steps];
  const all = points.flatMap((step) => [step.mean_gpus, step.q90_gpus]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const at = (index, value) =>
    `${((100 * index) / (points.length - 1)).toFixed(1)},${(22 - (20 * (value - low)) / Math.max(high - low, 1e-9)).toFixed(1)}`;
  const means = points.map((step, index) => at(index, step.mean_gpus));
  const uppers = points.map((step, index) => at(index, step.q90_gpus));
  return s(
    "svg",
    { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("polygon", { class: "upper", points: [...means, ...uppers.toReversed()].join(" ") }),
    s("polyline", { class: "mean", points: means.join(" ") }),
  );
}

/** A pool that never had a quota has no figures in the list but its capacity, though usage and a run may be there: its page shows them. */
const isWithoutQuota = (pool) => !pool.computed_at;
const isWithoutCapacity = (pool) => pool.capacity_gpus === null || pool.capacity_gpus === undefined;

function demandCell(pool) {
  if (isWithoutCapacity(pool)) return h("span", { class: "why" }, "shown once the capacity is known");
  if (isWithoutQuota(pool)) return h("span", { class: "why" }, "shown with the first quota");
  const placed = pool.hp_demand_gpus !== null && pool.hp_demand_gpus !== undefined;
  const mean = forecastMean(pool);
  const bounded = bound(pool) === null ? "" : `, bound ${number(round(bound(pool)))}`;
  return [
    h(
      "span",
      { class: "big", title: placed ? "Running and waiting now" : "In the newest measured hour" },
      number(demandNow(pool)),
    ),
    mean === null
      ? h("span", { class: "small" }, "no forecast")
      : h(
          "span",
          { class: "small narrow" },
          `mean up to ${number(round(mean))} within ${pool.forecast.length}\u00a0h${bounded}`,
        ),
    spark(pool),
  ];
}

/** A name that may be broken behind its colons. */
const breakable = (id) => id.split(/(?<=:)/).flatMap((part) => [part, h("wbr")]);
const round = (value) => (value === null ? null : Math.round(value * 10) / 10);

function quotaCell(pool) {
  const hours = Object.entries(pool.quota_gpus_by_hours ?? {});
  if (hours.length === 0) return h("span", { class: "why" }, sentence(pool.no_quota ?? "none was computed yet"));
  const one = ([hour, gpus]) =>
    h("li", null, h("span", { class: "hours" }, `${hour} h`), h("span", null, number(gpus)));
  return [h("ul", { class: "quotas" }, hours.map(one)), pool.no_quota && h("span", { class: "why" }, sentence(pool.no_quota))];
}

function promiseCell(pool) {
  const { kept = 0, broken: lost = 0, ...others } = pool.outcomes_24h ?? {};
  const apart = Object.values(others).reduce((sum, value) => sum + value, 0);
  if (kept + lost + apart === 0) return h("span", { class: "quiet" }, "none ended");
  return [
    lost > 0 ? badge("bad", `${number(lost)} broken`) : badge("good", "none broken"),
    h(
      "span",
      { class: "small narrow" },
      kept + lost > 0 ? `${percent(kept / (kept + lost))} of ${number(kept + lost)} kept` : "",
      apart > 0 ? `, ${number(apart)} ended otherwise` : "",
    ),
  ];
}

const SIDES = { headroom: "placed by Headroom", external: "placed by an external scheduler" };

/** Which side places the tasks of a pool. */
export const placedBy = (side) => SIDES[side] ?? "placement: undecided";

const overridesCell = (pool) =>
  pool.overrides > 0 ? badge("warn", `${number(pool.overrides)} active`) : h("span", { class: "quiet" }, "none");

const COLUMNS = [
  {
    name: "Pool",
    by: (pool) => pool.id,
    cell: (pool) => [
      h("a", { href: poolLink(pool.id), data: { key: `pool-${pool.id}` } }, breakable(pool.id)),
      !isWithoutQuota(pool) && h("span", { class: "small" }, count(pool.organizations, "organization")),
      h("span", { class: "small" }, placedBy(pool.placed_by)),
      pool.tasks &&
        h("span", { class: "small" }, `${number(pool.tasks.waiting)} waiting, ${number(pool.tasks.running)} running`),
    ],
  },
  {
    name: "Stage",
    by: (pool) => ["conservative", "stale", null, "fresh"].indexOf(pool.stage ?? null),
    cell: (pool) => [
      stageBadge(pool),
      pool.computed_at && h("span", { class: "small narrow" }, "computed ", time(pool.computed_at)),
    ],
  },
  {
    name: "Capacity",
    number: true,
    by: (pool) => pool.capacity_gpus,
    cell: (pool) =>
      isWithoutCapacity(pool)
        ? h("span", { class: "why" }, "not known")
        : [h("span", { class: "big" }, number(pool.capacity_gpus)), !isWithoutQuota(pool) && bar(pool)],
  },
  { name: "HP demand", number: true, by: demandNow, cell: demandCell },
  { name: "Spot used", number: true, by: spotUsed, cell: (pool) => number(spotUsed(pool)) },
  { name: "Quota", number: true, by: longest, cell: quotaCell },
  { name: "Eta", number: true, by: (pool) => pool.eta, cell: (pool) => number(pool.eta) },
  { name: "Promises, 24 h", by: broken, cell: promiseCell },
  { name: "Overrides", by: (pool) => pool.overrides ?? 0, cell: overridesCell },
];

function compared(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}

function ordered(pools, { column, down }) {
  const { by } = COLUMNS[column];
  return pools.toSorted((a, b) => (down ? -1 : 1) * compared(by(a), by(b)) || compared(a.id, b.id));
}

function heading(column, index, view, changed) {
  const sorted = view.column === index ? (view.down ? "descending" : "ascending") : null;
  const sort = () => {
    Object.assign(view, { column: index, down: view.column === index ? !view.down : Boolean(column.number) });
    changed();
    say(`Sorted by ${column.name}, ${view.down ? "descending" : "ascending"}`);
  };
  return h(
    "th",
    { role: "columnheader", scope: "col", "aria-sort": sorted, class: column.number ? "number" : null },
    h(
      "button",
      { type: "button", class: "sort", data: { key: `sort-${index}` }, on: { click: sort } },
      column.name,
      h("span", { class: "arrow", "aria-hidden": "true" }),
    ),
  );
}

function poolTable(pools, view, changed) {
  const row = (pool) =>
    h(
      "tr",
      { role: "row" },
      COLUMNS.map((column, index) =>
        h(
          index === 0 ? "th" : "td",
          {
            role: index === 0 ? "rowheader" : "cell",
            scope: index === 0 ? "row" : null,
            class: column.number ? "number" : null,
            data: { label: column.name },
          },
          h("div", null, column.cell(pool) ?? NONE),
        ),
      ),
    );
  return h(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": "Table of pools" },
    h(
      "table",
      { class: "cards", role: "table" },
      h("caption", { class: "hidden" }, "Pools; the buttons in the head sort"),
      h(
        "thead",
        { role: "rowgroup" },
        h(
          "tr",
          { role: "row" },
          COLUMNS.map((column, index) => heading(column, index, view, changed)),
        ),
      ),
      h("tbody", { role: "rowgroup" }, pools.map(row)),
    ),
  );
}

const LEGEND = [
  ["hp", "HP demand now"],
  ["upper", "up to its bound for the longest hours"],
  ["spot", "held by spot"],
  ["free", "the rest of the capacity"],
];

/** The page `#/`. */
export function poolsPage() {
  const view = { column: 0, down: false, filter: "" };
  let section = null;
  const filter = h("input", {
    type: "search",
    id: "pool-filter",
    autocomplete: "off",
    spellcheck: "false",
    on: {
      input: () => {
        view.filter = filter.value.trim().toLowerCase();
        section.redraw();
      },
    },
  });
  const controls = h(
    "div",
    { class: "controls", hidden: true },
    h("div", { class: "field" }, h("label", { for: "pool-filter" }, "Pools whose name has"), filter),
  );
  section = new Section({
    id: "pools",
    title: "Pools",
    quietTitle: true,
    before: controls,
    sources: () => ({ list: "/v1/pools" }),
    render: ({ list: { pools } }) => {
      controls.hidden = pools.length < MANY;
      if (pools.length === 0) return firstSteps();
      const found = pools.filter((pool) => pool.id.toLowerCase().includes(view.filter));
      const shown =
        found.length === pools.length
          ? count(pools.length, "pool")
          : `${number(found.length)} of ${count(pools.length, "pool")}`;
      const stories = pools.length <= STORIES ? pools.map((pool) => story(pool, poolLink(pool.id))) : [];
      return [
        stories,
        h("p", { class: "quiet" }, `${shown}, in GPUs.`),
        poolTable(ordered(found, view), view, () => section.redraw()),
        h(
          "ul",
          { class: "legend" },
          LEGEND.map(([cls, words]) =>
            h("li", null, h("span", { class: `swatch ${cls}`, "aria-hidden": "true" }), words),
          ),
        ),
      ];
    },
  });
  return {
    title: "Pools",
    heading: "Pools at a glance",
    sections: [section],
    clock: () => clockOf(section.data?.list.pools ?? []),
  };
}

/** The address of a quota that tells whether the clock is a virtual one, where a pool has one. */
export function clockOf(pools) {
  const pool = pools.find((one) => Object.keys(one.quota_gpus_by_hours ?? {}).length > 0);
  return pool
    ? address("/v1/quota", { cluster: pool.cluster, gpu_model: pool.gpu_model, hours: pool.offered_hours[0] })
    : null;
}
