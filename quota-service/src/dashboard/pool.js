// The page of one pool.

import { address, look } from "./api.js";
import { h } from "./dom.js";
import { demandSection } from "./demand.js";
import { etaSection, historySection } from "./eta.js";
import { eventsSection } from "./events.js";
import { explainSection } from "./explain.js";
import { keptSection } from "./kept.js";
import { nodesSection } from "./nodes.js";
import { overridesSection } from "./overrides.js";
import { poolLink } from "./pools.js";
import { promisesSection } from "./promises.js";
import { reservationsSection } from "./reservations.js";
import { notice } from "./section.js";
import { sharesSection } from "./shares.js";
import { tasksSection } from "./tasks.js";
import { whatIfSection } from "./whatif.js";

/** `CLUSTER:GPU_MODEL` in its parts. Whether an external scheduler places it, the list of pools says. */
function named(id) {
  const colon = id.indexOf(":");
  const [cluster, gpu_model] = colon < 0 ? [id, ""] : [id.slice(0, colon), id.slice(colon + 1)];
  return { id, cluster, gpu_model, isExternal: false };
}

/** Takes over what the list of pools says: which hours are offered, and whether the pool is there at all. */
function take(state, pools, id) {
  const summary = pools.find((one) => one.id === id);
  if (!summary) return null;
  const offered = (summary.offered_hours ?? []).toSorted((a, b) => a - b);
  const same = offered.join() === state.offered.join();
  state.offered = offered;
  if (!offered.includes(state.hours)) state.hours = offered.at(-1) ?? null;
  return { summary, same };
}

/** Links to the parts of the page. */
function contents(id, sections) {
  const link = (one) => h("li", null, h("a", { href: `${poolLink(id)}/${one.id}` }, one.title));
  return h("nav", { class: "contents", "aria-label": "On this page" }, h("ul", null, sections.map(link)));
}

/** Most pools that the notice of an unknown pool lists. */
const LISTED = 20;

function unknown(pools) {
  const link = (one) => h("li", null, h("a", { href: poolLink(one.id) }, one.id));
  const words = [h("strong", null, "There is no such pool, "), "or your token does not show it. Existing pools: "];
  const all = h("a", { href: "#/" }, pools.length > LISTED ? "all pools" : "the list of pools");
  return h("div", { class: "notice absent" }, h("p", null, words, all), h("ul", null, pools.slice(0, LISTED).map(link)));
}

/** The parts of the page, in their order. `state` is what they share. */
function parts(pool, state) {
  const chosen = (hours) => {
    state.hours = hours;
    for (const one of [quota, history, eta, demand]) one.refresh();
    quota.showHours();
  };
  const quota = explainSection(pool, state, chosen);
  const [demand, history, eta] = [demandSection(pool, state), historySection(pool, state), etaSection(pool, state)];
  const [overrides, whatIf] = [overridesSection(pool, state), whatIfSection(pool, state)];
  const reservations = reservationsSection(pool, state);
  const [kept, promises] = [keptSection(pool), promisesSection(pool)];
  const [nodes, tasks, shares] = [nodesSection(pool), tasksSection(pool), sharesSection(pool)];
  const events = eventsSection(pool);
  return { quota, demand, kept, promises, history, eta, nodes, tasks, shares, events, reservations, overrides, whatIf };
}

/** The page `#/pool/CLUSTER:GPU_MODEL`. */
export function poolPage(id) {
  const pool = named(id);
  const state = { offered: [], hours: null, now: null };
  const { quota, overrides, whatIf, ...others } = parts(pool, state);
  const sections = [quota, ...Object.values(others), overrides, whatIf];
  // An override changes the quota and more: all of the page asks again.
  state.changed = async () => {
    document.dispatchEvent(new CustomEvent("headroom:changed"));
    await overrides.refresh(true);
  };
  const trouble = h("div", null);
  /** Before the parts: which hours there are. */
  const prepare = async (force) => {
    const { answer, fault } = await look("/v1/pools", force);
    if (!answer) {
      trouble.replaceChildren(notice(fault));
      return;
    }
    const { pools } = answer.data;
    const found = take(state, pools, id);
    pool.isExternal = found?.summary.placed_by === "external";
    trouble.replaceChildren(...(found ? [] : [unknown(pools)]));
    if (!found || found.same) return;
    quota.showHours();
    whatIf.showHours();
  };
  const clockKnown = (now) => {
    const isFirst = state.now === null;
    state.now = now;
    if (isFirst && now) overrides.clockKnown();
  };
  const query = () => ({ cluster: pool.cluster, gpu_model: pool.gpu_model, hours: state.hours });
  const clock = () => (state.hours ? address("/v1/quota", query()) : null);
  return { title: id, heading: id, lead: [trouble, contents(id, sections)], sections, prepare, clock, clockKnown };
}
