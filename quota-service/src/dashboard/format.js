// Numbers and times as people read them.

import { h } from "./dom.js";

const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 3, signDisplay: "negative" });
const SIGNED = new Intl.NumberFormat("en", { maximumFractionDigits: 3, signDisplay: "exceptZero" });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "2-digit",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  timeZoneName: "short",
});
const LONG = new Intl.DateTimeFormat("en-GB", {
  day: "2-digit",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  timeZoneName: "short",
});
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});
const HOUR = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short" });

export const NONE = "–";
const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

/** GPUs, or another number: at most three decimals. */
export const number = (value) => (known(value) ? PLAIN.format(value) : NONE);
/** A difference with its sign. */
export const signed = (value) => (known(value) ? SIGNED.format(value) : NONE);
export const percent = (value) => (known(value) ? PERCENT.format(value) : NONE);
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** Seconds in words: the two largest units. */
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const all = Math.max(0, Math.round(seconds));
  const parts = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = parts.findIndex(([unit]) => all >= unit);
  if (first < 0) return "0 s";
  const [unit, name] = parts[first];
  const [lower, lowerName] = parts[first + 1] ?? [];
  const rest = lower ? Math.floor((all % unit) / lower) : 0;
  return rest > 0 ? `${Math.floor(all / unit)} ${name} ${rest} ${lowerName}` : `${Math.floor(all / unit)} ${name}`;
}

/** UTC as the service writes it. */
export const utc = (date) => date.toISOString().replace(/\.\d+Z$/, "Z");

export const clock = (date) => CLOCK.format(date);
export const hourOf = (date) => HOUR.format(date);
export const dayOf = (date) => DAY.format(date);
export const moment = (date) => MOMENT.format(date);

/** A time in the zone of the reader; UTC in its title. */
export function time(text, withYear = false) {
  const date = new Date(text ?? NaN);
  if (Number.isNaN(date.getTime())) return text ?? NONE;
  return h("time", { datetime: text, title: `${utc(date)} (UTC)` }, (withYear ? LONG : MOMENT).format(date));
}

const MOMENTS = /(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?Z)/;

/** A sentence of the service, its times in the zone of the reader. */
export const sentence = (text) => String(text).split(MOMENTS).map((part, index) => (index % 2 ? time(part) : part));

/** A time for an input of type datetime-local. */
export function localInput(date) {
  const two = (value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}`;
}
