// The form: what `dragstrip compare` takes, as text in its words.

export interface Form {
  algorithms: string[];
  rate: string;
  rtt: string;
  queue: string;
  loss: string;
  jitter: string;
  up_rate: string;
  stagger: string;
  duration: string;
  seed: string;
  together: boolean;
  /** Options that the page has no field for, as they came. */
  more: Record<string, unknown>;
}

export type TextField = "rate" | "rtt" | "queue" | "loss" | "jitter" | "up_rate" | "stagger" | "duration" | "seed";
export const TEXTS: readonly TextField[] = ["rate", "rtt", "queue", "loss", "jitter", "up_rate", "stagger", "duration", "seed"];

export const FIRST: Form = {
  algorithms: ["cubic", "vegas"],
  rate: "10mbit",
  rtt: "40ms",
  queue: "pfifo limit 100",
  loss: "",
  jitter: "",
  up_rate: "",
  stagger: "",
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

const SEED_MAX = 2n ** 63n - 1n;

/** What is wrong with a seed; null if nothing. Its text goes into the JSON as it is, so it has to be a number. */
export function seedProblem(seed: string): Problem | null {
  const right = /^(0|[1-9]\d{0,18})$/.test(seed) && BigInt(seed) <= SEED_MAX;
  return right ? null : { field: "seed", value: seed, expected: "a whole number up to 2^63-1" };
}

/** The core's JSON. The seed never becomes a Number: it may exceed 2^53. */
export function toJson(form: Form): string {
  const known: Record<string, unknown> = { ...form.more, algorithms: form.algorithms };
  for (const field of TEXTS) if (field !== "seed" && form[field] !== "") known[field] = form[field];
  if (form.together && form.algorithms.length > 1) known.together = true;
  return `${JSON.stringify(known).slice(0, -1)},"seed":${form.seed}}`;
}

/** A form from the options of an embedded race. */
export function fromOptions(options: Record<string, unknown>): Form {
  const form: Form = { ...FIRST, queue: "", duration: "30s", together: false, more: {} };
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

/** `cubic*4@80ms+5s` in its parts; the name keeps its parameters. */
export function flowOf(text: string): Flow {
  const [, name, count, rtt, start] = /^(.*?)(?:\*(\d+))?(?:@([^@+]*))?(?:(?<!\de)\+([^+]*))?$/.exec(text) ?? ["", text];
  return { name: name ?? text, count: Number(count ?? 1), rtt: rtt ?? "", start: start ?? "" };
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
