// Overrides: what people know and the forecast does not.

import { address, send } from "./api.js";
import { badge, choice, field, h, plain, say, table } from "./dom.js";
import { localInput, number, time, utc } from "./format.js";
import { Section } from "./section.js";

const KINDS = { reserve: "more for HP", release: "fewer for HP" };
const COLUMNS = [
  { name: "Kind" },
  { name: "GPUs", number: true },
  { name: "From" },
  { name: "To" },
  { name: "Reason" },
  { name: "By" },
  { name: "State" },
  { name: "Withdraw" },
];

function state(one) {
  if (one.withdrawn_at)
    return [badge("none", "withdrawn"), " ", time(one.withdrawn_at), one.withdrawn_by ? ` by ${one.withdrawn_by}` : ""];
  return one.in_force ? badge("warn", "active") : badge("none", "not active now");
}

function report(place, words, isFault) {
  place.className = isFault ? "message fault" : "message";
  place.textContent = plain(words);
}

/** The refusal, with the fields that it names. */
const refusal = (fault) =>
  [fault.message, ...(fault.errors ?? []).map(({ pointer, detail }) => `${pointer.slice(1)}: ${detail}`)].join(" ");

function row(one, withdraw) {
  const button = h(
    "button",
    {
      type: "button",
      data: { key: `withdraw-${one.id}` },
      "aria-label": `Withdraw: ${one.kind} ${number(one.gpus)} GPUs, ${one.reason}`,
      on: { click: () => withdraw(one, button) },
    },
    "Withdraw",
  );
  return [
    badge(one.kind === "reserve" ? "warn" : "good", one.kind),
    number(one.gpus),
    time(one.from),
    time(one.to),
    h("span", { class: "sentence" }, one.reason),
    one.by,
    state(one),
    one.withdrawn_at ? "" : button,
  ];
}

/** The form that adds one. */
function form(pool, state_, added) {
  const now = () => state_.now ?? new Date();
  const input = (id, attributes) => h("input", { id: `override-${id}`, required: true, ...attributes });
  const kind = choice(
    "override-kind",
    Object.entries(KINDS).map(([value, words]) => [value, `${value}: ${words}`]),
    "reserve",
    () => {},
  );
  const gpus = input("gpus", { type: "number", min: "0.001", step: "any", inputmode: "decimal" });
  const [from, to] = [input("from", { type: "datetime-local" }), input("to", { type: "datetime-local" })];
  const reason = input("reason", { type: "text", maxlength: "1000", autocomplete: "off" });
  const message = h("p", { class: "message", role: "status" });
  const fill = () => {
    const start = now();
    from.value = localInput(start);
    to.value = localInput(new Date(start.getTime() + 4 * 3600 * 1000));
  };
  const submit = async (event) => {
    event.preventDefault();
    const [starts, ends] = [new Date(from.value), new Date(to.value)];
    if (!(ends > starts)) return report(message, "The end has to be after the start.", true);
    const body = {
      cluster: pool.cluster,
      gpu_model: pool.gpu_model,
      kind: kind.value,
      gpus: Number(gpus.value),
      from: utc(starts),
      to: utc(ends),
      reason: reason.value.trim(),
    };
    try {
      const made = await send("POST", "/v1/overrides", body);
      report(message, `Added: ${made.kind} ${number(made.gpus)} GPUs. Quotas follow in a moment.`);
      gpus.value = reason.value = "";
      await added();
    } catch (fault) {
      report(message, `Not added: ${refusal(fault)}`, true);
    }
  };
  fill();
  const made = h(
    "form",
    { class: "grid", "aria-labelledby": "override-form-title", on: { submit } },
    field("Kind", kind),
    field("GPUs", gpus),
    field("From", from, "in your time zone"),
    field("To", to, "in your time zone"),
    field("Reason", reason, "for those who come after you"),
    h("div", { class: "field" }, h("button", { type: "submit", class: "main" }, "Add override")),
    message,
  );
  return { element: h("div", null, h("h3", { id: "override-form-title" }, "Add an override"), made), fill };
}

/** Overrides of a pool: future and active ones, past ones, and a form to add one. */
export function overridesSection(pool, state_) {
  let section = null;
  const message = h("p", { class: "message", role: "status" });
  const { element, fill } = form(pool, state_, () => state_.changed());
  const past = h("input", { type: "checkbox", id: "override-past", on: { change: () => section.refresh() } });
  const withdraw = async (one, button) => {
    button.disabled = true;
    try {
      await send("DELETE", `/v1/overrides/${encodeURIComponent(one.id)}`);
      report(message, `Withdrawn: ${one.kind} ${number(one.gpus)} GPUs, ${one.reason}`);
      await state_.changed();
      section.element.querySelector("h2").focus();
    } catch (fault) {
      button.disabled = false;
      report(message, `Not withdrawn: ${refusal(fault)}`, true);
      say(message.textContent);
    }
  };
  section = new Section({
    id: "overrides",
    title: "Overrides",
    about:
      "Reserve keeps so many GPUs more for every promise that overlaps the time; release keeps so many fewer for promises that lie wholly inside it.",
    before: h(
      "div",
      { class: "controls" },
      h("div", { class: "check" }, past, h("label", { for: "override-past" }, "show past ones")),
    ),
    after: [message, element],
    sources: () => ({
      answer: address("/v1/overrides", {
        cluster: pool.cluster,
        gpu_model: pool.gpu_model,
        past: past.checked ? "true" : null,
      }),
    }),
    render: ({ answer: { overrides } }) =>
      overrides.length === 0
        ? h("p", { class: "quiet" }, past.checked ? "No overrides." : "No active or future overrides.")
        : table({
            caption: "Overrides",
            columns: COLUMNS,
            cards: true,
            rows: overrides.map((one) => row(one, withdraw)),
          }),
  });
  section.clockKnown = fill;
  return section;
}
