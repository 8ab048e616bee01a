// Owns all runs: one loop, one pending request. A newer request ends the run before it.
import { type Core, type Lens, type Run, core } from "dragstrip-core";
import type { Problem } from "./form";
import type { FlowFacts, FromWorker, Line, LinkFacts, Look, Picture, Results, ToWorker, View, RunRequest } from "./protocol";
import { queuesOf } from "./queues";
import { bytesOf, unpack } from "./unpack";

const EVENTS = 4_000;
const SLICE_MS = 8;
const PICTURE_MS = 100;
const QUIET_MS = 400;

interface Current {
  request: RunRequest;
  run: Run;
  scenario: string;
  names: string[];
  command: string;
  experiment: Record<string, unknown> | null;
  done: boolean;
  pictured: number;
  hashing: Run | null;
  hashed: boolean;
  packets: number;
  lens: { run: Lens; from: number; links: LinkFacts[] } | null;
  look: Look | null;
}

let module: WebAssembly.Module | null = null;
let pending: RunRequest | null = null;
let current: Current | null = null;
let ticking = false;

const send = (message: FromWorker, transfer: Transferable[] = []) => postMessage(message, { transfer });
const ticks = new MessageChannel();
ticks.port1.onmessage = () => {
  ticking = false;
  step();
};

function tick() {
  if (ticking) return;
  ticking = true;
  ticks.port2.postMessage(0);
}

onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === "core") {
    const compiled = new Promise<Uint8Array<ArrayBuffer>>((done) => done(unpack(bytesOf(data.text)))).then((it) => WebAssembly.compile(it));
    compiled.then(ready).catch((error) => send({ kind: "broken", message: String(error) }));
  } else if (data.kind === "module") {
    ready(data.module);
  } else if (data.kind === "view") {
    if (pending?.id === data.id) pending.view = data.view;
    if (current?.request.id !== data.id) return;
    current.request.view = data.view;
    guarded(data.id, () => picture(current!));
  } else if (data.kind === "look") {
    if (current?.request.id !== data.id) return;
    current.look = data;
    tick();
  } else {
    pending = data;
    tick();
  }
};

function ready(compiled: WebAssembly.Module) {
  module = compiled;
  const first = core(module);
  send({ kind: "ready", module, version: first.version(), names: JSON.parse(first.names()) });
  tick();
}

/** Refusals are JSON lists; all else that is thrown is a trap, after which the instance is never used again. */
function guarded(id: number, act: () => void) {
  try {
    act();
  } catch (thrown) {
    if (typeof thrown === "string") {
      send({ kind: "problems", id, problems: JSON.parse(thrown) as Problem[] });
    } else {
      current = null;
      send({ kind: "trap", id, message: String(thrown) });
    }
  }
}

function begin(request: RunRequest) {
  current?.hashing?.free();
  current?.lens?.run.free();
  current?.run.free();
  current = null;
  const instance: Core = core(module!);
  let scenario = request.scenario ?? "";
  let names: string[] = [];
  let command = "";
  let experiment: Current["experiment"] = null;
  if (request.experiment !== undefined) {
    const experimentRun: { names: string[]; scenario: string } = JSON.parse(instance.runs_of_experiment(request.experiment, request.pick));
    ({ names, scenario } = experimentRun);
    command = request.command ?? "";
  } else if (request.form !== undefined) {
    const formRuns: { command: string; experiment: Record<string, unknown>; runs: { name: string; scenario: string }[] } = JSON.parse(instance.runs_of(request.form));
    names = formRuns.runs.map((it) => it.name);
    ({ command, experiment } = formRuns);
    scenario = formRuns.runs[Math.min(request.pick, formRuns.runs.length - 1)]!.scenario;
  }
  const cost: { verdict: string; packets: number; duration_ns: number } = JSON.parse(instance.cost(scenario));
  if (cost.verdict !== "run" && !request.confirmed) {
    send({ kind: "ask", id: request.id, packets: cost.packets, most: 5e6 });
    return;
  }
  const run = new instance.Run(scenario, instance.picture_interval(cost.duration_ns));
  current = { request, run, scenario, names, command, experiment, done: false, pictured: performance.now(), hashing: null, hashed: false, packets: cost.packets, lens: null, look: null };
  instances.set(current, instance);
}

const instances = new WeakMap<Current, Core>();

function step() {
  if (!module) return;
  if (pending) {
    const request = pending;
    pending = null;
    guarded(request.id, () => begin(request));
  }
  if (current) guarded(current.request.id, () => slice(current!));
}

function slice(it: Current) {
  const id = it.request.id;
  if (it.done && it.look) return looked(it, it.look);
  const run = it.done ? it.hashing : it.run;
  if (!run) return;
  const until = performance.now() + SLICE_MS;
  let progress: { done: boolean; stalled: boolean; fault: Problem | null };
  do progress = JSON.parse(run.advance(Number.MAX_SAFE_INTEGER, EVENTS));
  while (!progress.done && !progress.stalled && !progress.fault && performance.now() < until);
  if (progress.fault) {
    current = null;
    run.free();
    send({ kind: "problems", id, problems: [progress.fault] });
  } else if (progress.stalled) {
    current = null;
    send({ kind: "stalled", id });
  } else if (it.done) {
    if (!progress.done) return tick();
    const sha256 = run.sha256();
    const measured: Results = JSON.parse(run.measures());
    run.free();
    it.hashing = null;
    it.hashed = true;
    send({ kind: "hash", id, sha256, ...measured });
  } else {
    it.done = progress.done;
    if (progress.done || performance.now() - it.pictured > PICTURE_MS) picture(it);
    else send({ kind: "beat" });
    if (!progress.done) return tick();
    // The hash is the shared scenario's, recorded as it says: a second run when nobody waits.
    setTimeout(() => {
      if (current !== it || pending) return;
      guarded(id, () => {
        it.hashing = new (instances.get(it)!.Run)(it.scenario, 0);
        tick();
      });
    }, QUIET_MS);
  }
}

/** Moves the lens on: it goes forwards alone, so that for what lies behind it begins again. */
function looked(it: Current, look: Look) {
  if (it.lens && look.from < it.lens.from) {
    it.lens.run.free();
    it.lens = null;
  }
  if (!it.lens) {
    const run = new (instances.get(it)!.Lens)(it.scenario, look.from);
    it.lens = { run, from: look.from, links: JSON.parse(run.links()) };
  }
  const { run, links } = it.lens;
  const until = performance.now() + SLICE_MS;
  let isThere: boolean;
  do isThere = run.advance(look.to, EVENTS);
  while (!isThere && performance.now() < until);
  if (!isThere) {
    send({ kind: "beat" });
    return tick();
  }
  const rows = run.packets(look.from, look.to);
  it.lens.from = look.from;
  it.look = null;
  send({ kind: "packets", id: look.id, from: look.from, to: look.to, rows, links, full: run.full }, [rows.buffer]);
  tick();
}

function picture(it: Current) {
  const { run, request } = it;
  const flows: FlowFacts[] = JSON.parse(run.flows());
  const links: { link: string; rate_bps: number | null }[] = JSON.parse(run.links());
  const view: View = { ...request.view };
  if (view.to <= view.from) (view.from = 0), (view.to = run.duration_ns);
  const { from, to, pixels } = view;
  const { measures, sentence, marks }: Results = JSON.parse(run.measures());
  const rtt_ns = (measures.flows[0]?.rtt_ms?.p50 ?? 50) * 1e6;
  const window_ns = Math.max(10 * rtt_ns, 5e7);
  const lineOfEach = (series: string): Line[] => flows.map((flow) => run.lines(series, flow.flow, from, to, pixels, window_ns));
  const lines = {
    cwnd: lineOfEach("cwnd"),
    ssthresh: flows.length <= 4 ? lineOfEach("ssthresh") : [],
    rtt: lineOfEach("rtt"),
    goodput: lineOfEach("goodput"),
  };
  const queues = queuesOf(measures.flows, links).map((queue) => {
    const number = links.findIndex(({ link }) => link === queue.link);
    const line = (series: string): Line => run.lines(series, number, from, to, pixels, 0);
    return { ...queue, backlog: line("backlog_bytes"), drops: line("dropped") };
  });
  const strip = (series: string) => flows.slice(0, 8).map((flow) => run.strip(series, flow.flow, from, to));
  const strips = {
    limit: strip("limit"),
    state: strip("state"),
    limitWords: JSON.parse(run.words("limit")),
    stateWords: JSON.parse(run.words("state")),
  };
  const message: Picture = {
    kind: "picture",
    id: request.id,
    done: it.done,
    now: run.now_ns,
    duration: run.duration_ns,
    packets: it.packets,
    view,
    flows,
    queues,
    lines,
    strips,
    measures,
    sentence,
    marks,
    names: it.names,
    command: it.command,
    experiment: it.experiment,
    scenario: it.scenario,
  };
  it.pictured = performance.now();
  send(message);
}
