// Which page is shown, and when it asks again.

import { look } from "./api.js";
import { badge, h, say } from "./dom.js";
import { clock, duration, moment } from "./format.js";
import { poolPage } from "./pool.js";
import { poolsPage } from "./pools.js";
import { runsPage } from "./runs.js";
import { ageStages, setClock } from "./stage.js";
import { statementPage } from "./statement.js";
import { themeButton } from "./theme.js";
import { tokenButton } from "./token.js";

/** How often the page is refreshed while a reader may watch it. */
const EVERY_MS = 15_000;

const main = document.getElementById("main");
const heading = document.getElementById("heading");
const content = document.getElementById("content");
const age = document.getElementById("age");
const clockBadge = document.getElementById("clock");
let [page, shown, busy, again] = [null, null, null, false];
/** The part that the address asks for, while the page is read for the first time. */
let aim = null;
/** When the last reading of this page began and ended; whether it brought an answer or not. */
let reading = { began: null, ended: null };

/** The parts of `#/pool/NAME/part`, decoded. */
function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/");
  return parts.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
}

function made([kind, name]) {
  if (kind === "pool" && name) return poolPage(name);
  if (kind === "runs") return runsPage(name || null);
  if (kind === "statement") return statementPage(name || null);
  return poolsPage();
}

function mark(kind) {
  for (const link of document.querySelectorAll("#places a")) {
    const here = link.dataset.kind === (["runs", "statement"].includes(kind) ? kind : "pools");
    if (here) link.setAttribute("aria-current", kind === "pool" ? "true" : "page");
    else link.removeAttribute("aria-current");
  }
}

/** Brings a part of the page to the reader. */
function goTo(id, behavior = "auto") {
  const target = page.sections.find((section) => section.id === id)?.element.querySelector("h2");
  if (!target) return;
  target.scrollIntoView({ block: "start", behavior });
  target.focus({ preventScroll: true });
}

/** The part above may grow while a page is read for the first time: the one that was asked for is brought back then. */
function stayAt() {
  if (aim) goTo(aim, "instant");
}

/** Readers who move by themselves stay where they are. */
function letGo() {
  aim = null;
}

function open(isFirst) {
  const parts = route();
  const key = parts.slice(0, 2).join("/");
  if (key !== shown) {
    shown = key;
    for (const section of page?.sections ?? []) section.leave?.();
    page = made(parts);
    document.title = `${page.title} · Headroom`;
    heading.textContent = page.heading;
    content.replaceChildren(...(page.lead ?? []), ...page.sections.map((section) => section.element));
    mark(parts[0]);
    reading = { began: null, ended: null };
    letGo();
    refresh();
    if (!isFirst) {
      window.scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
  }
  if (parts[0] !== "pool" || !parts[2]) return;
  goTo(parts[2]);
  if (!reading.ended) aim = parts[2];
}

/** Whether the service runs on a clock of its own, as its quotas say. */
async function readClock(current) {
  const url = current.clock();
  const { answer } = url ? await look(url) : {};
  const virtual = answer?.data.as_of ? new Date(answer.data.as_of) : null;
  if (current !== page) return;
  if (answer) setClock(virtual, answer.at);
  ageStages();
  clockBadge.replaceChildren(
    ...(virtual
      ? [
          badge(
            "warn",
            `virtual clock: ${moment(virtual)}`,
            "The service runs on a clock of its own, behind the real one",
          ),
        ]
      : []),
  );
  current.clockKnown?.(virtual);
}

/** Asks for everything on the page again, and tells what has changed. */
async function refresh(force = false) {
  const current = page;
  if (busy === current) return void (again ||= force);
  busy = current;
  const began = Date.now();
  try {
    await current.prepare?.(force);
    const ask = async (section) => {
      const isChanged = await section.refresh(force);
      if (current === page) stayAt();
      return isChanged ? section.title : null;
    };
    const changed = await Promise.all(current.sections.map(ask));
    await readClock(current);
    if (current !== page) return;
    reading = { began, ended: Date.now() };
    letGo();
    showAge();
    const names = changed.filter(Boolean);
    const { gone } = current.sections.find((section) => section.gone) ?? {};
    if (names.length > 0) say(gone ? `${gone.detail} The figures are old.` : `Changed: ${names.join(", ")}`);
  } finally {
    if (busy === current) busy = null;
    // A click asked for it while it was under way: something has changed since.
    if (again && current === page) {
      again = false;
      refresh(true);
    }
  }
}

/** When the last answer came to anything on the page; null while none has. */
function readAt() {
  const all = page.sections.map((section) => section.readAt).filter(Boolean);
  return all.length > 0 ? Math.max(...all) : null;
}

/** The age of the last answer: a reading that failed does not make the figures younger. */
function showAge() {
  if (!reading.ended) return age.replaceChildren("asking …");
  const isGone = page.sections.some((section) => section.gone);
  const refused = page.sections.find((section) => section.refused)?.refused;
  const last = readAt() ?? (isGone || refused ? null : reading.ended);
  if (!last) return age.replaceChildren(refused ? "nothing to show: the service refused" : "nothing was read yet");
  const seconds = Math.round((Date.now() - last) / 1000);
  const at = new Date(last);
  const isOld = (isGone || refused) && last < reading.began;
  age.replaceChildren(
    isOld ? badge("warn", "old figures", "The last reading brought no answer: these are the figures of before") : "",
    isOld ? " as of " : "as of ",
    h("time", { datetime: at.toISOString(), title: `${at.toISOString()} (UTC)` }, clock(at)),
    seconds < 2 ? ", just now" : `, ${duration(seconds)} ago`,
  );
}

/** Time passes only for those who look. */
function beat() {
  if (document.visibilityState !== "visible") return;
  showAge();
  ageStages();
  if (reading.ended && Date.now() - reading.ended >= EVERY_MS) refresh();
}

function redraw() {
  for (const section of page?.sections ?? []) section.redraw();
}

function begin() {
  document.getElementById("tools").append(
    h("button", { type: "button", id: "again", on: { click: () => refresh(true) } }, "Refresh"),
    themeButton(redraw),
    tokenButton(() => refresh(true)),
  );
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
    main.scrollIntoView();
  });
  content.addEventListener("click", (event) => {
    // A link to the part that was asked for last changes nothing in the address.
    const link = event.target.closest?.(".contents a");
    if (link && link.hash === location.hash) goTo(route()[2]);
  });
  for (const move of ["wheel", "touchmove", "pointerdown", "keydown"])
    window.addEventListener(move, letGo, { capture: true, passive: true });
  window.addEventListener("hashchange", () => open(false));
  document.addEventListener("visibilitychange", beat);
  setInterval(beat, 1000);
  open(true);
}

// The overrides of a pool ask for this once one is added or withdrawn.
document.addEventListener("headroom:changed", () => refresh(true));

begin();
