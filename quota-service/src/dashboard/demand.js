// The fan: what was measured on the left, what is forecast on the right.

import { address } from "./api.js";
import { choice, field, h } from "./dom.js";
import { count, number } from "./format.js";
import { Section, notice } from "./section.js";
import { timeChart } from "./timechart.js";

const HOUR_S = 3600;
const seconds = (text) => Math.round(Date.parse(text) / 1000);

/** Hours measured and forecast, on one axis: `measured` and for each quantile a list as long as `x`. */
function joined(from, measured, steps, names) {
  const starts = measured.map((_, index) => from + index * HOUR_S);
  const x = [...new Set([...starts, ...steps.map((step) => seconds(step.target_time))])].sort((a, b) => a - b);
  const place = new Map(x.map((second, index) => [second, index]));
  const empty = () => new Array(x.length).fill(null);
  const lines = { measured: empty() };
  measured.forEach((value, index) => (lines.measured[place.get(starts[index])] = value));
  for (const name of names) {
    lines[name] = empty();
    for (const step of steps) lines[name][place.get(seconds(step.target_time))] = step[name] ?? null;
  }
  return { x, lines };
}

/** The lines and bands of one organization, whose forecast has quantiles, or of the pool, whose total is that of independent organizations. */
function pictured(lines, isPool) {
  const made = [
    { words: "measured", values: lines.measured, colour: "--measured", cls: "measured" },
    {
      words: "forecast mean",
      values: lines.mean_gpus,
      colour: "--forecast",
      cls: "forecast dashed",
      dash: "dashed",
      points: true,
    },
  ];
  if (isPool) {
    made.push({ words: "0.9 if independent", values: lines.q90_gpus, colour: "--forecast", width: 1 });
    const words = "mean to 0.9, were organizations independent";
    return { made, bands: [{ upper: 2, lower: 1, colour: "--band", words, cls: "band" }] };
  }
  made.push(
    { words: "0.5 quantile", values: lines.q50_gpus, colour: "--forecast", width: 1, dash: "dotted" },
    { words: "0.9 quantile", values: lines.q90_gpus, colour: "--forecast", width: 1 },
    { words: "0.95 quantile", values: lines.q95_gpus, colour: "--forecast", width: 1 },
  );
  return {
    made,
    bands: [
      { upper: 3, lower: 2, colour: "--band", words: "0.5 to 0.9 quantile", cls: "band" },
      { upper: 4, lower: 3, colour: "--band-outer", words: "0.9 to 0.95 quantile", cls: "band-outer" },
    ],
  };
}

/** Capacity and the bound for the hours that were chosen: from when it was computed on, so that the hour that runs is a part of it. */
function limits(x, explained) {
  if (!explained) return [];
  const { capacity_gpus: capacity, demand_bound_gpus: bound, hours, computed_at: computed } = explained.quota;
  const from = seconds(computed);
  const until = from + hours * HOUR_S;
  return [
    { words: "capacity", values: x.map(() => capacity), colour: "--ink", cls: "capacity", width: 1 },
    {
      words: `bound for ${hours} h`,
      values: x.map((second) => (second + HOUR_S > from && second < until ? bound : null)),
      colour: "--bound",
      cls: "bound",
      width: 3,
    },
  ];
}

function fan(data, pool, organization, withLimits) {
  const isPool = organization === "";
  const measured = isPool
    ? data.demand?.pool
    : data.demand?.organizations.find((one) => one.organization === organization)?.demand_gpus;
  const summary = data.pools?.pools.find((one) => one.id === pool.id);
  const steps =
    (isPool
      ? summary?.forecast
      : data.forecast?.organizations.find((one) => one.organization === organization)?.steps) ?? [];
  const from = data.demand ? seconds(data.demand.from) : 0;
  const { x, lines } = joined(from, measured ?? [], steps, ["mean_gpus", "q50_gpus", "q90_gpus", "q95_gpus"]);
  if (x.length === 0) return null;
  const { made, bands } = pictured(lines, isPool);
  const now = steps[0] ? seconds(steps[0].target_time) : from + (measured ?? []).length * HOUR_S;
  const all = isPool && withLimits ? [...made, ...limits(x, data.explained)] : made;
  const last = (measured ?? []).findLast((value) => value !== null);
  const who = isPool ? "all organizations" : organization;
  const ahead = steps.length
    ? `Forecast for the next ${count(steps.length, "hour")}: mean up to ${number(Math.max(...steps.map((step) => step.mean_gpus)))}, 0.9 quantile${isPool ? " of independent organizations" : ""} up to ${number(Math.max(...steps.map((step) => step.q90_gpus)))} GPUs.`
    : "There is no forecast.";
  return timeChart({
    title: `High-priority demand of ${who}, in GPUs by hour`,
    label: `Demand of ${who}. Newest measured hour: ${number(last)} GPUs. ${ahead}`,
    x,
    lines: all,
    bands,
    now,
    key: "fan",
    height: 300,
  });
}

/** What the reader chooses: whose demand, how many hours, and whether the limits are drawn. */
function controls(chosen, redraw, refresh) {
  const selector = choice("fan-organization", [["", "all organizations"]], "", (value) => {
    chosen.organization = value;
    redraw();
  });
  const spans = [24, 72, 168].map((hours) => [hours, hours === 24 ? "24 hours" : `${hours / 24} days`]);
  const span = choice("fan-hours", spans, chosen.hours, (value) => {
    chosen.hours = Number(value);
    refresh();
  });
  const toggle = () => {
    chosen.limits = box.checked;
    redraw();
  };
  const box = h("input", { type: "checkbox", id: "fan-limits", checked: true, on: { change: toggle } });
  const element = h(
    "div",
    { class: "controls" },
    field("Organization", selector),
    field("Measured hours", span),
    h("div", { class: "check" }, box, h("label", { for: "fan-limits" }, "capacity and bound")),
  );
  return { element, selector };
}

/** Offers the organizations that there are. */
function offer(selector, data, chosen) {
  const known = [...(data.demand?.organizations ?? []), ...(data.forecast?.organizations ?? [])];
  const names = [...new Set(known.map((one) => one.organization))].sort();
  const offered = [...selector.options].slice(1).map((one) => one.value);
  if (names.join("\n") === offered.join("\n")) return;
  const all = [["", "all organizations"], ...names.map((name) => [name, name])];
  selector.replaceChildren(...all.map(([value, words]) => h("option", { value }, words)));
  if (!names.includes(chosen.organization)) chosen.organization = "";
  selector.value = chosen.organization;
}

/** Measured hours and the forecast, of the pool or an organization. */
export function demandSection(pool, state) {
  const chosen = { organization: "", hours: 24, limits: true };
  const { element, selector } = controls(
    chosen,
    () => section.redraw(),
    () => section.refresh(),
  );
  const query = { cluster: pool.cluster, gpu_model: pool.gpu_model };
  const section = new Section({
    id: "demand",
    title: "Demand and forecast",
    before: element,
    optional: ["demand", "forecast", "explained", "pools"],
    sources: () => ({
      demand: address("/v1/demand", { ...query, hours: chosen.hours }),
      forecast: address("/v1/forecast", query),
      pools: "/v1/pools",
      explained: state.hours ? address("/v1/quota/explain", { ...query, hours: state.hours }) : null,
    }),
    render: (data, { faults }) => {
      offer(selector, data, chosen);
      const missing = ["demand", "forecast"].filter((name) => faults[name]);
      const none = "Neither measured demand nor a forecast is known for these hours.";
      // An answer that did not come does not say that nothing is known.
      const isKnown = ["demand", "forecast", "pools"].every((name) => data[name]);
      return [
        ...missing.map((name) => notice(faults[name], () => section.refresh(true))),
        fan(data, pool, chosen.organization, chosen.limits) ?? (isKnown && h("p", { class: "quiet" }, none)),
      ];
    },
  });
  return section;
}
