// Why a quota is what it is: step by step, and as a picture of the arithmetic.

import { address } from "./api.js";
import { badge, facts, h, s, table } from "./dom.js";
import { count, duration, NONE, number, percent, sentence, signed, time } from "./format.js";
import { placedBy } from "./pools.js";
import { Section } from "./section.js";
import { stageBadge } from "./stage.js";

const SOURCES = {
  reported_state: "the state that its scheduler reported",
  nodes: "its nodes",
  capacity_table: "the imported capacity",
};

/** The arithmetic from capacity to quota, a row each: from where to where its bar goes. */
function rows({ quota, supply, capacity, placed_by: side }) {
  const { capacity_gpus: all, demand_bound_gpus: bound, inventory_gpus: free, eta, quota_gpus: result, hours } = quota;
  const scaled = free * eta;
  const of = supply.estimated ? "estimated" : "at the last renewal";
  return [
    {
      words: "capacity",
      value: number(all),
      from: 0,
      to: all,
      cls: "total",
      note: `from ${side === "headroom" ? SOURCES.nodes : (SOURCES[capacity.source] ?? capacity.source)}`,
    },
    {
      words: `− bound for ${hours} h`,
      value: `−${number(bound)}`,
      from: Math.max(0, all - bound),
      to: all,
      cls: "minus",
      note: `high-priority work needs at most so many, at ${percent(quota.guarantee_rate)}`,
    },
    {
      words: "= inventory",
      value: number(free),
      from: 0,
      to: free,
      cls: "plus",
      note: "stays free of high-priority demand",
    },
    {
      words: `× eta ${number(eta)}`,
      value: number(Math.floor(scaled * 1000) / 1000),
      from: 0,
      to: scaled,
      cls: eta < 1 ? "minus" : "plus",
      note: "what kept and broken promises have taught",
    },
    {
      words: "ceiling: idle + spot",
      value: number(supply.ceiling_gpus),
      from: 0,
      to: supply.ceiling_gpus,
      cls: "limit",
      note: `${number(supply.idle_gpus)} idle and ${number(supply.spot_gpus)} held by spot, ${of}`,
    },
    {
      words: "= quota",
      value: number(result),
      from: 0,
      to: result,
      cls: "result",
      note: quota.stage === "fresh" ? "the lesser of the two above" : `as the stage ${quota.stage} allows`,
    },
  ];
}

function waterfall(explained) {
  const parts = rows(explained);
  const most = Math.max(...parts.map(({ to }) => to), 1e-9);
  const row = ({ words, value, from, to, cls, note }) =>
    h(
      "li",
      null,
      h("span", { class: "what" }, words),
      s(
        "svg",
        { class: "track", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        s("rect", { class: "rail", width: 100, height: 10 }),
        s("rect", {
          class: cls,
          x: (100 * from) / most,
          width: Math.max(to > from ? 0.4 : 0, (100 * (to - from)) / most),
          height: 10,
        }),
      ),
      h("span", { class: "value" }, value),
      h("span", { class: "note" }, note),
    );
  return h(
    "figure",
    null,
    h("figcaption", null, "From capacity to quota, in GPUs"),
    h("ol", { class: "waterfall" }, parts.map(row)),
  );
}

function overrideList(overrides) {
  const one = ({ kind, gpus, from, to, reason, by }) =>
    h("li", null, badge("warn", kind), ` ${number(gpus)} GPUs, `, time(from), " to ", time(to), `: ${reason} (${by})`);
  return overrides?.length ? [h("h3", null, "Overrides that touched it"), h("ul", null, overrides.map(one))] : null;
}

/** The experts whose bounds were mixed, the largest weight first. */
function expertList(experts) {
  const stated = experts.filter((one) => one.bound_gpus !== null);
  const one = ({ expert, bound_gpus, weight }) => `${percent(weight)} ${expert} (${number(bound_gpus)})`;
  return stated.sort((a, b) => b.weight - a.weight).map(one).join(", ");
}

/** The HP jobs, and how much the bound drawn from them counts. */
function jobsWords({ running, waiting, bound_gpus, share }) {
  const jobs = `${number(running)} run, ${number(waiting)} wait`;
  if (bound_gpus === null) return `${jobs}; too few arrivals were seen to draw a bound from them`;
  return `${jobs}; the bound drawn from them, ${number(bound_gpus)}, counts ${percent(share)}`;
}

/** How the bound came about. */
function boundFacts({ bound, forecast }) {
  const { conformal, live } = bound;
  return facts([
    ["aggregation", `${bound.aggregation} (chosen by ${bound.aggregation_source})`],
    ["forecast by", `${forecast.model}${forecast.run_id ? `, ${forecast.run_id}` : ""}`],
    ["issued at", time(forecast.issue_time)],
    ["usage is late by", forecast.hours_late > 0 ? count(forecast.hours_late, "hour") : null],
    ["have not reported the last hour", forecast.not_reported?.length ? forecast.not_reported.join(", ") : null],
    ["forecast steps covered", number(bound.steps)],
    ["deviations added", bound.multiplier === null ? null : number(bound.multiplier)],
    ["mixed from", bound.experts?.length ? expertList(bound.experts) : null],
    [
      "measured peaks it learned from",
      conformal ? `${number(conformal.residuals)}, ${percent(conformal.coverage)} of them covered` : null,
    ],
    [
      "HP demand when it was computed",
      live ? `${number(live.hp_demand_gpus)}; the live bound counts ${percent(live.share)}` : null,
    ],
    ["HP jobs", live?.jobs ? jobsWords(live.jobs) : null],
    ["returns where a day off ends", bound.returns_gpus == null ? null : `${number(bound.returns_gpus)}, and the bound is no less`],
    [
      "raised from",
      bound.raised_from_gpus === null ? null : `${number(bound.raised_from_gpus)}, the bound of fewer hours`,
    ],
  ]);
}

function driftFacts(drift) {
  if (!drift) return null;
  return [
    h("h3", null, "How its forecasts fared in the last seven days"),
    facts([
      ["mean absolute error", `${number(drift.mae_gpus)} GPUs (last value: ${number(drift.last_value_mae_gpus)})`],
      ["hours at or below the 0.9 quantile", `${percent(drift.coverage_q90)} of ${number(drift.scored_hours)}`],
      ["bounds that held", `${percent(drift.bound_coverage)} of ${number(drift.bound_issue_hours)}`],
      [
        "judgement",
        drift.drifts
          ? badge("bad", "drifts", drift.coverage.detail)
          : badge("good", "no drift seen", drift.coverage.detail),
      ],
    ]),
  ];
}

/** How forecasts of starts fared, a row for each class. */
function startTable(starts) {
  if (!starts?.length) return null;
  const columns = [
    { name: "Class" },
    { name: "Starts", number: true },
    { name: "Within 50 % interval", number: true },
    { name: "Within 90 % interval", number: true },
    { name: "Pinball loss", number: true },
    { name: "Of the mean wait", number: true },
  ];
  const row = (one) => [
    one.class,
    number(one.scored),
    percent(one.coverage_50),
    percent(one.coverage_90),
    duration(one.pinball_s),
    duration(one.class_mean_pinball_s),
  ];
  return [
    h("h3", null, "How its forecasts of starts fared"),
    table({ caption: "Forecasts of starts, held against the starts", columns, rows: starts.map(row) }),
  ];
}

function trials(bound) {
  const columns = [
    { name: "Aggregation" },
    { name: "Coverage", number: true },
    { name: "90 % interval", number: true },
    { name: "Pinball loss, GPUs", number: true },
    { name: "Over-reserved, GPUs", number: true },
  ];
  const row = (one) => [
    one.aggregation === bound.aggregation ? h("strong", null, `${one.aggregation} (serves)`) : one.aggregation,
    percent(one.coverage),
    one.coverage_interval.map(percent).join(" to "),
    number(one.pinball_gpus),
    number(one.over_reserved_gpus),
  ];
  if (!bound.trials?.length) return null;
  return h(
    "details",
    { data: { key: "trials" } },
    h("summary", null, "How each aggregation fared on the validation part"),
    table({ caption: "Aggregations on the validation part", columns, rows: bound.trials.map(row) }),
  );
}

function figures({ quota }) {
  return facts(
    [
      [`quota for ${quota.hours} h`, h("span", { class: "figure" }, number(quota.quota_gpus))],
      ["may still be admitted", h("span", { class: "figure" }, number(quota.available_gpus))],
      ["held by spot inside its guarantee", h("span", { class: "figure" }, number(quota.used_gpus))],
      ["bound", h("span", { class: "figure" }, number(quota.demand_bound_gpus))],
      ["capacity", h("span", { class: "figure" }, number(quota.capacity_gpus))],
      ["idle at the last renewal", h("span", { class: "figure" }, number(quota.idle_gpus))],
    ],
    { class: "facts figures" },
  );
}

function explained(data) {
  const { quota, supply } = data;
  return [
    h(
      "p",
      null,
      stageBadge(quota),
      " ",
      quota.as_of && badge("warn", "virtual clock", "The service runs on a clock of its own"),
      " computed ",
      time(quota.computed_at),
      ", valid until ",
      time(quota.valid_until),
      `, guarantee rate ${percent(quota.guarantee_rate)}, ${placedBy(data.placed_by)}`,
    ),
    figures(data),
    waterfall(data),
    h("h3", null, "Why this quota"),
    h(
      "ol",
      { class: "steps" },
      data.steps.map((step) => h("li", null, step)),
    ),
    h(
      "ul",
      { class: "reasons" },
      quota.reasons.map(({ code, detail }) => h("li", null, h("code", null, code), " ", sentence(detail))),
    ),
    h("p", null, h("strong", null, "What would change it: "), data.what_would_change),
    overrideList(data.overrides),
    h("h3", null, "The bound"),
    boundFacts(data),
    trials(data.bound),
    supply.longest_quota_wait_s > 0 &&
      h("p", null, `The longest that a task waits because of the quota: ${duration(supply.longest_quota_wait_s)}.`),
    driftFacts(data.drift),
    startTable(data.starts),
  ];
}

/** Tabs for the offered hours; arrows move between them. */
function tabs(state, changed) {
  const strip = h("div", { role: "tablist", "aria-label": "Guarantee hours", class: "tabs" });
  const choose = (hours, focus) => {
    changed(hours);
    fill();
    if (focus) strip.querySelector("[aria-selected=true]").focus();
  };
  const step = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!move) return;
    event.preventDefault();
    const { offered, hours } = state;
    const next = Number.isFinite(move)
      ? (offered.indexOf(hours) + move + offered.length) % offered.length
      : move < 0
        ? 0
        : offered.length - 1;
    choose(offered[next], true);
  };
  const tab = (hours) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${hours}`,
        "aria-controls": "quota-panel",
        "aria-selected": String(hours === state.hours),
        tabindex: hours === state.hours ? "0" : "-1",
        on: { click: () => choose(hours), keydown: step },
      },
      `${hours} h`,
    );
  const fill = () => strip.replaceChildren(...state.offered.map(tab));
  return { strip, fill };
}

/** Ways to state a capacity, one of which is enough. */
function capacityCommands({ id }) {
  const way = (words, command) => h("li", null, words, h("pre", null, h("code", null, command)));
  const state = `PUT /v1/pools/${encodeURIComponent(id)}/state`;
  return h(
    "ul",
    null,
    way("With its usage, from a file of this pool alone:", "datasets ingest --format usage usage.csv --capacity GPUS"),
    way("Where its scheduler reports: capacity_gpus, idle_gpus and as_of in", state),
    way("Where Headroom is to place its tasks, each node:", "PUT /v1/nodes/NODE"),
  );
}

/** The quota by hours, and why. `state` holds the offered hours and the chosen ones. */
export function explainSection(pool, state, changed) {
  const { strip, fill } = tabs(state, changed);
  const section = new Section({
    id: "quota",
    title: "Quota",
    before: strip,
    sources: () =>
      state.hours
        ? {
            explained: address("/v1/quota/explain", {
              cluster: pool.cluster,
              gpu_model: pool.gpu_model,
              hours: state.hours,
            }),
          }
        : { list: "/v1/pools" },
    render: (data) => {
      if (data.explained) return explained(data.explained);
      const summary = data.list.pools.find((one) => one.id === pool.id);
      return h(
        "div",
        { class: "notice absent" },
        h("p", null, h("strong", null, "There is no quota: "), sentence(summary?.no_quota ?? "none was computed yet")),
        summary && summary.capacity_gpus === null && capacityCommands(summary),
      );
    },
  });
  section.body.id = "quota-panel";
  section.showHours = () => {
    strip.hidden = state.offered.length === 0;
    for (const [name, value] of [
      ["role", "tabpanel"],
      ["aria-labelledby", `tab-${state.hours}`],
    ])
      if (state.hours) section.body.setAttribute(name, value);
      else section.body.removeAttribute(name);
    fill();
  };
  section.showHours();
  return section;
}

/** A change in GPUs, or that there is none. */
export const change = (now, then) =>
  now === null || then === null ? NONE : then === now ? "no change" : signed(then - now);
