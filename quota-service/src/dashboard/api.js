// Questions to the service: with the token where there is one, with If-None-Match, and one at a time for each address.

const TOKEN = "headroom-token";
/** Within so long the same question is not asked twice: several sections share an answer. */
const SHARED_MS = 1500;
/** Questions that are under way at once. */
const AT_ONCE = 4;

/** What the service says where it does not answer what was asked. */
export class Problem extends Error {
  constructor(status, code, detail, extra = {}) {
    super(detail);
    Object.assign(this, { status, code, detail, at: Date.now(), title: extra.title, errors: extra.errors ?? [] });
  }
}

const unreachable = () =>
  new Problem(0, "unreachable", "The service does not answer: it may have stopped, or the network is down.");

/** A fault of the browser in words: its own ones are for those who write programs. */
export const asProblem = (fault) => (fault instanceof Problem ? fault : unreachable());

/** Whether there is nothing to show, as opposed to a fault. A pool without a quota is no service that is gone. */
export const isAbsent = (fault) => [404, 409].includes(fault.status) || fault.code === "no-quota-yet";

/** A service that is gone, overloaded or broken says nothing of what was asked: its last answer may still be so. */
export const isPassing = (fault) =>
  !isAbsent(fault) && (fault.status === 0 || fault.status === 429 || fault.status >= 500);

const answers = new Map();
const waiting = [];
let underWay = 0;
let versions = 0;
let memory = "";

/** The token of this tab; of this page alone, where the browser keeps nothing. */
export function token() {
  try {
    return sessionStorage.getItem(TOKEN) ?? memory;
  } catch {
    return memory;
  }
}

/** The token that the service refused last. */
let refused = null;

/** Whether there is a token, and the service refuses it. */
export const isRefused = () => token() !== "" && token() === refused;

/** Keeps a token, or forgets it with "". */
export function setToken(value) {
  memory = value;
  answers.clear();
  try {
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  } catch {
    /* The page keeps it. */
  }
}

/** `/v1/x?a=b` from a path and what it is asked with. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}

function turn() {
  while (underWay < AT_ONCE && waiting.length > 0) {
    underWay += 1;
    waiting.shift()();
  }
}

/** By how much the clock of the service is later than that of this browser, as its answers say to the second. */
let later = 0;

/** The time by the clock of the service: that of a browser may be wrong by hours. */
export const serviceNow = () => Date.now() + later;

function compareClocks(response) {
  const date = Date.parse(response.headers.get("date") ?? "");
  if (Number.isFinite(date)) later = Math.abs(date - Date.now()) < 2000 ? 0 : date - Date.now();
}

async function sent(url, options) {
  await new Promise((begin) => {
    waiting.push(begin);
    turn();
  });
  try {
    const response = await fetch(url, { cache: "no-store", ...options });
    compareClocks(response);
    return response;
  } catch {
    throw unreachable();
  } finally {
    underWay -= 1;
    turn();
  }
}

function headers(more) {
  const bearer = token();
  return { accept: "application/json", ...(bearer ? { authorization: `Bearer ${bearer}` } : {}), ...more };
}

/** Names that a refusal lists. */
const LISTED = 12;

/** The words of a refusal, with the names that there are in place of the field that holds them. */
function inFull({ detail, known }) {
  const names = (known ?? []).slice(0, LISTED).join(", ") || "there is none";
  const more = known?.length > LISTED ? ` and ${known.length - LISTED} more` : "";
  return detail?.replace("choose one of `known`", known?.length > 0 ? `choose one of ${names}${more}` : names);
}

/** The content of an answer. A gateway may answer in place of the service, with a page of its own. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    const words = "What came is not from the service: a gateway or a page to log in may stand before it.";
    throw new Problem(0, "foreign", words);
  }
}

/** A refusal of the service; `bearer` is the token that it was asked with. */
async function problem(response, bearer) {
  const body = await response.json().catch(() => ({}));
  const detail = inFull(body) ?? `The service answered ${response.status} ${response.statusText}`.trim();
  // A question of before may be refused after a new token was given.
  if (response.status === 401 && bearer === token()) {
    refused = bearer;
    document.dispatchEvent(new CustomEvent("headroom:token", { detail }));
  }
  return new Problem(response.status, body.code ?? "", detail, body);
}

async function asked(url, before) {
  const bearer = token();
  const etag = before?.etag ? { "if-none-match": before.etag } : {};
  const response = await sent(url, { headers: headers(etag) });
  if (response.status === 304 && before) return { ...before, at: Date.now() };
  if (!response.ok) throw await problem(response, bearer);
  const text = await response.text().catch(() => {
    throw unreachable();
  });
  if (before && before.text === text) return { ...before, etag: response.headers.get("etag"), at: Date.now() };
  return {
    text,
    data: parsed(text),
    etag: response.headers.get("etag"),
    at: Date.now(),
    version: ++versions,
  };
}

/** The answer to a question: `data`, and a `version` that rises when it changes. */
export function get(url, fresh = false) {
  const kept = answers.get(url);
  if (kept && !fresh && (kept.pending || Date.now() - kept.began < SHARED_MS)) return kept.promise;
  const entry = { began: Date.now(), pending: true, known: kept?.known };
  entry.promise = asked(url, kept?.known?.answer).then(
    (answer) => {
      entry.pending = false;
      entry.known = { answer };
      return answer;
    },
    (fault) => {
      entry.pending = false;
      // What a token no longer allows is not kept.
      if (!isPassing(fault)) entry.known = isAbsent(fault) ? { fault } : undefined;
      throw fault;
    },
  );
  answers.set(url, entry);
  return entry.promise;
}

/**
 * The `answer` to a question or the `fault` that came instead. Where the service is gone, `gone` says so, beside its last
 * answer; where it never answered this question, `fault` is the same as `gone`.
 */
export async function look(url, fresh = false) {
  try {
    return { answer: await get(url, fresh) };
  } catch (fault) {
    if (!isPassing(fault)) return { fault };
    return { ...(answers.get(url)?.known ?? { fault }), gone: fault };
  }
}

/** Has everything asked again. What was answered stays known: the service may be gone before it answers again. */
function outdate() {
  for (const [url, { known }] of answers) answers.set(url, { began: 0, pending: false, known });
}

/** An answer that stays open. It takes no turn: it would keep the others from theirs. */
export async function stream(url, { signal, headers: more }) {
  const bearer = token();
  const response = await fetch(url, {
    cache: "no-store",
    signal,
    headers: headers({ ...more, accept: "text/event-stream" }),
  });
  if (!response.ok) throw await problem(response, bearer);
  return response;
}

/** Changes something, and gives the body of the answer, if it has one. */
export async function send(method, url, body) {
  const bearer = token();
  const options = { method, headers: headers(body ? { "content-type": "application/json" } : {}) };
  if (body) options.body = JSON.stringify(body);
  const response = await sent(url, options);
  if (!response.ok) throw await problem(response, bearer);
  outdate();
  const text = await response.text();
  return text ? parsed(text) : null;
}

/** Has the browser keep an answer as a file. */
export async function save(url, name) {
  const bearer = token();
  const response = await sent(url, { headers: headers({ accept: "text/csv" }) });
  if (!response.ok) throw await problem(response, bearer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
