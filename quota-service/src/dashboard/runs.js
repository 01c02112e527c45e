// Training runs of a cluster beside each other.

import { address, look } from "./api.js";
import { badge, choice, field, h, table } from "./dom.js";
import { count, duration, NONE, number, signed, time } from "./format.js";
import { notice, Section } from "./section.js";

const LOWER_IS_BETTER = /(^|_)(mae|rmse|mape|nmae|maqe|pinball|crps|nll|over_reserved|shortfall)(_|$)/;
const COVERAGE = /coverage_q(\d+)$/;

export const runsLink = (cluster) => `#/runs/${encodeURIComponent(cluster)}`;

/** Names of what is in lists, where it has some: pools by pool and aggregation, served bounds by the hours of the promise. */
function keyOf(value, index) {
  const hours = value?.hours === undefined ? null : `${value.hours} h`;
  const names = [value?.pool, value?.aggregation, value?.organization, hours].filter(Boolean);
  return names.length ? names.join(" ") : String(index);
}

/** What is nested, as pairs of a path and a plain value. */
function flat(value, path = []) {
  if (value === null || typeof value !== "object") return [[path.join(" › "), value]];
  if (Array.isArray(value)) return value.flatMap((one, index) => flat(one, [...path, keyOf(one, index)]));
  return Object.entries(value).flatMap(([name, one]) => flat(one, [...path, name]));
}

/** Which of two scores is better: 1 the second, -1 the first, 0 equal, null where they cannot be compared. */
function better(path, a, b) {
  const name = path.split(" › ").at(-1);
  const coverage = COVERAGE.exec(name);
  const [from, to] = coverage ? [a, b].map((value) => Math.abs(value - Number(`0.${coverage[1]}`))) : [a, b];
  if (!coverage && !LOWER_IS_BETTER.test(name)) return null;
  return from === to ? 0 : to < from ? 1 : -1;
}

const FINE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const FINE_SIGNED = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, signDisplay: "exceptZero" });
/** Scores are small at times: three digits that count, where three decimals would leave none. */
const rounded = (value) => (Math.abs(value) >= 1 ? number(value) : FINE.format(value));
const difference = (value) => (Math.abs(value) >= 1 ? signed(value) : FINE_SIGNED.format(value));

function judged(path, a, b) {
  const way = better(path, a, b);
  if (way === null) return a === b ? "equal" : "differs";
  return way === 0 ? "equal" : way > 0 ? badge("good", "better") : badge("bad", "worse");
}

/** The model first, then the bounds of pools; the last value is what both are held against. */
const ORDER = ["model / last_value", "model", "pools", "served", "served_with_jobs", "last_value"];
const order = (path) => ORDER.indexOf(path.split(" › ")[0]);
/** How much was scored, and intervals: no score. */
const isScore = (path) => !/(^|› )(rows|issues|samples|hours|\w*_interval › \d|validation_\w+)$/.test(path);

/** Why scores of two runs are of different things; null where they are of the same hours. */
function unlike(first, second) {
  if (first.horizon_hours !== second.horizon_hours)
    return `One forecasts ${first.horizon_hours} h, the other ${second.horizon_hours} h: their scores do not compare.`;
  const part = ({ scores }) => `${scores?.validation_issue_times} from ${scores?.validation_from}`;
  if (part(first) === part(second)) return null;
  return "They were scored on different hours, so each score is held against that of the last value on the same hours.";
}

/** Scores of the model as shares of those of the last value, by their paths: of losses, which are above 0 and alike in size. */
function shares(scores) {
  const of = ([path, value]) => [path, value / scores.get(path.replace(/^model/, "last_value"))];
  const isOne = ([path, value]) => /^model › (mae|rmse|nmae|pinball|crps)_/.test(path) && typeof value === "number";
  const all = [...scores].filter(isOne).map(of).filter(([, share]) => Number.isFinite(share));
  return new Map(all.map(([path, share]) => [path.replace("model", "model / last_value"), share]));
}

function scoreRows(first, second, differ) {
  const known = [first, second].map((run) => new Map(flat(run.scores)));
  const isSameHorizon = first.horizon_hours === second.horizon_hours;
  const [a, b] = known.map((scores) => (differ && isSameHorizon ? new Map([...shares(scores), ...scores]) : scores));
  const isKnown = (path) => [a, b].some((scores) => typeof scores.get(path) === "number");
  const paths = [...new Set([...a.keys(), ...b.keys()])].filter((path) => isScore(path) && isKnown(path));
  const shown = (value) => (typeof value === "number" ? rounded(value) : NONE);
  return paths
    .toSorted((one, other) => order(one) - order(other))
    .map((path) => {
      const [from, to] = [a.get(path), b.get(path)];
      const both = typeof from === "number" && typeof to === "number";
      const verdict = !both
        ? "only in one"
        : path.startsWith("last_value")
          ? "the rule to beat"
          : differ && !path.startsWith("model / ")
            ? "not comparable"
            : judged(path, from, to);
      return [path, shown(from), shown(to), both ? difference(to - from) : NONE, verdict];
    });
}

/** Facts of a run that are no settings stand in the table of runs. */
const FACTS = [
  "model",
  "horizon_hours",
  "lookback_hours",
  "seed",
  "data_from",
  "data_until",
  "series",
  "aggregation",
  "code_version",
];

function parameterRows(first, second) {
  const all = (run) => new Map([...FACTS.map((name) => [name, run[name]]), ...flat(run.parameters ?? {})]);
  const [a, b] = [all(first), all(second)];
  const text = (value) => (value === undefined ? NONE : value === null ? "none" : String(value));
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((path) => a.get(path) !== b.get(path))
    .map((path) => [path, text(a.get(path)), text(b.get(path))]);
}

const headings = (first, second) => [`First: ${first.id}`, `Second: ${second.id}`];

function scoreTable(rows, first, second, differ) {
  const verdicts = rows.map((row) => row[4].textContent ?? row[4]);
  const of = (word) => verdicts.filter((one) => one === word).length;
  const judgements = of("better") + of("worse") + of("equal");
  const tally = `is better in ${count(of("better"), "score")} and worse in ${number(of("worse"))}`;
  const [a, b] = headings(first, second).map((name) => ({ name, number: true }));
  const columns = [{ name: "Score" }, a, b, { name: "Difference", number: true }, { name: "The second is" }];
  return [
    differ && h("p", null, differ),
    judgements > 0 && h("p", null, `Held against ${first.id}, ${second.id} ${tally}.`),
    table({ caption: "Scores", hideCaption: false, columns, rows }),
  ];
}

/** Two runs side by side. */
function comparison(first, second) {
  if (first.id === second.id) return h("p", { class: "quiet" }, "Choose two different runs.");
  const [a, b] = headings(first, second);
  const differ = unlike(first, second);
  const scores = scoreRows(first, second, differ);
  const parameters = parameterRows(first, second);
  return [
    scores.length === 0 ? h("p", { class: "quiet" }, "Neither has scores.") : scoreTable(scores, first, second, differ),
    parameters.length === 0
      ? h("p", { class: "quiet" }, "Their parameters do not differ.")
      : table({
          caption: "Parameters that differ",
          hideCaption: false,
          columns: [{ name: "Parameter" }, { name: a }, { name: b }],
          rows: parameters,
        }),
  ];
}

function runTable(runs) {
  const columns = [
    { name: "Run" },
    { name: "Serves" },
    { name: "Model" },
    { name: "Horizon", number: true },
    { name: "Lookback", number: true },
    { name: "Data until" },
    { name: "Series", number: true },
    { name: "Made" },
    { name: "Trained in", number: true },
    { name: "Version" },
  ];
  const row = (run) => [
    run.id,
    run.promoted ? badge("good", "promoted") : "no",
    run.model,
    `${run.horizon_hours} h`,
    `${run.lookback_hours} h`,
    time(run.data_until, true),
    number(run.series),
    time(run.created_at, true),
    duration(run.train_ms / 1000),
    run.code_version,
  ];
  return table({ caption: "Runs, newest first", columns, rows: runs.map(row) });
}

function promotionTable(promotions) {
  if (promotions.length === 0) return h("p", { class: "quiet" }, "None was promoted.");
  const columns = [{ name: "Run" }, { name: "Promoted" }, { name: "By" }, { name: "State" }];
  return table({
    caption: "Promotions, newest first",
    columns,
    rows: promotions.map((one) => [
      one.run_id,
      time(one.promoted_at, true),
      one.promoted_by,
      one.rolled_back ? badge("warn", "rolled back") : "stands",
    ]),
  });
}

function chooser(runs, chosen, section) {
  const options = runs.map((run) => [run.id, `${run.id}, ${run.model}${run.promoted ? ", promoted" : ""}`]);
  const one = (name, words) => {
    const made = choice(`run-${name}`, options, chosen[name], (value) => {
      chosen[name] = value;
      section.redraw();
    });
    made.dataset.key = `run-${name}`;
    return field(words, made);
  };
  return h("div", { class: "controls" }, one("first", "First run"), one("second", "Second run"));
}

function compared(runs, chosen, section) {
  if (runs.length < 2)
    return h(
      "p",
      { class: "quiet" },
      runs.length === 0 ? "Nothing to compare." : "There is one run: a comparison needs two.",
    );
  const known = (id) => runs.some((run) => run.id === id);
  if (!known(chosen.first)) chosen.first = (runs.find((run) => run.promoted) ?? runs[1]).id;
  if (!known(chosen.second)) chosen.second = runs.find((run) => run.id !== chosen.first).id;
  const [first, second] = [chosen.first, chosen.second].map((id) => runs.find((run) => run.id === id));
  return [chooser(runs, chosen, section), comparison(first, second)];
}

function noRun(cluster) {
  const command = h("code", null, `train --cluster ${cluster}`);
  return h("div", { class: "notice absent" }, h("p", null, "No run yet: ", command));
}

/** The parts of the page: three views of one answer. */
function parts(cluster) {
  const chosen = { first: null, second: null };
  const sources = () => (cluster ? { answer: address("/v1/runs", { cluster }) } : { list: "/v1/pools" });
  const part = (id, title, view) => {
    const none = () => h("p", { class: "quiet" }, "There is no cluster yet.");
    const render = ({ answer }, section) => (answer ? view(answer, section) : none());
    return new Section({ id, title, sources, render });
  };
  return [
    part("runs", "Runs", ({ runs }) => (runs.length > 0 ? runTable(runs) : noRun(cluster))),
    part("compare", "Two runs side by side", ({ runs }, section) => compared(runs, chosen, section)),
    part("promotions", "Promotions", ({ promotions }) => promotionTable(promotions)),
  ];
}

/** The clusters to choose from, where there are several. */
function clusterChoice(cluster, names) {
  const all = cluster && !names.includes(cluster) ? [cluster, ...names] : names;
  if (all.length < 2) return [];
  const options = all.map((name) => [name, name]);
  const go = (name) => {
    location.hash = runsLink(name);
  };
  return [field("Cluster", choice("cluster", options, cluster, go))];
}

/** The page `#/runs/CLUSTER`. */
export function runsPage(cluster) {
  const [clusters, trouble] = [h("div", null), h("div", null)];
  let offered = null;
  const prepare = async (force) => {
    const { answer, fault } = await look("/v1/pools", force);
    if (!answer) {
      trouble.replaceChildren(notice(fault));
      return;
    }
    const names = [...new Set(answer.data.pools.map((pool) => pool.cluster))].sort();
    trouble.replaceChildren();
    if (!cluster && names.length > 0) location.replace(runsLink(names[0]));
    if (names.join("\n") === offered) return;
    offered = names.join("\n");
    clusters.replaceChildren(...clusterChoice(cluster, names));
  };
  const title = cluster ? `Runs of ${cluster}` : "Runs";
  const lead = [trouble, h("div", { class: "controls" }, clusters)];
  return { title, heading: title, lead, sections: parts(cluster), prepare, clock: () => null };
}
