// A race in other words: as a Python program, as an experiment, and as a citation.
import { type Form, toJson } from "./form";

function literal(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value!).map(([key, it]) => `${literal(key)}: ${literal(it)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** A program that runs the same race. */
export function pythonOf(form: Form): string {
  const { algorithms, seed, ...options } = JSON.parse(toJson(form)) as Record<string, unknown>;
  const words = Object.entries(options).map(([key, value]) => `    ${key}=${literal(value)},\n`);
  return `import dragstrip

race = dragstrip.compare(
    ${literal(algorithms)},
${words.join("")}    seed=${/^\d+$/.test(String(seed)) ? seed : literal(seed)},
)
dragstrip.run(race, "out")
print(dragstrip.load("out"))
`;
}

const key = (name: string) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));

function value(it: unknown): string {
  if (Array.isArray(it)) return `[${it.map(value).join(", ")}]`;
  if (typeof it !== "object") return JSON.stringify(it).replace(/\x7f/g, "\\u007f"); // JSON's escapes are TOML's, but for this one
  const fields = Object.entries(it!);
  return fields.length ? `{ ${fields.map(([name, of]) => `${key(name)} = ${value(of)}`).join(", ")} }` : "{}";
}

/** An experiment's content as its file. */
export function tomlOf(content: Record<string, unknown>): string {
  const line = ([name, it]: [string, unknown]) => `${key(name)} = ${value(it)}\n`;
  const table = (it: unknown) => typeof it === "object" && (!Array.isArray(it) || typeof it[0] === "object");
  const all = Object.entries(content);
  const plain = all.filter(([, it]) => !table(it)).map(line);
  const tables = all.filter(([, it]) => table(it)).flatMap(([name, it]) =>
    Array.isArray(it)
      ? it.map((entry: object) => `\n[[${key(name)}]]\n${Object.entries(entry).map(line).join("")}`)
      : [`\n[${key(name)}]\n${Object.entries(it!).map(line).join("")}`]);
  return [...plain, ...tables].join("");
}

export function citationOf(command: string, version: string, hash: string): string {
  return `Dragstrip ${version}, a simulator of TCP congestion controls. Run: ${command}. SHA-256 of the recording: ${hash}.`;
}
