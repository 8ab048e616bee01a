// What page and worker tell each other.
import type { Problem } from "./form";
import type { QueueLink } from "./queues";

export interface RunRequest {
  kind: "run";
  id: number;
  /** The form as the core's JSON, or a scenario's text. */
  form?: string;
  scenario?: string;
  /** Or an experiment as JSON, and the command that runs it. */
  experiment?: string;
  command?: string;
  /** Which of the form's runs. */
  pick: number;
  /** Also where the core says "ask". */
  confirmed: boolean;
  view: View;
}

export interface View {
  /** Nanoseconds; `to` 0: the whole run. */
  from: number;
  to: number;
  pixels: number;
}

/** First the core as text, later as what became of it. */
export type ToWorker = { kind: "core"; text: string } | { kind: "module"; module: WebAssembly.Module } | RunRequest | { kind: "view"; id: number; view: View } | Look;

/** The packets of a stretch of the run, ns. */
export interface Look {
  kind: "look";
  id: number;
  from: number;
  to: number;
}

/** A link of the scenario. */
export interface LinkFacts {
  link: string;
  from: string;
  to: string;
  rate_bps: number | null;
  delay_ns: number;
}

/** Ten numbers a passage, as crates/play/src/trace.rs says. */
export interface Packets {
  kind: "packets";
  id: number;
  from: number;
  to: number;
  rows: Float64Array<ArrayBuffer>;
  links: LinkFacts[];
  full: boolean;
}

export interface FlowFacts {
  flow: number;
  label: string;
  cc: string;
  start_ns: number;
}

export interface NamedPath {
  name: string;
  about: string;
  /** Fields of the path and their values. */
  fields: [string, string][];
}

/** A medium or a workload by name. */
export interface Named {
  name: string;
  about: string;
}

export interface Names {
  algorithms: { name: string }[];
  queues: { name: string; example: string }[];
  paths: NamedPath[];
  media: Named[];
  workloads: Named[];
}

export interface FlowSummary {
  label: string;
  cc: string;
  goodput_bps: number | null;
  share: number | null;
  rtt_ms: { p5: number | null; p50: number | null; p95: number | null } | null;
  retransmits: number | null;
  timeouts: number | null;
  /** The link where it waited longest. */
  bottleneck: string | null;
  /** Of a flow with a size. */
  transfer?: { bytes: number };
}

export interface Summary {
  flows: FlowSummary[];
  probes: { target: string; rtt_ms: { p50: number | null } | null }[];
  queues: { link: string; dropped: number; marked: number }[];
  jain: number | null;
}

/** Four values a pixel: first, least, greatest, last. */
export type Line = Float64Array<ArrayBuffer>;

/** The figures of a run and its explanation. */
export interface Results {
  measures: Summary;
  sentence: string;
  /** The instants that the explanation names, in seconds, and their texts. */
  marks: [number, string][];
}

export interface Picture extends Results {
  kind: "picture";
  id: number;
  done: boolean;
  now: number;
  duration: number;
  /** About how many are sent. */
  packets: number;
  view: { from: number; to: number; pixels: number };
  flows: FlowFacts[];
  /** The links where the flows wait longest, each with its recorded queue. */
  queues: (QueueLink & { backlog: Line; drops: Line })[];
  lines: { cwnd: Line[]; ssthresh: Line[]; rtt: Line[]; goodput: Line[] };
  strips: { limit: Line[]; state: Line[]; limitWords: string[]; stateWords: string[] };
  names: string[];
  command: string;
  /** Of a form: the experiment that it describes. Its seed may have more digits than a Number holds. */
  experiment: Record<string, unknown> | null;
  scenario: string;
}

export type FromWorker =
  | { kind: "broken"; message: string }
  | { kind: "ready"; module: WebAssembly.Module; version: string; names: Names }
  | { kind: "beat" }
  | Picture
  | { kind: "problems"; id: number; problems: Problem[] }
  | { kind: "ask"; id: number; packets: number; most: number }
  | { kind: "stalled"; id: number }
  | { kind: "trap"; id: number; message: string }
  | Packets
  /** Of the run as its scenario says: the figures that a command gives, in place of the picture's. */
  | ({ kind: "hash"; id: number; sha256: string } & Results);
