// Elements from names and texts. Whatever comes from the service enters as text, never as markup.

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

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
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

/**
 * A table that scrolls by itself where it is too wide.
 * @param {{caption: string, columns: {name: string, number?: boolean, title?: string}[], rows: any[][], cards?: boolean}} what
 */
export function table({ caption, columns, rows, hideCaption = true, cls = "" }) {
  const head = columns.map((column) =>
    h("th", { scope: "col", class: column.number ? "number" : null, title: column.title }, column.name),
  );
  const line = (row) =>
    h(
      "tr",
      null,
      row.map((cell, index) => {
        const kind = columns[index].number ? "number" : null;
        return index === 0 ? h("th", { scope: "row", class: kind }, cell) : h("td", { class: kind }, cell);
      }),
    );
  const made = h(
    "table",
    { class: cls },
    h("caption", { class: hideCaption ? "hidden" : null }, caption),
    h("thead", null, h("tr", null, head)),
    h("tbody", null, rows.map(line)),
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
  polite ??= document.getElementById("said");
  polite.textContent = words;
}
