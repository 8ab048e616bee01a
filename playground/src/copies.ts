// A race in other words: as a Python program, and as a citation.
import { type Form, toJson } from "./form";

function literal(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value!).map(([key, it]) => `${literal(key)}: ${literal(it)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** A program that runs the same race. The seed stays text: it may exceed what a Number holds. */
export function pythonOf(form: Form): string {
  const { algorithms, seed: _, ...options } = JSON.parse(toJson(form)) as Record<string, unknown>;
  const words = Object.entries(options).map(([key, value]) => `    ${key}=${literal(value)},\n`);
  return `import dragstrip

race = dragstrip.compare(
    ${literal(algorithms)},
${words.join("")}    seed=${form.seed},
)
dragstrip.run(race, "out")
print(dragstrip.load("out"))
`;
}

export function citationOf(command: string, version: string, hash: string): string {
  return `Dragstrip ${version}, a simulator of TCP congestion controls. Run: ${command}. SHA-256 of the recording: ${hash}.`;
}
