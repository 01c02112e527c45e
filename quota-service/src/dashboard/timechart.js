// Lines over time, drawn by uPlot on a canvas. The colours are those of the style sheet.

import { h, responsive } from "./dom.js";
import { figure } from "./figure.js";
import { dayOf, hourOf, moment, number } from "./format.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
/** In pixels, by default. */
const HEIGHT = 260;
const DASH = { dashed: [6, 4], dotted: [2, 3] };

/** Hours on an axis; the day where one begins. */
function ticks(_, splits, __, ___, step) {
  return splits.map((second, index) => {
    const date = new Date(second * 1000);
    const midnight = date.getHours() === 0 && date.getMinutes() === 0;
    if (step >= 86400) return dayOf(date);
    return midnight || index === 0 ? `${hourOf(date)}\n${dayOf(date)}` : hourOf(date);
  });
}

function axes(wide) {
  const look = {
    stroke: css("--muted"),
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--grid"), width: 1, size: 4 },
    font: "12px system-ui, sans-serif",
  };
  return [
    { ...look, values: ticks, space: wide ? 70 : 56, size: 40 },
    {
      ...look,
      size: 52,
      values: (_, splits) => splits.map((value) => (Math.abs(value) >= 10000 ? COMPACT.format(value) : number(value))),
    },
  ];
}

/** A line, or the edge of a band, as uPlot wants it. */
function line({ words, colour, width = 2, dash, stepped, points }) {
  const paths = stepped ? window.uPlot.paths.stepped({ align: 1 }) : undefined;
  return {
    label: words,
    stroke: colour ? css(colour) : "transparent",
    width: colour ? width : 0,
    dash: DASH[dash],
    paths,
    spanGaps: false,
    points: { show: Boolean(points), size: 6 },
  };
}

function readoutOf(chart, lines, readout) {
  const index = chart.cursor.idx;
  if (index === null || index === undefined) return (readout.textContent = " ");
  const texts = lines.map(({ words, silent }, number_) => (silent ? null : [words, chart.data[number_ + 1][index]]));
  const known = texts.filter((one) => one && one[1] !== null && one[1] !== undefined);
  readout.textContent = `${moment(new Date(chart.data[0][index] * 1000))}: ${known.map(([words, value]) => `${words} ${number(value)}`).join(", ") || "nothing known"}`;
}

/** The moment that parts what was measured from what is forecast. */
function nowLine(at) {
  return (chart) => {
    if (!at) return;
    const x = Math.round(chart.valToPos(at, "x", true));
    const { ctx, bbox } = chart;
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.save();
    ctx.strokeStyle = css("--muted");
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  };
}

/** No less than an hour: what was computed twice in a minute would else stand on an axis of years. */
function wideEnough(_, from, to) {
  const missing = Math.max(0, 3600 - (to - from));
  return [from - missing, to];
}

function draw(host, width, what, readout) {
  const { x, lines, bands = [], now, fromZero } = what;
  const fill = ({ upper, lower, colour }) => ({ series: [upper + 1, lower + 1], fill: css(colour) });
  const range = (_, low, high) => {
    const [from, to] = [fromZero ? 0 : low, high];
    const room = Math.max((to - from) * 0.08, Math.abs(to) * 0.01, 0.05);
    return [fromZero ? 0 : Math.max(from - room, from < 0 ? -Infinity : 0), to + room];
  };
  const options = {
    width,
    height: what.height ?? HEIGHT,
    legend: { show: false },
    bands: bands.map(fill),
    axes: axes(width > 560),
    series: [{}, ...lines.map(line)],
    scales: { x: { time: true, range: wideEnough }, y: { range } },
    cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
    padding: [12, 24, 0, 0],
    hooks: { setCursor: [(chart) => readoutOf(chart, lines, readout)], draw: [nowLine(now)] },
  };
  host.replaceChildren();
  return new window.uPlot(options, [x, ...lines.map(({ values }) => values)], host);
}

/** Left and right move through the hours of a chart that has the keyboard. */
function keys(chart, event) {
  const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  if (!move || !chart) return;
  event.preventDefault();
  const last = chart.data[0].length - 1;
  const index = Math.min(last, Math.max(0, (chart.cursor.idx ?? (move > 0 ? -1 : last + 1)) + move));
  chart.setCursor({ left: chart.valToPos(chart.data[0][index], "x"), top: 10 });
}

/**
 * Lines over time, in a figure.
 * @param {object} what
 * @param {number[]} what.x seconds since 1970
 * @param {{words: string, values: (number|null)[], colour?: string, cls?: string, dash?: string, silent?: boolean, stepped?: boolean}[]} what.lines
 * @param {{upper: number, lower: number, colour: string, words: string, cls: string}[]} [what.bands] between two lines, by index
 */
export function timeChart(what) {
  const readout = h("p", { class: "readout" }, " ");
  let chart = null;
  const host = h("div", { class: "chart", vars: { "--height": `${what.height ?? HEIGHT}px` } });
  const frame = h(
    "div",
    {
      class: "keyed",
      tabindex: "0",
      role: "group",
      "aria-label": `${what.title}: arrow keys read out the hours`,
      data: { key: `chart-${what.key}` },
      on: { keydown: (event) => keys(chart, event) },
    },
    h("div", { role: "img", "aria-label": what.label }, host),
  );
  frame.addEventListener("focus", () => readout.setAttribute("aria-live", "polite"));
  frame.addEventListener("blur", () => readout.removeAttribute("aria-live"));
  responsive(host, (width) => {
    // The file that draws is another one than this: it may be the one that did not come.
    const none = "The picture did not load. Load the page again, or open the table below.";
    if (!window.uPlot) return host.replaceChildren(h("p", { class: "quiet" }, none));
    chart?.destroy();
    chart = draw(host, width, what, readout);
  });
  const drawn = what.lines.filter(({ cls }) => cls).concat(what.bands ?? []);
  const shown = what.lines.filter(({ silent }) => !silent);
  const numbers = () => ({
    columns: [{ name: "Time" }, ...shown.map(({ words }) => ({ name: words, number: true }))],
    rows: what.x.map((second, index) => [
      moment(new Date(second * 1000)),
      ...shown.map(({ values }) => number(values[index])),
    ]),
  });
  return figure({
    title: what.title,
    host: frame,
    readout,
    legend: drawn.map(({ cls, words }) => ({ cls, words })),
    numbers,
    key: what.key,
  });
}
