// What eta and the quota were.

import { address } from "./api.js";
import { badge, h, table } from "./dom.js";
import { number, sentence, time } from "./format.js";
import { Section } from "./section.js";
import { timeChart } from "./timechart.js";

const seconds = (text) => Math.round(Date.parse(text) / 1000);

function steps({ eta, moves }, now) {
  const known = moves.toReversed();
  const x = [...known.map((move) => seconds(move.at)), now];
  const before = known[0];
  const values = [...known.map((move) => move.to), eta];
  return { x: [x[0] - 3600, ...x], values: [before.from, ...values] };
}

const COLUMNS = [
  { name: "When" },
  { name: "From", number: true },
  { name: "To", number: true },
  { name: "Kept", number: true },
  { name: "Broken", number: true },
  { name: "Direction" },
  { name: "Why" },
];

function moveRow(move) {
  const direction = move.to > move.from ? badge("good", "up") : badge("warn", "down");
  const why = h("span", { class: "sentence" }, sentence(move.reason));
  return [time(move.at), number(move.from), number(move.to), number(move.kept), number(move.broken), direction, why];
}

/** The moves as a line of steps, and one by one. */
function moves({ eta, quota }) {
  const newest = eta.moves[0];
  const { x, values } = steps(eta, Math.max(seconds(quota.computed_at), seconds(newest.at)));
  const last = `the last from ${number(newest.from)} to ${number(newest.to)}`;
  const chart = timeChart({
    key: "eta",
    title: "Eta over its last moves",
    label: `Eta is ${number(eta.eta)} after ${eta.moves.length} moves, ${last}.`,
    x,
    lines: [{ words: "eta", values, colour: "--forecast", stepped: true, points: true, cls: "forecast" }],
    height: 180,
  });
  const rows = eta.moves.map(moveRow);
  return [chart, table({ caption: "Moves of eta, newest first", columns: COLUMNS, cards: true, rows })];
}

/** Eta's last moves and why. */
export function etaSection(pool, state) {
  const query = () => ({ cluster: pool.cluster, gpu_model: pool.gpu_model, hours: state.hours });
  return new Section({
    id: "eta",
    title: "Eta",
    about:
      "The safety coefficient: it falls where promises were broken more often than they may be, and rises where they were kept and spot tasks wait.",
    sources: () => (state.hours ? { explained: address("/v1/quota/explain", query()) } : { list: "/v1/pools" }),
    render: ({ explained }) => {
      if (!explained) return h("p", { class: "quiet" }, "There is no quota, and eta stands where it was.");
      const { eta } = explained;
      const lead = h("strong", null, `Eta is ${number(eta.eta)}. `);
      const { detail } = eta.last_decision;
      return [
        h("p", null, lead, sentence(`${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`)),
        eta.moves.length > 0 ? moves(explained) : h("p", { class: "quiet" }, "It has not moved yet."),
      ];
    },
  });
}

/** The quota as it was computed. */
export function historySection(pool, state) {
  return new Section({
    id: "history",
    title: "What the quota was",
    sources: () =>
      state.hours
        ? {
            history: address("/v1/quota/history", {
              cluster: pool.cluster,
              gpu_model: pool.gpu_model,
              hours: state.hours,
              limit: 2016,
            }),
          }
        : { list: "/v1/pools" },
    render: ({ history }) => {
      if (!history) return h("p", { class: "quiet" }, "No hours are offered.");
      const known = history.quotas.toReversed();
      if (known.length < 2)
        return h(
          "p",
          { class: "quiet" },
          known.length === 0
            ? "No quota is stored yet. On a virtual clock none is stored."
            : "One quota is stored so far: a line needs two.",
        );
      const values = known.map((one) => one.quota_gpus);
      const label = `Quota for ${history.hours} hours: between ${number(Math.min(...values))} and ${number(Math.max(...values))} GPUs over ${known.length} computations, ${number(values.at(-1))} now.`;
      return timeChart({
        key: "history",
        title: `Quota for ${history.hours} h as it was computed, in GPUs`,
        label,
        x: known.map((one) => seconds(one.computed_at)),
        lines: [
          { words: `quota for ${history.hours} h`, values, colour: "--forecast", stepped: true, cls: "forecast" },
        ],
        height: 220,
        fromZero: Math.min(...values) < Math.max(...values) / 2,
      });
    },
  });
}
