// How far a quota is to be trusted: the stage that the service names, for as long as that may stand.

import { serviceNow } from "./api.js";
import { badge, h } from "./dom.js";
import { duration, moment } from "./format.js";

const STAGES = {
  fresh: ["good", "fresh", "Computed less than ten minutes ago"],
  stale: ["warn", "stale", "The last value stands: nothing newer could be computed"],
  conservative: ["bad", "conservative", "Inputs are missing: nothing new is admitted, and nothing is evicted for it"],
};
/** By how much the virtual clock of the service is later than that of this browser; null for a real one, undefined before it is known. */
let ahead;

/** Takes over the clock of the service where it is a virtual one: `virtual` is the time that it read `at`; null for the real one. */
export function setClock(virtual, at) {
  ahead = virtual ? virtual.getTime() - at : null;
}

/** The time of the clock that quotas are computed by. */
const now = () => (ahead === null ? serviceNow() : Date.now() + ahead);

/** A quota that was fresh when it was read is so no longer once its time is over, whether a newer one was read or not. */
function shown({ stage, computed_at: computed, valid_until: until }) {
  const isOver = ahead !== undefined && stage === "fresh" && until && now() >= Date.parse(until);
  if (!isOver) return STAGES[stage] ?? ["none", stage ?? "no quota", "No quota was computed"];
  const age = duration((now() - Date.parse(computed)) / 1000);
  const why = `Computed ${age} ago, and valid until ${moment(new Date(until))}: no newer one was read`;
  return ["warn", `${age} old`, why];
}

/** How far a quota is to be trusted, in a word that ages with it. */
export function stageBadge({ stage, computed_at, valid_until }) {
  const host = h("span", { class: "stage" });
  host.stage = { stage, computed_at, valid_until };
  put(host);
  return host;
}

function put(host) {
  const [kind, words, why] = shown(host.stage);
  if (host.firstChild?.title === why) return;
  host.replaceChildren(badge(kind, words, why));
}

/** Time passes for the badges on the page, too. */
export function ageStages() {
  for (const host of document.querySelectorAll(".stage")) put(host);
}
