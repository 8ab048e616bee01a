// Links: `#1&rate=10mbit&…`, readable, with the core's version and the hash of the recording.
import { FIRST, type Form, type Problem, TEXTS, type TextField, defaultOf } from "./form";

export const FRAGMENT_MAX = 65_536;
const KEYS = [...TEXTS, "cc", "together", "more", "v", "h"];

export interface Link {
  form: Form;
  version: string;
  hash: string;
}

const coded = (text: string) =>
  encodeURIComponent(text).replace(/%20/g, "+").replace(/%40/g, "@").replace(/%3D/g, "=").replace(/%3A/g, ":");

export function fragmentOf(form: Form, version: string, hash: string): string {
  const parts = ["#1", `cc=${form.algorithms.map(coded).join(",")}`];
  for (const field of TEXTS) if (form[field] !== "" || defaultOf(field, form) !== "") parts.push(`${field}=${coded(form[field])}`);
  if (form.together) parts.push("together=1");
  if (Object.keys(form.more).length) parts.push(`more=${coded(JSON.stringify(form.more))}`);
  if (version) parts.push(`v=${coded(version)}`);
  if (hash) parts.push(`h=${hash.slice(0, 8)}`);
  return parts.join("&");
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}

export class Refused extends Error {
  constructor({ field, value, expected }: Problem) {
    super(`link: ${field} ${JSON.stringify(value.slice(0, 60))}: expected ${expected}`);
  }
}

const refuse = (field: string, value: string, expected: string): never => {
  throw new Refused({ field, value, expected });
};

function text(key: string, raw: string): string {
  try {
    return decodeURIComponent(raw.replace(/\+/g, "%20"));
  } catch {
    return refuse(key, raw, "percent-encoded UTF-8");
  }
}

/** What a fragment says; null if it is empty. Throws `Refused`. The core checks the values. */
export function linkOf(fragment: string): Link | null {
  const whole = fragment.replace(/^#/, "");
  if (whole === "") return null;
  if (whole.length > FRAGMENT_MAX) refuse("length", String(whole.length), `at most ${FRAGMENT_MAX} characters`);
  const [form, ...parts] = whole.split("&");
  if (form !== "1") refuse("form", form ?? "", "1, as in #1&rate=10mbit");
  const values: Form = { ...FIRST, stagger: "", together: false, more: {} };
  const link: Link = { form: values, version: "", hash: "" };
  const keys = new Set<string>();
  for (const part of parts) {
    const at = part.indexOf("=");
    const key = at < 0 ? part : part.slice(0, at);
    const raw = at < 0 ? "" : part.slice(at + 1);
    if (!KEYS.includes(key)) {
      const nearest = KEYS.map((it) => [distance(key.slice(0, 40), it), it] as const).sort((a, b) => a[0] - b[0])[0]!;
      refuse("key", key, `one of ${KEYS.join(", ")}${nearest[0] <= 2 ? `; did you mean ${nearest[1]}?` : ""}`);
    }
    if (keys.has(key)) refuse(key, raw, "one value");
    keys.add(key);
    const value = text(key, raw);
    if (key === "cc") values.algorithms = raw.split(",").map((it) => text(key, it));
    else if (key === "together") values.together = value === "1" || refuse(key, value, "1");
    else if (key === "v") link.version = value;
    else if (key === "h") link.hash = /^[0-9a-f]{8}$/.test(value) ? value : refuse(key, value, "8 hexadecimal digits");
    else if (key === "more") {
      let more: unknown;
      try {
        more = JSON.parse(value);
      } catch {
        refuse(key, value, "a JSON object");
      }
      if (typeof more !== "object" || more === null || Array.isArray(more)) refuse(key, value, "a JSON object");
      values.more = more as Record<string, unknown>;
    } else values[key as TextField] = value;
  }
  for (const field of TEXTS) if (!keys.has(field) && field !== "stagger") values[field] = defaultOf(field, values);
  return link;
}

/** Where a hosted page finds that of another version; empty where the site has none (its head names them: .ci/site.py). */
export function keptVersion(version: string, ownVersion: string): string {
  const stored = document.querySelector<HTMLMetaElement>('meta[name="dragstrip-versions"]');
  return stored && version !== ownVersion && stored.content.split(" ").includes(version) ? `${stored.dataset.from}${version}/` : "";
}
