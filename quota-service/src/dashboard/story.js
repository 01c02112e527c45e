// The first visit: three commands where there is no pool, and what the numbers of a pool mean where there is one.

import { h } from "./dom.js";
import { number, percent } from "./format.js";

/** A story for each pool of a small installation; a large one has its table. */
export const STORIES = 2;

function command(words, text) {
  const copied = (event) => {
    const button = event.currentTarget;
    navigator.clipboard?.writeText(text).then(() => (button.textContent = "Copied"));
  };
  return h(
    "li",
    null,
    words,
    h("pre", null, h("code", null, text)),
    h("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}`, on: { click: copied } }, "Copy"),
  );
}

/** Shown instead of the table while no pool exists. */
export function firstSteps() {
  return h(
    "div",
    { class: "notice absent first" },
    h(
      "p",
      null,
      h("strong", null, "No pool exists yet. "),
      "A pool is one cluster and one GPU model. It appears here once its usage is imported. Three commands lead to the first quota:",
    ),
    h(
      "ol",
      null,
      command(
        "Import the hourly usage of each organization, in the columns hour,cluster,gpu_model,organization,demand_gpus, and the capacity:",
        "datasets ingest --format usage usage.csv --capacity GPUS --time-zone ZONE",
      ),
      command("Train; NAME is the cluster of the file. The first run of a cluster serves at once:", "train --cluster NAME"),
      command(
        "Ask for the quota; this page shows it within ten seconds:",
        `curl '${location.origin}/quota?cluster=NAME&gpu_model=MODEL&hours=4'`,
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      "No data at hand? ",
      h("code", null, "make demo"),
      " does the same with a synthetic cluster of 2,296 GPUs. Other sources (Prometheus, Kubernetes, public traces): ",
      h("code", null, "datasets ingest --help"),
      ".",
    ),
  );
}

const highest = (hours) => hours.toSorted((a, b) => a - b).at(-1);

/** The quota of a pool in sentences, for the most hours that it offers; `null` while it has none. */
export function story(pool, link) {
  const hours = highest(pool.offered_hours ?? []);
  const [quota, bound] = [pool.quota_gpus_by_hours?.[hours], pool.demand_bound_gpus_by_hours?.[hours]];
  if (quota === undefined || bound === undefined || !pool.capacity_gpus) return null;
  const demand = pool.hp_demand_gpus ?? pool.latest_demand_gpus;
  const [available, spot] = [pool.available_gpus_by_hours?.[hours] ?? quota, pool.spot_gpus_by_hours?.[hours] ?? 0];
  const strong = (words) => h("strong", null, words);
  const sentence = (...words) => h("li", null, words);
  return h(
    "div",
    { class: "story" },
    h("h3", null, `${pool.id} in three sentences`),
    h(
      "ol",
      null,
      sentence(
        demand > pool.capacity_gpus ? "High-priority work asks for " : "High-priority work uses ",
        strong(`${number(demand)} of ${number(pool.capacity_gpus)} GPUs`),
        demand > pool.capacity_gpus
          ? ". It waits for GPUs itself, so that none is left."
          : ". Everything else would stand idle, because somewhere a team may need it within the hour.",
      ),
      sentence(
        `For the next ${number(hours)} hours Headroom bounds that demand by `,
        strong(`${number(bound)} GPUs`),
        pool.guarantee_rate ? `, so that ${percent(pool.guarantee_rate)} of the GPUs promised to spot tasks stay theirs.` : ".",
      ),
      sentence(
        "So spot tasks may hold ",
        strong(`${number(quota)} GPUs`),
        ` with a promise of ${number(hours)} hours. They hold ${number(spot)}, and `,
        strong(`${number(available)} can be admitted now`),
        ". ",
        h("a", { href: `${link}/quota` }, "Every step of this quota"),
      ),
    ),
  );
}
