// The race as descriptions of figures, which the report's viewer draws: panels over time, and a plane of two flows.
import { greatestOf, valueAtPixel } from "../../python/dragstrip/report/viewer/columns.js";
import { frame } from "../../python/dragstrip/report/viewer/frame.js";
import { mark } from "../../python/dragstrip/report/viewer/marks.js";
import { digits } from "../../python/dragstrip/report/viewer/data.js";
import { THRESHOLD, type PanelName, axisOf, dashOf, looksOf, named, stripsOf } from "./look";
import type { FlowSummary, Line, Picture } from "./protocol";
import { ratesOf, titleOf } from "./queues";

/** Room for the labels of the y axes. */
export const LEFT = 44;
/** Flows that have a name; of more, the readings say the range. */
const NAMED = 8;

interface Stroke {
  columns: Line;
  colour: string;
  dash: number[];
  opacity: number;
  label: string;
  main: boolean;
}

/** Panels over time; `pinned` is an earlier race of the same part of time, shown pale behind this one. */
export function figureOf(it: Picture, pinned: Picture | null, words: string, dark: boolean) {
  const looks = looksOf(it.flows.map((flow) => flow.cc), dark);
  const grey = named("grey", dark);
  const ghosts = (lines: (Line | null)[]): Stroke[] =>
    lines.flatMap((columns) => (columns ? [{ columns, colour: grey, dash: [1, 0], opacity: 0.45, label: "", main: false }] : []));
  const curves = (lines: Line[]): Stroke[] =>
    lines.map((columns, at) => ({ columns, ...looks[at]!, opacity: 1, label: at < NAMED ? it.flows[at]!.label : "", main: true }));
  const panel = (name: PanelName, strokes: Stroke[], base: number, more: { note?: string; ticks?: number[] } = {}) => {
    const { divisor, axis } = axisOf(name, greatestOf(strokes.map((stroke) => stroke.columns)) / base);
    return { y: axis, base: base * divisor, strokes, ...more };
  };
  const { lines, view } = it;
  const thresholds = lines.ssthresh.map((columns, at) => ({ columns, ...looks[at]!, dash: THRESHOLD, opacity: 0.8, label: "", main: false }));
  const labels = it.flows.map((flow) => flow.label);
  const queues = it.queues.map((queue, number): Stroke => {
    // As in the report: a queue that several share has nobody's colour.
    const alone = it.flows.length === 1 ? 0 : it.queues.length > 1 && queue.flows.length === 1 ? queue.flows[0]! : null;
    const look = alone === null ? { colour: grey, dash: dashOf(number) } : looks[alone]!;
    return { columns: queue.backlog, ...look, opacity: 1, label: it.queues.length > 1 ? titleOf(queue, labels) : "", main: true };
  });
  const panels = [
    panel("cwnd", [...ghosts(pinned?.lines.cwnd ?? []), ...thresholds, ...curves(lines.cwnd)], 1, thresholds.length ? { note: "dashed: ssthresh" } : {}),
    panel("rtt", [...ghosts(pinned?.lines.rtt ?? []), ...curves(lines.rtt)], 1e6),
    panel("goodput", [...ghosts(pinned?.lines.goodput ?? []), ...curves(lines.goodput)], 1, { note: "over 10 RTTs" }),
    panel("queue", [...ghosts(pinned?.queues.map((queue) => queue.backlog) ?? []), ...queues], 1, { note: "marks: drops", ticks: timesOf(it) }),
    panel("share", curves(sharesOf(lines.goodput)), 1),
    { y: { title: "Phase and limit of each flow", unit: "", low: 0, high: 1 }, strokes: [] as Stroke[], rows: rowsOf(it, dark) },
  ];
  const x = { title: "Time (s)", unit: "s", low: view.from / 1e9, high: view.to / 1e9 };
  return { title: "the race", words, x, marks: it.marks, panels, tall: true };
}

/** When there were drops, in seconds. */
function timesOf({ queues, view }: Picture): number[] {
  const count = (queues[0]?.drops.length ?? 0) / 4;
  const width = (view.to - view.from) / count / 1e9;
  return Array.from({ length: count }, (_, x) => x).filter((x) => queues.some(({ drops }) => drops[4 * x + 2]! > 0)).map((x) => view.from / 1e9 + (x + 0.5) * width);
}

function rowsOf({ strips, flows }: Picture, dark: boolean) {
  const [states, limits] = [stripsOf(strips.stateWords, dark), stripsOf(strips.limitWords, dark)];
  const row = (name: string, pieces: Line, words: string[], colours: string[]) => ({
    name,
    pieces: Array.from({ length: pieces.length / 3 }, (_, at) => {
      const word = pieces[3 * at + 2]!;
      return { from: pieces[3 * at]! / 1e9, to: pieces[3 * at + 1]! / 1e9, word: words[word] ?? "", colour: colours[word] ?? "" };
    }),
  });
  return strips.limit.flatMap((limit, flow) => [
    row(`${flows[flow]!.label} phase`, strips.state[flow]!, strips.stateWords, states),
    row(`${flows[flow]!.label} limit`, limit, strips.limitWords, limits),
  ]);
}

/** An entry of the strips' legend: a colour, and the words that have it. */
export interface StripKey {
  colour: string;
  words: string;
}

/** The legends of the strips: of phases and of limits, with the words that the shown part of the run has. */
export function stripKeysOf({ strips }: Picture, dark: boolean): { phase: StripKey[]; limit: StripKey[] } {
  const keys = (pieces: Line[], words: string[]): StripKey[] => {
    const colours = stripsOf(words, dark);
    const entries = new Map<string, Set<string>>();
    for (const line of pieces) {
      for (let at = 2; at < line.length; at += 3) {
        const [word, colour] = [words[line[at]!], colours[line[at]!]];
        if (word && colour) entries.set(colour, (entries.get(colour) ?? new Set()).add(word));
      }
    }
    return [...entries].map(([colour, its]) => ({ colour, words: [...its].join(", ") }));
  };
  return { phase: keys(strips.state, strips.stateWords), limit: keys(strips.limit, strips.limitWords) };
}

/** Flows of a run for the figure of throughput against delay; `pinned` ones are grey. */
export interface Outcome {
  flows: FlowSummary[];
  pinned: boolean;
}

/** Throughput against delay: a point for each flow, or for each algorithm where there are many flows; none without figures. */
export function tradeoffOf(outcomes: readonly Outcome[], words: string, dark: boolean) {
  const flows = outcomes.flatMap((outcome) => outcome.flows.map((flow) => ({ flow, pinned: outcome.pinned })));
  const rows = flows.filter(({ flow }) => flow.goodput_bps && flow.rtt_ms?.p50);
  if (!rows.length) return null;
  const looks = looksOf(rows.map(({ flow }) => flow.cc), dark);
  const groups = new Map<string, { flow: FlowSummary; look: { colour: string; dash: number[] } }[]>();
  rows.forEach(({ flow, pinned }, at) => {
    const name = `${rows.length > NAMED ? flow.cc : flow.label}${pinned ? ", pinned" : ""}`;
    const look = pinned ? { colour: named("grey", dark), dash: [1, 0] } : looks[at]!;
    groups.set(name, [...(groups.get(name) ?? []), { flow, look }]);
  });
  const { divisor, axis: y } = axisOf("goodput", Math.max(...rows.map(({ flow }) => flow.goodput_bps!)));
  const { axis: x } = axisOf("rtt", Math.max(...rows.map(({ flow }) => Math.max(flow.rtt_ms!.p50!, flow.rtt_ms!.p95 ?? 0))));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const clouds = [...groups].map(([name, members]) => {
    const xs = members.map(({ flow }) => flow.rtt_ms!.p50!);
    const ys = members.map(({ flow }) => flow.goodput_bps! / divisor);
    const middle = [mean(xs), mean(ys)] as const;
    const [{ flow, look }] = members as [(typeof members)[0]];
    // A line from the 5th to the 95th percentile of the round trips.
    const ends = members.length === 1 ? [flow.rtt_ms!.p5, flow.rtt_ms!.p95].filter((end) => end !== null) : [];
    return {
      label: members.length > 1 ? `${name} (${members.length} flows)` : name, note: `${digits(middle[0])} ms, ${digits(middle[1])} ${y.unit}`, ...look,
      points: { xs, ys }, ellipse: { xs: ends, ys: ends.map(() => middle[1]) }, middle,
    };
  });
  return { title: "Throughput against delay", words, x, y: { ...y, high: y.high * 1.05 }, clouds, corner: "↖ better", rule: null };
}

/** Each flow's part of the goodput of all. */
export function sharesOf(goodput: readonly Line[]): Line[] {
  const count = (goodput[0]?.length ?? 0) / 4;
  const made = goodput.map(() => new Float64Array(4 * count).fill(Number.NaN));
  const now = goodput.map(() => 0);
  let known = count - 1;
  while (known >= 0 && goodput.every((line) => Number.isNaN(line[4 * known]!))) known--;
  for (let x = 0; x <= known; x++) {
    goodput.forEach((line, at) => {
      if (!Number.isNaN(line[4 * x + 3]!)) now[at] = line[4 * x + 3]!;
    });
    const sum = now.reduce((a, b) => a + b, 0);
    if (sum > 0) now.forEach((value, at) => made[at]!.fill(value / sum, 4 * x, 4 * x + 4));
  }
  return made;
}

/** The Chiu–Jain plane: the goodput of two flows against each other. */
export function drawPlane(host: HTMLElement, side: number, it: Picture, words: string, dark: boolean) {
  const [a, b] = it.lines.goodput as [Line, Line];
  const rates = ratesOf(it.queues);
  const limits = "shared" in rates ? [rates.shared ?? 0] : rates.each.map((rate) => rate ?? 0);
  const { divisor, axis } = axisOf("goodput", Math.max(greatestOf([a, b]), ...limits));
  const of = (flow: number) => ({ ...axis, title: `${axis.title} of ${it.flows[flow]!.label}` });
  host.replaceChildren();
  const plot = frame({ title: "One goodput against the other", words }, host, side, side, of(0), of(1));
  plot.grid();
  const place = (x: number, y: number) => `${plot.x.at(x).toFixed(1)} ${plot.y.at(y).toFixed(1)}`;
  const line = (from: string, to: string) => mark("path", { class: "rule", d: `M${from}L${to}` }, plot.svg);
  line(place(0, 0), place(axis.high, axis.high));
  const [first, second] = limits.map((rate) => rate / divisor) as [number, number?];
  if (second === undefined) {
    if (first) line(place(0, first), place(first, 0));
  } else {
    // Two bottlenecks: each flow may fill its own.
    if (first) line(place(first, 0), place(first, axis.high));
    if (second) line(place(0, second), place(axis.high, second));
  }
  const points = Array.from({ length: a.length / 4 }, (_, x) => [valueAtPixel(a, x) / divisor, valueAtPixel(b, x) / divisor] as const);
  const d = points.filter(([x, y]) => !Number.isNaN(x + y)).map(([x, y]) => `M${place(x, y)}h.1`).join("");
  mark("path", { class: "curve", d, stroke: named("ink", dark), "stroke-width": 2.5, "stroke-linecap": "round" }, plot.svg);
}
