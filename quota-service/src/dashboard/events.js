// What happens in a pool, as it happens: only for those who ask, since each who follows holds a stream of the service.

import { address, stream } from "./api.js";
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

/** Reads events off a stream until it ends; gives the id of the last one. */
async function read(response, last, receive) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return last;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const line = (name) =>
        block
          .split("\n")
          .find((one) => one.startsWith(name))
          ?.slice(name.length)
          .trim();
      if (!line("data:")) continue;
      last = line("id:") ?? last;
      receive(JSON.parse(line("data:")));
    }
  }
}

/** Follows a pool until it is stopped, and comes back where the stream ends. */
async function follow(url, signal, receive) {
  let last = null;
  while (!signal.aborted) {
    const response = await stream(url, { signal, headers: last ? { "last-event-id": last } : {} });
    last = await read(response, last, receive);
    await new Promise((later) => setTimeout(later, AGAIN_S * 1000));
  }
}

/** The part of the page: a box to follow, and what came since. */
export function eventsSection(pool) {
  const seen = [];
  let following = null;
  const body = h("div", { class: "body" }, h("p", { class: "quiet" }, "Live events are off."));
  const draw = () => {
    const none = h("p", { class: "quiet" }, following ? "Following; nothing has happened since." : "Live events are off.");
    body.replaceChildren(
      seen.length > 0
        ? table({ caption: "Events, newest first", columns: COLUMNS, cards: true, rows: seen.map(row) })
        : none,
    );
  };
  const receive = (event) => {
    seen.unshift(event);
    seen.length = Math.min(seen.length, KEPT);
    draw();
  };
  const stop = () => {
    following?.abort();
    following = null;
    box.checked = false;
  };
  const toggle = async () => {
    if (!box.checked) return void (stop(), draw());
    const mine = (following = new AbortController());
    draw();
    try {
      await follow(address("/v1/events", { cluster: pool.cluster, gpu_model: pool.gpu_model }), mine.signal, receive);
    } catch (fault) {
      if (mine.signal.aborted) return;
      stop();
      body.replaceChildren(notice(fault));
    }
  };
  const box = h("input", { type: "checkbox", id: "follow", on: { change: toggle } });
  const title = h("h2", { id: "events-title", tabindex: "-1" }, "Events");
  const controls = h(
    "div",
    { class: "controls" },
    h("div", { class: "check" }, box, h("label", { for: "follow" }, "follow what happens")),
  );
  const element = h("section", { id: "events", "aria-labelledby": title.id }, title, controls, body);
  return { id: "events", title: "Events", element, refresh: async () => false, redraw: () => {}, leave: stop };
}
