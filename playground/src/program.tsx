// An algorithm of one's own (docs/how-to/program.md): its text beside line numbers, and what the core says of it.
import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Form, type Problem, flowOf } from "./form";
import "./program.css";

const files = import.meta.glob<string>("../../programs/*.cc", { query: "?raw", import: "default", eager: true });

/** The texts of the folder `programs`, by name. */
export const EXAMPLES: Record<string, string> = Object.fromEntries(
  Object.entries(files).map(([file, text]) => [file.replace(/^.*\/(.*)\.cc$/, "$1"), text]),
);

/** Between the last key and the run. */
const TYPED_MS = 200;

export interface Mark {
  line: number;
  column: number;
  text: string;
}

const PLACE = /^programs\.([A-Za-z0-9_-]+):(\d+):(\d+)$/;

/** What the core says of a program, in its field `programs.NAME:LINE:COLUMN`. */
export function markOf(name: string, problems: Problem[]): Mark | null {
  for (const { field, value, expected } of problems) {
    const found = PLACE.exec(field);
    if (found?.[1] === name)
      return { line: Number(found[2]), column: Number(found[3]), text: value ? `got ${value}, expected ${expected}` : expected };
  }
  return null;
}

/** The same of a word of the race that names it: shown beside the text, not twice. */
export const isMarked = (form: Form, problem: Problem) => PLACE.exec(problem.field)?.[1] !== undefined && PLACE.exec(problem.field)![1]! in programsOf(form);

/** Where a line and a column are in a text. Both count from 1; a column is a character, of one or two units. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0);
  const within = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  return Math.min(text.length, before + within);
}

/** The programs of a form. One from a link may hold anything: the core refuses what is no text. */
export function programsOf(form: Form): Record<string, string> {
  const { programs } = form.more;
  if (typeof programs !== "object" || programs === null) return {};
  return Object.fromEntries(Object.entries(programs).filter((it): it is [string, string] => typeof it[1] === "string"));
}

const named = (word: string) => flowOf(word).name.split(":")[0];

/** A form with this text under this name, and a flow of it. */
export function withProgram(form: Form, name: string, text: string): Partial<Form> {
  const programs = { ...programsOf(form), [name]: text };
  const runs = form.algorithms.some((it) => named(it) === name);
  return { more: { ...form.more, programs }, algorithms: runs ? form.algorithms : [...form.algorithms, name] };
}

/** A form without it and its flows. */
export function withoutProgram(form: Form, name: string): Partial<Form> {
  const { [name]: _, ...programs } = programsOf(form);
  const { programs: __, ...more } = form.more;
  const algorithms = form.algorithms.filter((it) => named(it) !== name);
  return {
    more: Object.keys(programs).length ? { ...more, programs } : more,
    algorithms: algorithms.length ? algorithms : ["reno"],
  };
}

interface EditorProps {
  name: string;
  text: string;
  mark: Mark | null;
  put: (text: string) => void;
  remove: () => void;
  copy: (text: string) => void;
}

function Editor({ name, text, mark, put, remove, copy }: EditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const timer = useRef(0);
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    if (!timer.current) setTyped(text);
  }, [text]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (now: string) => {
    setTyped(now);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      put(now);
    }, TYPED_MS);
  };
  const show = () => {
    if (!mark || !area.current) return;
    const at = offsetOf(typed, mark.line, mark.column);
    area.current.focus();
    area.current.setSelectionRange(at, Math.min(typed.length, at + 1));
  };
  const lines = typed.split("\n").length;
  return (
    <div class="program">
      <div class="row">
        <h2>{name}</h2>
        <button type="button" onClick={() => copy(typed)}>Copy the text</button>
        <button type="button" aria-label={`Remove ${name}`} onClick={remove}>Remove</button>
      </div>
      <div class="text">
        <pre aria-hidden="true">
          {Array.from({ length: lines }, (_, at) => (
            <div key={at} class={mark?.line === at + 1 ? "bad" : ""}>{mark?.line === at + 1 ? `▸ ${at + 1}` : at + 1}</div>
          ))}
        </pre>
        <textarea
          ref={area} aria-label={`Text of ${name}`} aria-invalid={mark !== null} aria-describedby={`wrong-program-${name}`}
          rows={lines} wrap="off" spellcheck={false} autocomplete="off" autocapitalize="off" value={typed}
          onInput={(it) => type(it.currentTarget.value)}
        />
      </div>
      <p class="wrong" role="status" id={`wrong-program-${name}`}>
        {mark && <>{`Line ${mark.line}, column ${mark.column}: ${mark.text} `}<button type="button" onClick={show}>Show it</button></>}
      </p>
    </div>
  );
}

interface Props {
  form: ReadonlySignal<Form>;
  problems: Problem[];
  change: (more: Partial<Form>) => void;
  copy: (text: string) => void;
}

/** The programs of the race, and the examples to begin with. */
export function Programs({ form, problems, change, copy }: Props) {
  const programs = Object.entries(programsOf(form.value));
  const left = Object.keys(EXAMPLES).filter((name) => !programs.some(([known]) => known === name));
  return (
    <details class="programs" open={programs.length > 0}>
      <summary>An algorithm of your own</summary>
      <p>A small language: when an ACK comes, when a packet is lost. Begin with one of these, and change it; each key runs the race again.</p>
      <div class="row">
        {left.map((name) => (
          <button type="button" key={name} onClick={() => change(withProgram(form.value, name, EXAMPLES[name]!))}>{name}</button>
        ))}
      </div>
      {programs.map(([name, text]) => (
        <Editor
          key={name} name={name} text={text} mark={markOf(name, problems)} copy={copy}
          put={(now) => change(withProgram(form.value, name, now))}
          remove={() => change(withoutProgram(form.value, name))}
        />
      ))}
      {programs.length > 0 && (
        <p>
          The link holds the text. Saved as <code>{`${programs[0]![0]}.cc`}</code> it runs natively by the command below, with the same bytes: <code>docs/how-to/program.md</code> has
          every word. The way on: <code>dragstrip new-algorithm</code> begins the same in Rust, with <code>--bpf</code> for a Linux kernel (<code>docs/how-to/new-algorithm.md</code>).
        </p>
      )}
    </details>
  );
}
