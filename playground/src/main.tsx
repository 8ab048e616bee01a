import { batch, effect, signal } from "@preact/signals";
import { core } from "dragstrip-core";
import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { cursor as slider } from "../../python/dragstrip/report/viewer/cursor.js";
import { digits } from "../../python/dragstrip/report/viewer/data.js";
import { EDGE, panels } from "../../python/dragstrip/report/viewer/timelines.js";
import { LEFT, drawPlane, figureOf } from "./draw";
import {
  FIRST, type Form, type Problem, STEPS, TEXTS, type TextField, flowOf, fromOptions, limitOf, movedTo, place, rough, spoken,
  textOf, toJson, withLimit, words,
} from "./form";
import { CatalogueChoice, CataloguePanel, contentOf, experimentOf, fragmentOfExperiment, opened } from "./catalogue";
import { Lens, forgotten, seen } from "./lens";
import { ABOUT } from "./options";
import { LessonChoice, LessonPanel, ran } from "./lessons";
import { Refused, fragmentOf, linkOf, keptVersion } from "./link";
import { citationOf, pythonOf, tomlOf } from "./copies";
import { provide } from "./rules";
import { Programs, isMarked, programsOf } from "./program";
import type { FromWorker, Picture, ToWorker } from "./protocol";
import PlayWorker from "./worker?worker&inline";
import "../../python/dragstrip/report/viewer/chart.css";
import "./style.css";

/** Looks of half a second each. A blocked page delays the looks as well as the messages, and so ends no run. */
const SILENT_LOOKS = 20;
const SETTLED_MS = 500;
const LATER_MS = 2_000;

const form = signal<Form>(FIRST);
/** A race that is no form: scenarios that `dragstrip play` embedded. */
const fixed = signal<{ name: string; scenario: string }[] | null>(null);
const pick = signal(0);
const problems = signal<Problem[]>([]);
const notice = signal("");
const banner = signal("");
/** Where the page of the version is that made a link whose recording differs, if the site has it. */
const madeBy = signal("");
const asking = signal<number | null>(null);
const picture = signal<Picture | null>(null);
const pinned = signal<Picture | null>(null);
const view = signal({ from: 0, to: 0 });
const cursor = signal<number | null>(null);
const pixels = signal(800);
const hash = signal("");
const version = signal("");
const names = signal<{ algorithms: string[]; queues: { name: string; example: string }[] }>({ algorithms: [], queues: [] });
const spokenNow = signal("");
const dark = signal(matchMedia("(prefers-color-scheme: dark)").matches);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (it) => (dark.value = it.matches));

// ---- The worker, its request and its watchdog.
let module: WebAssembly.Module | null = null;
let worker: Worker | null = null;
let latest = 0;
let silent = 0;
let waiting = false;
/** The worker has its core: a slow machine may take long for that. */
let ready = false;
let asked = false;
let claimed: { version: string; hash: string; fragment: string } | null = null;

const tell = (message: ToWorker) => worker?.postMessage(message);

function start() {
  ready = false;
  worker = new PlayWorker();
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => hear(data);
  tell(module ? { kind: "module", module } : { kind: "core", text: document.getElementById("dragstrip-core")!.textContent! });
}

function hear(told: FromWorker) {
  silent = 0;
  if (told.kind === "broken") {
    notice.value = `The simulator cannot start: ${told.message}`;
    return;
  }
  if (told.kind === "ready") {
    ready = true;
    module = told.module;
    provide(core(module));
    version.value = told.version;
    names.value = { algorithms: told.names.algorithms.map((it) => it.name), queues: told.names.queues };
    return;
  }
  if (told.kind === "beat" || told.id !== latest) return;
  if (told.kind === "picture") {
    waiting = !told.done;
    batch(() => {
      problems.value = [];
      // The whole recording's figures, which come with its hash, are finer than those of a picture.
      const last = hash.value ? picture.value : null;
      picture.value = last ? { ...told, measures: last.measures, sentence: last.sentence, marks: last.marks } : told;
      if (told.done) notice.value = "";
    });
    return;
  }
  if (told.kind === "packets") return seen(told);
  if (told.kind === "hash") {
    const { measures, sentence, marks } = told;
    batch(() => {
      if (picture.value) picture.value = { ...picture.value, measures, sentence, marks };
      hash.value = told.sha256;
    });
    if (picture.value?.done && !opened.value) ran(picture.value, form.value, told.sha256);
    const it = claimed;
    if (it?.hash && !told.sha256.startsWith(it.hash)) {
      const place = keptVersion(it.version, version.value);
      madeBy.value = place && place + it.fragment;
      banner.value = `This link was made by version ${it.version || "unknown"} with recording ${it.hash}…; version ${version.value} gives ${told.sha256.slice(0, 8)}….`;
    }
    // Whichever comes first, this or the pause after a change, makes the entry.
    remember(changed);
    return;
  }
  waiting = false;
  if (told.kind === "problems") problems.value = told.problems;
  else if (told.kind === "ask") asking.value = told.packets;
  else if (told.kind === "stalled") notice.value = "Refused: 100,000 events without a simulated millisecond.";
  else {
    notice.value = `The core has failed: ${told.message}. The address holds the race that did it.`;
    remember(changed);
    worker?.terminate();
    start();
  }
}

setInterval(() => {
  silent += 1;
  if (!ready || !waiting || silent <= SILENT_LOOKS) return;
  waiting = false;
  worker?.terminate();
  start();
  notice.value = "Stopped: no answer for 10 s. The last picture stays.";
}, 500);

/** What runs still say that were asked for before is no longer heard. */
function outdated() {
  latest += 1;
  hash.value = "";
}

function ask() {
  if (!worker) return;
  outdated();
  forgotten();
  asking.value = null;
  const what = opened.value ? { experiment: contentOf(opened.value)!, command: `dragstrip run ${opened.value}` } : fixed.value ? { scenario: fixed.value[pick.value]!.scenario } : { form: toJson(form.value) };
  if (!waiting) silent = 0;
  waiting = true;
  tell({ kind: "run", id: latest, ...what, pick: pick.value, asked, view: { ...view.value, pixels: pixels.value } });
  asked = false;
}

// ---- The form, its address and its history.
/** The form has changed since the last entry of the history. */
let changed = false;
let settle = 0;
let frame = 0;

function remember(push: boolean) {
  if (fixed.value) return;
  if (push) changed = false;
  const fragment = opened.value ? fragmentOfExperiment(opened.value, pick.value) : fragmentOf(form.value, version.value, hash.value);
  if (fragment === location.hash) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", fragment);
  } catch {
    // Safari takes a hundred changes of the address in 30 s.
    clearTimeout(settle);
    settle = window.setTimeout(() => remember(push), LATER_MS);
  }
}

function change(more: Partial<Form>) {
  batch(() => {
    outdated();
    form.value = { ...form.value, ...more };
    fixed.value = null;
    if (opened.value) pick.value = 0;
    opened.value = "";
    view.value = { from: 0, to: 0 };
    banner.value = "";
  });
  claimed = null;
  changed = true;
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(ask);
  clearTimeout(settle);
  settle = window.setTimeout(() => {
    remember(changed);
    const now = picture.value;
    if (now) spokenNow.value = said(now);
  }, SETTLED_MS);
}

/** Opens an experiment of the catalogue; with no name it goes back to the form. */
function open(name: string, number = 0) {
  batch(() => {
    opened.value = name;
    pick.value = number;
    fixed.value = null;
    view.value = { from: 0, to: 0 };
    banner.value = "";
    problems.value = [];
  });
  claimed = null;
}

/** Takes the race from the address; false if it has none. */
function fromAddress(): boolean {
  try {
    const run = experimentOf(location.hash);
    if (run) {
      open(run.name, run.pick);
      return true;
    }
    const link = linkOf(location.hash);
    if (!link) return false;
    claimed = { ...link, fragment: location.hash };
    batch(() => {
      form.value = link.form;
      fixed.value = null;
      opened.value = "";
      pick.value = 0;
      view.value = { from: 0, to: 0 };
      banner.value = "";
    });
    return true;
  } catch (error) {
    madeBy.value = "";
    banner.value = error instanceof Refused ? error.message : String(error);
    return false;
  }
}

addEventListener("popstate", () => {
  clearTimeout(settle);
  changed = false;
  if (fromAddress()) ask();
});

function embedded() {
  const race = JSON.parse(document.getElementById("dragstrip-race")?.textContent || "null");
  if (race?.kind === "form") form.value = fromOptions(race.form);
  else if (race?.kind === "runs") fixed.value = race.runs;
}

// ---- Views.
const mbit = (bps: number | null | undefined) => (bps == null ? "–" : digits(bps / 1e6));

function said(it: Picture): string {
  const rates = it.measures.flows.map((flow) => `${flow.label} ${mbit(flow.goodput_bps)}`);
  const shown = rates.length > 8 ? [...rates.slice(0, 8), `${rates.length - 8} more`] : rates;
  const ping = it.measures.probes[0]?.rtt_ms?.p50;
  return `${shown.join(", ")} Mbit/s${ping ? `; ping ${digits(ping)} ms` : ""}. ${it.sentence}`;
}

function Problems({ field }: { field: string }) {
  const found = problems.value.filter((it) => it.field.split(/[.[]/)[0] === field);
  return <p class="wrong" id={`wrong-${field}`}>{found.map((it) => `${it.value}: expected ${it.expected}`).join("; ")}</p>;
}

const broken = (field: string) => problems.value.some((it) => it.field.split(/[.[]/)[0] === field);

interface FieldProps {
  field: TextField;
  label: string;
  kind?: "rate" | "time" | "percent";
  least?: number;
  greatest?: number;
}

function Field({ field, label, kind, least = 1, greatest = 1 }: FieldProps) {
  const text = form.value[field];
  const value = kind ? rough(kind, text) : null;
  return (
    <div class="field">
      <label for={field}>{label}</label>
      <div class="row">
        {kind && (
          <input
            type="range" min="0" max={STEPS} step="1" aria-label={`${label}, slider`} aria-valuetext={spoken(text)}
            value={value === null ? 0 : place(value, least, greatest)}
            onInput={(it) => change({ [field]: words(kind, movedTo(Number(it.currentTarget.value), value ?? least, least, greatest)) })}
          />
        )}
        <input
          id={field} class={kind ? "narrow" : ""} value={text} placeholder="none" autocomplete="off" spellcheck={false}
          aria-invalid={broken(field)} aria-describedby={`wrong-${field}`} title={ABOUT[field]}
          onInput={(it) => change({ [field]: it.currentTarget.value.trim() })}
        />
      </div>
      <Problems field={field} />
    </div>
  );
}

/** The limit after its slider was moved to a place; a key moves it by a packet at least. */
function packetsAt(at: number, limit: number): number {
  const to = Math.round(movedTo(at, limit, 2, 10_000));
  const by = Math.sign(at - place(limit, 2, 10_000));
  return to === limit ? Math.min(10_000, Math.max(2, limit + by)) : to;
}

function Queue() {
  const text = form.value.queue;
  const limit = limitOf(text);
  return (
    <div class="field">
      <label for="queue">Queue</label>
      <div class="row">
        <select
          aria-label="Queue discipline" value={text.split(" ")[0]}
          onChange={(it) => {
            const name = it.currentTarget.value;
            change({ queue: name === "pfifo" ? "pfifo limit 100" : (names.value.queues.find((q) => q.name === name)?.example ?? name) });
          }}
        >
          {names.value.queues.map((it) => <option key={it.name}>{it.name}</option>)}
        </select>
        {limit !== null && (
          <input
            type="range" min="0" max={STEPS} aria-label="Queue limit, slider" aria-valuetext={`${limit} packets`} value={place(limit, 2, 10_000)}
            onInput={(it) => change({ queue: withLimit(text, packetsAt(Number(it.currentTarget.value), limit)) })}
          />
        )}
      </div>
      <input
        id="queue" value={text} autocomplete="off" spellcheck={false} aria-invalid={broken("queue")} aria-describedby="wrong-queue"
        onInput={(it) => change({ queue: it.currentTarget.value })}
      />
      <Problems field="queue" />
    </div>
  );
}

function Flows() {
  const { algorithms, together } = form.value;
  const put = (at: number, text: string) => change({ algorithms: algorithms.map((it, number) => (number === at ? text : it)) });
  return (
    <fieldset>
      <legend>Flows</legend>
      {algorithms.map((text, at) => {
        const flow = flowOf(text);
        return (
          <div class="row" key={at}>
            <input aria-label={`Algorithm ${at + 1}`} list="known" value={flow.name} spellcheck={false} aria-invalid={broken("algorithms")}
              onInput={(it) => put(at, textOf({ ...flow, name: it.currentTarget.value }))} />
            <input class="tiny" aria-label={`Count of ${flow.name}`} inputmode="numeric" value={String(flow.count)}
              onInput={(it) => put(at, textOf({ ...flow, count: Math.max(1, Number(it.currentTarget.value) || 1) }))} />
            <input class="tiny" aria-label={`Own RTT of ${flow.name}`} placeholder="RTT" value={flow.rtt}
              onInput={(it) => put(at, textOf({ ...flow, rtt: it.currentTarget.value.trim() }))} />
            <input class="tiny" aria-label={`Start of ${flow.name}`} placeholder="start" value={flow.start}
              onInput={(it) => put(at, textOf({ ...flow, start: it.currentTarget.value.trim() }))} />
            <button type="button" aria-label={`Remove ${flow.name}`} disabled={algorithms.length < 2}
              onClick={() => change({ algorithms: algorithms.filter((_, number) => number !== at) })}>−</button>
          </div>
        );
      })}
      <datalist id="known">{[...Object.keys(programsOf(form.value)), ...names.value.algorithms].map((it) => <option key={it} value={it} />)}</datalist>
      <Problems field="algorithms" />
      <div class="row">
        <button type="button" onClick={() => change({ algorithms: [...algorithms, "reno"] })}>Add a flow</button>
        <label class="row"><input type="checkbox" checked={together} onChange={(it) => change({ together: it.currentTarget.checked })} /> together</label>
      </div>
    </fieldset>
  );
}

/** Asks for another part of the run, in seconds. */
function show(low: number, high: number) {
  const it = picture.value;
  if (!it) return;
  view.value = high - low >= it.duration / 1e9 ? { from: 0, to: 0 } : { from: low * 1e9, to: high * 1e9 };
  tell({ kind: "view", id: latest, view: { ...view.value, pixels: pixels.value } });
}

/** As the keys + - 0 of the cursor, for buttons. */
const press = (key: string) => document.querySelector(".charts .cursor")?.dispatchEvent(new KeyboardEvent("keydown", { key }));

/** The charts: what timelines.js of the report draws, with the report's cursor over it. */
function Charts() {
  const ref = useRef<HTMLDivElement>(null);
  const made = useRef<{ inner: HTMLElement; handle: ReturnType<typeof slider>; shown: (time?: number) => void } | null>(null);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => {
      const wide = Math.max(100, Math.floor(ref.current!.clientWidth) - LEFT - EDGE);
      if (wide === pixels.value) return;
      pixels.value = wide;
      tell({ kind: "view", id: latest, view: { ...view.value, pixels: wide } });
    });
    watch.observe(ref.current!);
    const inner = document.createElement("div");
    ref.current!.append(inner);
    const its: NonNullable<typeof made.current> = { inner, handle: slider(ref.current!), shown: () => {} };
    made.current = its;
    const stop = effect(() => its.shown(cursor.value === null ? undefined : cursor.value / 1e9));
    return () => (watch.disconnect(), stop());
  }, []);
  const it = picture.value;
  useLayoutEffect(() => {
    const its = made.current!;
    if (!it) return;
    const old = pinned.value;
    const same = old && old.view.from === it.view.from && old.view.to === it.view.to && old.view.pixels === it.view.pixels;
    its.inner.replaceChildren();
    const { show: follow, reading } = panels(figureOf(it, same ? old : null, said(it), dark.value), its.inner, it.view.pixels + LEFT + EDGE, LEFT);
    const lie = (axis: { low: number; high: number }) => its.handle.place({
      ...reading, axis, whole: { low: 0, high: it.duration / 1e9 },
      moved: (time?: number) => (cursor.value = time === undefined ? null : time * 1e9),
      zoom: (part: { low: number; high: number }) => {
        // Fingers move faster than pictures come: each step goes on from the part that was asked for last.
        lie(part);
        show(part.low, part.high);
      },
    });
    lie(reading.axis);
    its.shown = (time) => (its.handle.show(time), follow(time));
    its.shown(cursor.peek() === null ? undefined : cursor.peek()! / 1e9);
  });
  return (
    <>
      <div class="row">
        <button type="button" aria-label="Zoom in" onClick={() => press("+")}>+</button>
        <button type="button" aria-label="Zoom out" onClick={() => press("-")}>−</button>
        <button type="button" onClick={() => press("0")}>Whole run</button>
        <button type="button" onClick={() => (pinned.value = pinned.value ? null : it)}>{pinned.value ? "Unpin" : "Pin"}</button>
      </div>
      <div class="charts chart" ref={ref} />
      {it && it.flows.length === 2 && <><h2>{`One goodput against the other (diagonal: fair; ${it.queues.length > 1 ? "upright and level: the rate of each flow's bottleneck" : "falling line: the link is full"})`}</h2><Plane it={it} /></>}
    </>
  );
}

function Plane({ it }: { it: Picture }) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => drawPlane(ref.current!, Math.min(320, it.view.pixels), it, said(it), dark.value));
  return <div class="chart plane" ref={ref} />;
}

function Table({ it }: { it: Picture }) {
  return (
    <details>
      <summary>Table</summary>
      <div class="table" tabIndex={0} role="region" aria-label="Measures of each flow">
        <table>
          <thead><tr><th scope="col">Flow</th><th scope="col">Goodput, Mbit/s</th><th scope="col">Share, %</th><th scope="col">RTT p50, ms</th><th scope="col">RTT p95, ms</th><th scope="col">Retransmits</th><th scope="col">Timeouts</th></tr></thead>
          <tbody>
            {it.measures.flows.slice(0, 25).map((flow) => (
              <tr key={flow.label}>
                <th scope="row">{flow.label}</th><td>{mbit(flow.goodput_bps)}</td><td>{flow.share == null ? "–" : (100 * flow.share).toFixed(1)}</td>
                <td>{flow.rtt_ms?.p50 ?? "–"}</td><td>{flow.rtt_ms?.p95 ?? "–"}</td><td>{flow.retransmits ?? "–"}</td><td>{flow.timeouts ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
    notice.value = "Copied.";
  } catch {
    notice.value = text;
  }
}

function App() {
  const it = picture.value;
  const loose = problems.value.filter((p) => !["algorithms", ...TEXTS].includes(p.field.split(/[.[]/)[0]!) && !isMarked(form.value, p));
  const runs = fixed.value?.map((run) => run.name) ?? it?.names ?? [];
  return (
    <>
      <header>
        <h1>Dragstrip</h1>
        <LessonChoice load={change} />
        <CatalogueChoice load={(name) => { open(name); changed = true; remember(true); ask(); }} />
        <div class="row" role="group" aria-label="Copy">
        <span aria-hidden="true">Copy</span>
        <button type="button" aria-label="Copy link" onClick={() => { remember(false); void copy(location.href); }}>link</button>
        <button type="button" disabled={!it?.command} aria-label="Copy command" onClick={() => void copy(it?.command ?? "")}>command</button>
        <button type="button" disabled={fixed.value !== null || opened.value !== ""} aria-label="Copy Python" onClick={() => void copy(pythonOf(form.value))}>Python</button>
        <button type="button" disabled={!it?.experiment} aria-label="Copy TOML" onClick={() => void copy(tomlOf(it!.experiment!))}>TOML</button>
        <button type="button" disabled={!hash.value || !it?.command} aria-label="Copy citation" onClick={() => void copy(citationOf(it!.command, version.value, hash.value))}>citation</button>
        </div>
      </header>
      <div class="layout">
        <form aria-label="Race" onSubmit={(event) => event.preventDefault()}>
          <fieldset>
            <legend>Path</legend>
            <Field field="rate" label="Rate" kind="rate" least={1e5} greatest={1e9} />
            <Field field="rtt" label="RTT" kind="time" least={1e6} greatest={1e9} />
            <Queue />
            <Field field="loss" label="Loss" kind="percent" least={0.001} greatest={20} />
            <Field field="jitter" label="Jitter" kind="time" least={1e5} greatest={1e8} />
            <Field field="netem" label="Impairment (netem)" />
            <Field field="up_rate" label="Rate of the up-link" kind="rate" least={1e5} greatest={1e9} />
            <Field field="up_netem" label="Impairment of the up-link (netem)" />
          </fieldset>
          <Flows />
          <fieldset>
            <legend>Run</legend>
            <Field field="receiver_cc" label="Receivers' congestion control" />
            <Field field="stagger" label="Start one after the other, every" kind="time" least={1e8} greatest={3e10} />
            <Field field="duration" label="Duration" kind="time" least={1e9} greatest={6e11} />
            <Field field="seed" label="Seed" />
          </fieldset>
        </form>
        <main>
          {banner.value && <p class="banner" role="alert">{banner.value}{madeBy.value && <>{" "}<a href={madeBy.value}>Open it in that version</a></>}</p>}
          {opened.value && problems.value.length > 0 && <p class="wrong" role="alert">{`This run does not fit into the page. On the command line: dragstrip run ${opened.value}`}</p>}
          {loose.map((p) => <p class="wrong" key={p.field}>{`${p.field} ${p.value}: expected ${p.expected}`}</p>)}
          {notice.value && <p class="banner" role="status">{notice.value}</p>}
          {asking.value !== null && (
            <p class="banner">{`About ${(asking.value / 1e6).toPrecision(2)} million packets, some ${Math.max(1, Math.round(asking.value / 1e6))} s or more. `}
              <button type="button" onClick={() => { asked = true; ask(); }}>Run it</button></p>
          )}
          <div class="beside">
          <LessonPanel form={form} latest={() => latest} load={change} again={ask} copy={(text) => void copy(text)} version={version.value} />
          <CataloguePanel />
          <div class="race">
          <p class="sentence">{it ? said(it) : "Loading the simulator …"}</p>
          <div class="chips">
            <button type="button" onClick={() => change({ algorithms: ["vegas"], together: false })}>Vegas alone</button>
            <button type="button" onClick={() => change({ queue: "fq_codel" })}>Turn on fq_codel</button>
            <button type="button" onClick={() => change({ queue: "pfifo limit 10" })}>Shrink the buffer</button>
          </div>
          {runs.length > 1 && (
            <label>Run <select value={String(pick.value)} onChange={(event) => { pick.value = Number(event.currentTarget.value); if (opened.value) remember(true); ask(); }}>
              {runs.map((name, at) => <option key={name} value={String(at)}>{name}</option>)}
            </select></label>
          )}
          <Programs form={form} problems={problems.value} change={change} copy={(text) => void copy(text)} />
          {it && <Lens picture={it} latest={() => latest} cursor={cursor} width={it.view.pixels + LEFT + EDGE} dark={dark.value} tell={tell} say={(words) => (spokenNow.value = words)} />}
          <Charts />
          {it && <Table it={it} />}
          <details>
            <summary>How this was made</summary>
            <p><code>{it?.command}</code></p>
            <p>Version {version.value}; recording <code id="hash">{hash.value || "…"}</code></p>
          </details>
          <div class="unseen" role="status" aria-live="polite">{spokenNow.value}</div>
          </div>
          </div>
        </main>
      </div>
    </>
  );
}

render(<App />, document.getElementById("app")!);
effect(() => {
  document.title = picture.value ? `${picture.value.flows.slice(0, 4).map((flow) => flow.label).join(", ")}: Dragstrip` : "Dragstrip: playground";
});
start();
if (!fromAddress()) embedded();
ask();
