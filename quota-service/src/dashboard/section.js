// A part of a page: it asks for what it shows, says so where it gets no answer, and draws again only what has changed.

import { asProblem, isAbsent, isRefused, look } from "./api.js";
import { h } from "./dom.js";
import { clock, utc } from "./format.js";
import { ASK, INVALID } from "./token.js";

/** Why a part has nothing to show, in words. */
function words(fault) {
  if (fault.status === 401) {
    const why = isRefused() ? INVALID : "A token is needed.";
    return `${why} The button “${ASK}” above asks for one.`;
  }
  if (fault.status === 403) return `Your token does not allow this: ${fault.detail}`;
  return fault.detail || asProblem(fault).detail;
}

/** A notice that stands where an answer is missing, with a button that asks again; `more` follows its words. */
export function notice(fault, again, more) {
  const absent = isAbsent(fault);
  const kind = absent ? "absent" : "fault";
  const lead = absent ? `${fault.title || "Nothing to show"}: ` : fault.status === 403 ? "" : "Not available: ";
  return h(
    "div",
    { class: `notice ${kind}` },
    h("p", null, h("strong", null, lead), words(fault), more),
    again && h("button", { type: "button", data: { key: "retry" }, on: { click: again } }, "Try again"),
  );
}

/** When the oldest of the answers was read; null while there is none. A refusal is no answer: it leaves nothing to show. */
function readAtOf(got) {
  const isRead = ({ fault, gone }) => (!gone || fault !== gone) && (!fault || isAbsent(fault));
  const read = got.filter(isRead);
  const all = read.map(({ answer, fault }) => (answer ?? fault).at);
  return all.length > 0 ? Math.min(...all) : null;
}

/** Keeps the keyboard where it was while its surroundings are made again. */
function keepingFocus(host, change) {
  const key = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = [...host.querySelectorAll("details[open]")].map((one) => one.dataset.key);
  change();
  for (const one of host.querySelectorAll("details"))
    if (one.dataset.key && open.includes(one.dataset.key)) one.open = true;
  if (key) host.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export class Section {
  /**
   * @param {object} what
   * @param {string} what.id of the element
   * @param {string} what.title
   * @param {() => Object<string, string|null>} what.sources names and addresses; null for one that is not asked for
   * @param {string[]} [what.optional] those whose absence leaves the rest
   * @param {(data: object) => string} [what.same] what of an answer has to change for it to be drawn again; else all of it
   * @param {(data: object, section: Section) => any} what.render the content
   * @param {number} [what.everyMs] how long an answer stands, where it changes seldom and is dear
   * @param {boolean} [what.quietTitle] the heading of the page says it already
   * @param {() => string|false} [what.elsewhere] what to say in place of a refusal, where another scheduler places the tasks of the pool
   * @param {any} [what.before] what stands above the content and is made once
   * @param {any} [what.after] what stands below
   */
  constructor(what) {
    Object.assign(this, { optional: [], ...what });
    this.seen = null;
    /** When that was read which is shown, and what kept it from being read again. */
    Object.assign(this, { readAt: null, gone: null, refused: null });
    this.body = h("div", { class: "body", "aria-busy": "true" }, h("p", { class: "quiet" }, "Loading …"));
    const heading = h(
      "h2",
      { id: `${this.id}-title`, tabindex: "-1", class: this.quietTitle ? "hidden" : null },
      this.title,
    );
    this.element = h(
      "section",
      { id: this.id, "aria-labelledby": `${this.id}-title` },
      heading,
      this.about && h("p", { class: "about" }, this.about),
      this.before,
      this.body,
      this.after,
    );
  }

  /** Asks, and draws if something has changed. Says whether it has. */
  async refresh(force = false) {
    const sources = Object.entries(this.sources()).filter(([, url]) => url);
    const addresses = sources.map(([, url]) => url).join("\n");
    if (!force && addresses === this.answered?.addresses && Date.now() - this.answered.at < (this.everyMs ?? 0)) return false;
    const turn = (this.turn = {});
    const got = await Promise.all(
      sources.map(async ([name, url]) => ({ name, ...(await look(url, force)) })),
    );
    if (this.turn !== turn) return false;
    this.answered = got.every(({ fault, gone }) => !fault && !gone) ? { addresses, at: Date.now() } : null;
    this.gone = got.find(({ gone }) => gone)?.gone ?? null;
    this.refused = got.find(({ fault, gone }) => fault && fault !== gone && !isAbsent(fault))?.fault ?? null;
    this.readAt = readAtOf(got);
    const keys = sources.map((source, index) => this.keyOf(source, got[index]));
    const key = [this.elsewhere?.() || "", ...keys].join("\n");
    if (!force && key === this.seen) return false;
    const first = this.seen === null;
    this.seen = key;
    const refused = got.find(({ name, fault }) => fault && !this.optional.includes(name));
    if (refused) this.refuse(refused.fault);
    else if (this.gone && this.readAt === null) this.refuse(this.gone);
    else this.draw(got);
    return !first;
  }

  /** What tells an answer from the one before. */
  keyOf([, url], { answer, fault, gone }) {
    const state = gone ? `gone: ${gone.detail} ` : "";
    if (fault) return `${url} ${state}${fault.detail}`;
    return `${url} ${state}${this.same ? this.same(answer.data) : answer.version}`;
  }

  /** There is nothing to show but why. */
  refuse(fault) {
    this.data = null;
    const again = () => this.refresh(true);
    const elsewhere = isAbsent(fault) && this.elsewhere?.();
    if (elsewhere) return this.show(() => h("p", { class: "quiet" }, elsewhere));
    const isOlder = this.gone && fault !== this.gone;
    this.show(() => (isOlder ? [this.oldNotice(), notice(fault)] : notice(fault, again)));
  }

  draw(got) {
    this.data = Object.fromEntries(got.map(({ name, answer }) => [name, answer?.data ?? null]));
    // Of a service that is gone the notice above the figures says enough.
    const faults = got.filter(({ fault, gone }) => fault && fault !== gone);
    this.faults = Object.fromEntries(faults.map(({ name, fault }) => [name, fault]));
    this.redraw();
  }

  /** Draws what is known once more: the choice of the reader has changed, or the colours. */
  redraw() {
    if (!this.data) return;
    this.show(() => [this.gone && this.oldNotice(), this.render(this.data, this)]);
  }

  /** The notice above what could not be read again. */
  oldNotice() {
    const date = new Date(this.readAt);
    const when = h("time", { datetime: utc(date), title: `${utc(date)} (UTC)` }, clock(date));
    return notice(this.gone, () => this.refresh(true), [" What stands below was read at ", when, "."]);
  }

  show(make) {
    keepingFocus(this.body, () => {
      try {
        this.body.replaceChildren(...[make()].flat(Infinity).filter(Boolean));
      } catch (fault) {
        console.error(fault);
        this.body.replaceChildren(
          notice({ status: 0, detail: `the answer is not as this page expects it (${fault.message})` }, () =>
            this.refresh(true),
          ),
        );
      }
      this.body.setAttribute("aria-busy", "false");
    });
  }
}
