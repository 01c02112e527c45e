// What the quota would be if something else were otherwise.

import { address, get } from "./api.js";
import { badge, choice, field, h, say, table } from "./dom.js";
import { change } from "./explain.js";
import { number, percent, sentence } from "./format.js";
import { notice } from "./section.js";

const ROWS = [
  ["quota", "quota_gpus"],
  ["may still be admitted", "available_gpus"],
  ["capacity", "capacity_gpus"],
  ["bound", "demand_bound_gpus"],
  ["inventory", "inventory_gpus"],
  ["idle at the last renewal", "idle_gpus"],
  ["held by spot", "used_gpus"],
  ["eta", "eta"],
  ["guarantee rate", "guarantee_rate"],
];

function shown(name, value) {
  return name === "guarantee_rate" ? percent(value) : number(value);
}

function compared({ now, then, steps }) {
  const columns = [
    { name: "In GPUs" },
    { name: "Now", number: true },
    { name: "Then", number: true },
    { name: "Change", number: true },
  ];
  const rows = ROWS.map(([words, name]) => [
    words,
    shown(name, now[name]),
    name === "quota_gpus" ? h("strong", null, shown(name, then[name])) : shown(name, then[name]),
    name === "guarantee_rate"
      ? now[name] === then[name]
        ? "no change"
        : percent(then[name] - now[name])
      : change(now[name], then[name]),
  ]);
  const difference = then.quota_gpus - now.quota_gpus;
  const lead =
    difference === 0
      ? badge("none", "the quota stays as it is")
      : badge(
          difference > 0 ? "good" : "warn",
          `the quota ${difference > 0 ? "rises" : "falls"} by ${number(Math.abs(difference))} GPUs, to ${number(then.quota_gpus)}`,
        );
  const reasons = (then.reasons ?? []).map(({ code, detail }) => h("li", null, h("code", null, code), " ", sentence(detail)));
  return [
    h("p", null, lead),
    table({ caption: "Now and then", columns, rows }),
    h("h3", null, "Why, step by step"),
    h(
      "ol",
      { class: "steps" },
      steps.map((step) => h("li", null, step)),
    ),
    reasons.length > 0 && h("ul", { class: "reasons" }, reasons),
  ];
}

/** The form: what it asks for, and its fields. */
function form(ask) {
  const input = (id, attributes) => h("input", { id: `what-if-${id}`, type: "number", step: "any", ...attributes });
  const [capacity, demand] = [input("capacity", { value: "0" }), input("demand", { value: "0" })];
  const [rate, eta] = [input("rate", { min: "0.01", max: "0.999" }), input("eta", { min: "0.1", max: "3" })];
  const hours = choice("what-if-hours", [], null, () => {});
  const reset = () => {
    capacity.value = demand.value = "0";
    rate.value = eta.value = "";
    ask();
  };
  const submit = (event) => {
    event.preventDefault();
    ask();
  };
  const buttons = [
    h("button", { type: "submit", class: "main" }, "Ask"),
    h("button", { type: "button", on: { click: reset } }, "Reset"),
  ];
  const element = h(
    "form",
    { class: "grid", "aria-label": "What if", on: { submit } },
    field("Change of capacity, GPUs", capacity, "-200 takes 200 away"),
    field("Change of HP demand, GPUs", demand),
    field("Guarantee rate", rate, "as it is, if empty; such as 0.95"),
    field("Eta", eta, "as it is, if empty"),
    field("Guarantee hours", hours),
    h("div", { class: "field" }, h("div", { class: "buttons" }, buttons)),
  );
  const query = () => ({
    hours: hours.value,
    capacity_change_gpus: capacity.value,
    demand_change_gpus: demand.value,
    guarantee_rate: rate.value,
    eta: eta.value,
  });
  return { element, hours, query };
}

/** The form and its answer. It is no part that refreshes: it answers when it is asked. */
export function whatIfSection(pool, state) {
  const result = h("div", { class: "body" }, h("p", { class: "quiet" }, "Change something and ask."));
  const ask = async () => {
    const query = { cluster: pool.cluster, gpu_model: pool.gpu_model, ...asked.query() };
    try {
      const { data } = await get(address("/v1/quota/what-if", query), true);
      result.replaceChildren(...compared(data).filter(Boolean));
      say(`The quota is ${number(data.now.quota_gpus)} GPUs now and would be ${number(data.then.quota_gpus)}`);
    } catch (fault) {
      result.replaceChildren(notice(fault, () => ask()));
    }
  };
  const asked = form(ask);
  const title = h("h2", { id: "what-if-title", tabindex: "-1" }, "What if");
  const about = h("p", { class: "about" }, "Nothing is changed by asking.");
  const element = h("section", { id: "what-if", "aria-labelledby": title.id }, title, about, asked.element, result);
  const showHours = () => {
    const option = (one) => h("option", { value: one, selected: one === state.hours }, `${one} h`);
    asked.hours.replaceChildren(...state.offered.map(option));
    element.hidden = state.offered.length === 0;
  };
  return { id: "what-if", title: "What if", element, refresh: async () => false, redraw: () => {}, showHours };
}
