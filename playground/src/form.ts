// The form: what `dragstrip compare` takes, as text in its words. Its fields are generated (options.ts); what they mean,
// and what is wrong with them, the core says.
import { TEXTS, type TextField } from "./options";
import { rules } from "./rules";

export { TEXTS, type TextField };

export interface Form extends Record<TextField, string> {
  algorithms: string[];
  together: boolean;
  /** Options that the page has no field for, as they came. */
  more: Record<string, unknown>;
}

const nothing = Object.fromEntries(TEXTS.map((field) => [field, ""])) as Record<TextField, string>;

export const FIRST: Form = {
  ...nothing,
  algorithms: ["cubic", "vegas"],
  rate: "10mbit",
  rtt: "40ms",
  queue: "pfifo limit 100",
  duration: "30s",
  seed: "1",
  together: true,
  more: {},
};

export interface Problem {
  field: string;
  value: string;
  expected: string;
}

/** The core's JSON. Fields stay text, the seed too. */
export function toJson(form: Form): string {
  const known: Record<string, unknown> = { ...form.more, algorithms: form.algorithms };
  for (const field of TEXTS) if (form[field] !== "") known[field] = form[field];
  if (form.together && form.algorithms.length > 1) known.together = true;
  return JSON.stringify(known);
}

/** The value of a field that a link leaves out: a path or a medium by name has figures of its own. */
export function defaultOf(field: TextField, { path, medium }: Pick<Form, "path" | "medium">): string {
  if (path !== "" && ["rate", "rtt", "queue"].includes(field)) return "";
  return medium !== "" && field === "rate" ? "" : FIRST[field];
}

/** Fields that a path by name describes. */
const OF_PATH = ["medium", "rate", "rtt", "queue", "loss", "jitter", "netem", "up_rate", "up_netem"] as const;

/** The fields after the choice of a path by name; an empty name returns to the first race's figures. */
export function withPath(path: string): Partial<Form> {
  const fields = Object.fromEntries(OF_PATH.map((field) => [field, defaultOf(field, { path, medium: "" })]));
  return { path, ...fields };
}

/** The fields after the choice of a medium, which has a rate of its own; an empty name returns to a rate. */
export const withMedium = ({ path }: Form, medium: string): Partial<Form> => ({ medium, rate: defaultOf("rate", { path, medium }) });

/** A form from the options of an embedded race. */
export function fromOptions(options: Record<string, unknown>): Form {
  const isDescribed = ["path", "medium", "trace"].some((key) => options[key] != null);
  const base = isDescribed ? { ...FIRST, rate: "", rtt: "" } : FIRST;
  const form: Form = { ...base, queue: "", duration: "30s", together: false, more: {} };
  for (const [key, value] of Object.entries(options)) {
    if (value === null) continue;
    if (key === "algorithms" && Array.isArray(value)) form.algorithms = value.map(String);
    else if (key === "together") form.together = value === true;
    else if ((TEXTS as readonly string[]).includes(key)) form[key as TextField] = String(value);
    else form.more[key] = value;
  }
  return form;
}

export interface Flow {
  name: string;
  count: number;
  rtt: string;
  start: string;
}

/** The parts of `cubic*4@80ms+5s`, as the core reads it; the name keeps its parameters. A text that is no such word is all name. */
export function flowOf(text: string): Flow {
  const core = rules();
  try {
    if (core) return JSON.parse(core.flow_word(text)) as Flow;
  } catch {
    // The core refuses it: its own message stands below the field.
  }
  return { name: text, count: 1, rtt: "", start: "" };
}

export function textOf({ name, count, rtt, start }: Flow): string {
  return name + (count > 1 ? `*${count}` : "") + (rtt ? `@${rtt}` : "") + (start ? `+${start}` : "");
}

/** Places of a slider: from least to greatest on a logarithm, 1000 steps. */
export const STEPS = 1000;

export function place(value: number, least: number, greatest: number): number {
  const share = Math.log(Math.max(value, least) / least) / Math.log(greatest / least);
  return Math.round(Math.min(1, share) * STEPS);
}

/** The value at a place, with two digits. */
export function valueAt(at: number, least: number, greatest: number): number {
  const raw = least * (greatest / least) ** (at / STEPS);
  const unit = 10 ** (Math.floor(Math.log10(raw)) - 1);
  return Number((Math.round(raw / unit) * unit).toPrecision(2));
}

/**
 * The value after a slider was moved from `value` to a place. A key moves it by one place, which may be less than two
 * digits show: it goes to the next value that they do show, so that each press is a step.
 */
export function movedTo(at: number, value: number, least: number, greatest: number): number {
  const by = at - place(value, least, greatest);
  if (Math.abs(by) !== 1) return valueAt(at, least, greatest);
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  // Below a power of ten the digits are finer: 100, 99, 98.
  const step = by < 0 && value - unit < 10 * unit ? unit / 10 : unit;
  const digits = Math.round(value / step) + by;
  return Math.min(greatest, Math.max(least, Number((digits * step).toPrecision(3))));
}

const UNITS: Record<string, Record<string, number>> = {
  rate: { bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9 },
  time: { us: 1e3, ms: 1e6, s: 1e9 },
  percent: { "%": 1 },
};

/** The number behind plain words such as `10mbit`, for a slider's place only; the core reads the text itself. */
export function rough(kind: "rate" | "time" | "percent", text: string): number | null {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([a-z%]+)$/i.exec(text.trim()) ?? [];
  const scale = unit === undefined ? undefined : UNITS[kind][unit.toLowerCase()];
  return digits === undefined || scale === undefined ? null : Number(digits) * scale;
}

/** The largest unit that leaves a number of at least one. */
export function words(kind: "rate" | "time" | "percent", value: number): string {
  const units = Object.entries(UNITS[kind]).reverse();
  const [unit, scale] = units.find(([, it]) => value >= it) ?? units[units.length - 1]!;
  return `${Number((value / scale).toPrecision(6))}${unit}`;
}

const SPOKEN: Record<string, string> = {
  bit: "bits per second", kbit: "kilobits per second", mbit: "megabits per second", gbit: "gigabits per second",
  us: "microseconds", ms: "milliseconds", s: "seconds", "%": "percent",
};

/** `10mbit` as it is spoken. */
export function spoken(text: string): string {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([a-z%]+)$/i.exec(text) ?? [];
  return unit && SPOKEN[unit] ? `${digits} ${SPOKEN[unit]}` : text || "none";
}

/** The number after `limit` of a queue's words. */
export function limitOf(queue: string): number | null {
  const found = /\blimit (\d+)\b(?!\w)/.exec(queue);
  return found ? Number(found[1]) : null;
}

export function withLimit(queue: string, limit: number): string {
  return queue.replace(/\blimit \d+\b/, `limit ${limit}`);
}
