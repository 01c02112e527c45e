// A picture with its legend, a line that reads it out, and the same numbers as a table.

import { h, table } from "./dom.js";

/**
 * @param {object} what
 * @param {string} what.title above the picture
 * @param {string} what.label what it shows, for those who do not see it
 * @param {HTMLElement} what.host where the picture is drawn
 * @param {{cls: string, words: string}[]} [what.legend]
 * @param {HTMLElement} [what.readout] what is under the pointer or the cursor
 * @param {() => {columns: object[], rows: any[][]}} [what.numbers] the table, made when it is opened
 * @param {string} what.key tells the table from others of the part
 */
export function figure({ title, label, host, legend = [], readout, numbers, key }) {
  const marks = legend.map(({ cls, words }) =>
    h("li", null, h("span", { class: `swatch ${cls}`, "aria-hidden": "true" }), words),
  );
  return h(
    "figure",
    null,
    h("figcaption", null, title),
    label ? h("div", { role: "img", "aria-label": label }, host) : host,
    readout,
    marks.length > 0 && h("ul", { class: "legend" }, marks),
    numbers && asTable(title, numbers, key),
  );
}

/** A table that is made when it is asked for. */
export function asTable(title, numbers, key) {
  const details = h("details", { data: { key: `table-${key}` } }, h("summary", null, "The same as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(table({ caption: title, ...numbers() }));
  });
  return details;
}
