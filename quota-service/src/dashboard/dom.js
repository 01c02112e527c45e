// Elements from names and texts. Every text of the service enters as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Sets attributes: `on` holds listeners, `data` the dataset, `vars` CSS variables; null and false leave one out. */
function put(element, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "vars") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return element;
}

/** A text in which characters that turn the direction of others stand as their code points: earlier programs have stored some. */
export const plain = (text) =>
  String(text).replace(/[\u202A-\u202E\u2066-\u2069]/g, (one) => `[U+${one.charCodeAt(0).toString(16).toUpperCase()}]`);

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : plain(child));
  }
  return element;
}

/** An HTML element. */
export function h(tag, attributes, ...children) {
  return add(put(document.createElement(tag), attributes), children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return add(put(document.createElementNS(SVG, tag), attributes), children);
}

/** Names and values, as a list of definitions. */
export function facts(pairs, attributes) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined);
  return h(
    "dl",
    { class: "facts", ...attributes },
    shown.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

/** Longer texts of a table, which no time is, wrap: one name would push the figures of all rows out of sight. */
const LONG = 28;

/** Texts of a cell, the long ones of which wrap. */
function wrapping(content) {
  if (Array.isArray(content)) return content.map(wrapping);
  const isLong = typeof content === "string" && content.length > LONG;
  return isLong ? h("span", { class: "long" }, content) : content;
}

/**
 * A table that scrolls by itself where it is too wide; with `cards`, a phone shows each row as a card. What becomes a block by
 * style is no table any more to those who listen: roles say that it is one.
 * @param {{caption: string, columns: {name: string, number?: boolean}[], rows: any[][], cards?: boolean, hideCaption?: boolean}} what
 */
export function table({ caption, columns, rows, hideCaption = true, cards = false }) {
  const role = (name) => (cards ? name : null);
  const kind = (column) => (column.number ? "number" : null);
  const head = columns.map((column) =>
    h("th", { scope: "col", role: role("columnheader"), class: kind(column) }, wrapping(column.name)),
  );
  const cell = (content, index) => {
    const shown = cards ? h("span", null, wrapping(content)) : wrapping(content);
    const attributes = { class: kind(columns[index]), data: cards ? { label: columns[index].name } : null };
    if (index === 0) return h("th", { scope: "row", role: role("rowheader"), ...attributes }, shown);
    return h("td", { role: role("cell"), ...attributes }, shown);
  };
  const body = rows.map((row) => h("tr", { role: role("row") }, row.map(cell)));
  const made = h(
    "table",
    { role: role("table"), class: cards ? "cards plain" : null },
    h("caption", { class: hideCaption ? "hidden" : null }, caption),
    h("thead", { role: role("rowgroup") }, h("tr", { role: role("row") }, head)),
    h("tbody", { role: role("rowgroup") }, body),
  );
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": caption }, made);
}

/** A badge: a word with a shape before it, so that colour is never all there is. */
export function badge(kind, words, title) {
  return h("span", { class: `badge ${kind}`, title }, h("span", { "aria-hidden": "true", class: "shape" }), words);
}

/** A labelled field. */
export function field(label, input, hint) {
  const hintId = hint ? `${input.id}-hint` : null;
  if (hintId) input.setAttribute("aria-describedby", hintId);
  return h(
    "div",
    { class: "field" },
    h("label", { for: input.id }, label),
    input,
    hint && h("p", { class: "hint", id: hintId }, hint),
  );
}

/** A choice among values. */
export function choice(id, options, chosen, changed) {
  const made = h(
    "select",
    { id, on: { change: () => changed(made.value) } },
    options.map(([value, words]) => h("option", { value, selected: String(value) === String(chosen) }, words)),
  );
  return made;
}

/** Calls `draw` with the width of an element, now and whenever it changes. */
export function responsive(host, draw) {
  let drawn = 0;
  const watch = new ResizeObserver(() => {
    if (!host.isConnected) return watch.disconnect();
    const width = Math.floor(host.clientWidth);
    if (width > 0 && width !== drawn) draw((drawn = width));
  });
  watch.observe(host);
  return host;
}

let polite = null;
/** Says something to those who do not see the page, once they are free to listen. */
export function say(words) {
  polite ??= document.getElementById("announced");
  polite.textContent = words;
}
