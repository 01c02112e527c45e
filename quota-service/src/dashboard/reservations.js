// Reservations: windows of a pool that are sold ahead, and the probability that their GPUs are there.

import { address, send } from "./api.js";
import { badge, h, say, table } from "./dom.js";
import { number, time } from "./format.js";
import { Section } from "./section.js";

const COLUMNS = [
  { name: "Organization" },
  { name: "GPUs", number: true },
  { name: "Next window" },
  { name: "Until" },
  { name: "Repeats" },
  { name: "Probability" },
  { name: "By" },
  { name: "Withdraw" },
];
const SOURCES = {
  forecast: () => "by the forecast",
  history: (window) => `by ${number(window.weeks)} past weeks`,
  unknown: () => "too little is measured",
};

function probability(window) {
  if (!window) return badge("none", "over");
  const source = SOURCES[window.source]?.(window) ?? window.source;
  if (window.probability === null) return h("span", { class: "quiet" }, source);
  const kind = window.probability >= 0.9 ? "good" : "warn";
  return [badge(kind, number(window.probability)), h("span", { class: "quiet" }, ` ${source}`)];
}

function row(one, withdraw) {
  const next = one.windows[0];
  const button = h(
    "button",
    {
      type: "button",
      data: { key: `withdraw-reservation-${one.id}` },
      "aria-label": `Withdraw: ${number(one.gpus)} GPUs for ${one.organization}`,
      on: { click: () => withdraw(one, button) },
    },
    "Withdraw",
  );
  return [
    one.organization,
    number(one.gpus),
    next ? time(next.from) : "none",
    next ? time(next.to) : "",
    one.repeats ? one.repeats.days.join(" ") : "once",
    probability(next),
    one.by,
    button,
  ];
}

/** Reservations of a pool whose windows are not over. */
export function reservationsSection(pool, state_) {
  const message = h("p", { class: "message", role: "status" });
  const query = { cluster: pool.cluster, gpu_model: pool.gpu_model };
  const withdraw = async (one, button) => {
    button.disabled = true;
    try {
      await send("DELETE", `/v1/reservations/${encodeURIComponent(one.id)}`);
      message.textContent = `Withdrawn: ${number(one.gpus)} GPUs for ${one.organization}`;
      await state_.changed();
      await section.refresh(true);
    } catch (fault) {
      button.disabled = false;
      message.textContent = `Not withdrawn: ${fault.message}`;
      say(message.textContent);
    }
  };
  const section = new Section({
    id: "reservations",
    title: "Reservations",
    about:
      "Windows that are sold ahead. Spot uses their GPUs until they begin: no promise reaches into a window, and spot at will leaves before it.",
    after: [message],
    sources: () => ({ answer: address("/v1/reservations", query) }),
    render: ({ answer: { reservations } }) =>
      reservations.length === 0
        ? h("p", { class: "quiet" }, "No reservations.")
        : table({
            caption: "Reservations",
            columns: COLUMNS,
            cards: true,
            rows: reservations.map((one) => row(one, withdraw)),
          }),
  });
  return section;
}
