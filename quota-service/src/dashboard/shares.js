// Fair shares of spot: whose turn it is, and who holds more than a part of it.

import { address } from "./api.js";
import { badge, h, table } from "./dom.js";
import { count, NONE, number } from "./format.js";
import { Section } from "./section.js";

const COLUMNS = [
  { name: "Organization" },
  { name: "Weight", number: true },
  { name: "Level, GPU hours", number: true },
  { name: "Holds, GPUs", number: true },
  { name: "Fair part, GPUs", number: true },
  { name: "Borrows" },
  { name: "Waits, GPUs", number: true },
  { name: "Room is left for" },
];

/** Hundredths suffice: a level rises with each second. */
const hundredths = (value) => number(Math.round(value * 100) / 100);

function row(one) {
  return [
    one.organization,
    number(one.weight),
    hundredths(one.level_gpu_hours),
    number(one.spot_gpus),
    number(one.fair_gpus),
    one.borrowed_gpus > 0 ? badge("warn", `${number(one.borrowed_gpus)} GPUs`) : NONE,
    number(one.waiting_gpus),
    one.waits_for ? `${one.waits_for.task} (${number(one.waits_for.gpus)} GPUs)` : NONE,
  ];
}

/** The organizations of a pool in the order of their turns. */
export function sharesSection(pool) {
  return new Section({
    id: "shares",
    title: "Fair shares of spot",
    elsewhere: () =>
      pool.isExternal && "Another scheduler places the tasks of this pool: fair shares are kept where Headroom places.",
    sources: () => ({ answer: address(`/v1/pools/${encodeURIComponent(pool.id)}/shares`, {}) }),
    render: ({ answer: { half_life_hours: halfLife, organizations } }) => {
      if (halfLife === null)
        return h("p", { class: "quiet" }, "Not kept: spot waits in the order of the policy, of any organization.");
      return [
        h(
          "p",
          { class: "about" },
          "The lowest level is served first: spot GPU hours per unit of weight, where those of ",
          count(halfLife, "hour"),
          " ago count half. Who borrows holds more than a fair part of the spot GPUs in use; others get them back as tasks and guarantees end.",
        ),
        organizations.length === 0
          ? h("p", { class: "quiet" }, "No organization has used spot yet.")
          : table({
              caption: "Organizations by fair share, the one that is served next first",
              columns: COLUMNS,
              cards: true,
              rows: organizations.map(row),
            }),
      ];
    },
  });
}
