// What happens in a pool, as it happens: only for those who ask, since each who follows holds a stream of the service.

import { address, asProblem, isPassing, stream } from "./api.js";
import { badge, h, table } from "./dom.js";
import { NONE, number, time } from "./format.js";
import { notice } from "./section.js";

/** Events that are kept on the page. */
const KEPT = 50;
/** Seconds after which a stream that ended is asked for again. */
const AGAIN_S = 5;

const KINDS = {
  started: "good",
  grown: "good",
  evicted: "bad",
  node_lost: "bad",
  shrunk: "warn",
  quota_changed: "none",
  eta_moved: "warn",
};
const COLUMNS = [{ name: "When" }, { name: "What" }, { name: "Task" }, { name: "For, or by" }, { name: "Nodes" }];

function row(event) {
  const limits = event.limits?.map((one) => `${one.hours} h: ${number(one.quota_milli / 1000)}`).join(", ");
  const nodes = event.nodes?.length ? event.nodes.join(", ") : limits || NONE;
  const by = event.start ? ["expected ", event.start.p50 ? time(event.start.p50) : "after 72 h"] : (event.by ?? NONE);
  const kind = badge(KINDS[event.kind] ?? "none", event.kind.replace("_", " "));
  return [time(event.at), kind, event.task ?? NONE, by, h("span", { class: "sentence" }, nodes)];
}

/** The event of a block, if it holds one. `place` moves on to it; the first block of a stream is a comment: where it begins. */
function eventOf(block, place) {
  const lines = block.split("\n");
  const line = (name) => lines.find((one) => one.startsWith(name))?.slice(name.length).trim();
  const data = line("data:");
  place.last = (data ? line("id:") : line(": after ")) ?? place.last;
  return data ? JSON.parse(data) : null;
}

/** Reads events off a stream until it ends or is stopped. */
async function read(response, place, signal, receive) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done || signal.aborted) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    receive(blocks.map((block) => eventOf(block, place)).filter(Boolean));
  }
}

/** Follows a pool from `place` on until it is stopped, and comes back where the stream ends or the service is gone. */
async function follow(url, place, signal, { receive, lost }) {
  while (!signal.aborted) {
    try {
      const headers = place.last ? { "last-event-id": place.last } : {};
      const response = await stream(url, { signal, headers });
      lost(null);
      await read(response, place, signal, receive);
    } catch (fault) {
      if (signal.aborted) return;
      const why = asProblem(fault);
      if (!isPassing(why)) throw why;
      lost(why);
    }
    await new Promise((later) => setTimeout(later, AGAIN_S * 1000));
  }
}

/** Why nothing comes, above what came before. */
function lostNotice(fault) {
  return notice(fault, null, ` It is asked again every ${AGAIN_S} seconds; the list goes on where it ended.`);
}

/**
 * Follows while the box is checked and the page is visible. A browser has six connections to a service: hidden tabs let theirs go,
 * and catch up on the events that came meanwhile.
 */
function follower(pool, box, { receive, draw, lost }) {
  const url = address("/v1/events", { cluster: pool.cluster, gpu_model: pool.gpu_model });
  let [following, place] = [null, { last: null }];
  const pause = () => {
    following?.abort();
    following = null;
  };
  const begin = async () => {
    const mine = (following = new AbortController());
    try {
      await follow(url, place, mine.signal, { receive: taken, lost });
    } catch (fault) {
      if (mine.signal.aborted) return;
      stop();
      draw(notice(fault));
    }
  };
  // Without a place to go on from, events would be lost: the stream stays until it has named one, which it does at once.
  const turn = () => {
    if (document.visibilityState !== "hidden") return void (following ?? begin());
    if (place.last) pause();
  };
  const taken = (events) => {
    if (events.length > 0) receive(events);
    turn();
  };
  const stop = () => {
    pause();
    box.checked = false;
    document.removeEventListener("visibilitychange", turn);
  };
  const start = () => {
    place = { last: null };
    document.addEventListener("visibilitychange", turn);
    begin();
  };
  return { start, stop };
}

/** The part of the page: a box to follow, and what came since. */
export function eventsSection(pool) {
  const seen = [];
  let fault = null;
  const body = h("div", { class: "body" });
  const draw = (why = fault && lostNotice(fault)) => {
    const state = box.checked ? "Following; nothing has happened since." : "Live events are off.";
    const none = h("p", { class: "quiet" }, state);
    const rows = seen.map(row);
    const list = rows.length > 0 && table({ caption: "Events, newest first", columns: COLUMNS, cards: true, rows });
    body.replaceChildren(...[why, list || (!why && none)].filter(Boolean));
  };
  const receive = (events) => {
    seen.unshift(...events.toReversed());
    seen.length = Math.min(seen.length, KEPT);
    draw();
  };
  const lost = (now) => {
    if (now?.detail === fault?.detail) return;
    fault = now;
    draw();
  };
  const toggle = () => {
    fault = null;
    if (box.checked) live.start();
    else live.stop();
    draw();
  };
  const box = h("input", { type: "checkbox", id: "follow", on: { change: toggle } });
  const live = follower(pool, box, { receive, draw, lost });
  draw();
  const title = h("h2", { id: "events-title", tabindex: "-1" }, "Events");
  const controls = h(
    "div",
    { class: "controls" },
    h("div", { class: "check" }, box, h("label", { for: "follow" }, "follow what happens")),
  );
  const element = h("section", { id: "events", "aria-labelledby": title.id }, title, controls, body);
  return { id: "events", title: "Events", element, refresh: async () => false, redraw: () => {}, leave: live.stop };
}
