// The worker that runs races: requests to it, its answers as signals, and a watchdog that replaces it.
import { type ReadonlySignal, batch, signal } from "@preact/signals";
import { type Core, core } from "dragstrip-core";
import type { Problem } from "./form";
import type { FromWorker, Look, Names, Packets, Picture, ToWorker, View, RunRequest } from "./protocol";
import PlayWorker from "./worker?worker&inline";

/** Ticks of half a second each. A blocked page delays the ticks as well as the messages, and so ends no run. */
const SILENT_TICKS = 20;
const TICK_MS = 500;

/** A race, and the number of its run. */
export type Request = Pick<RunRequest, "form" | "scenario" | "experiment" | "command" | "pick">;

interface Listener {
  /** The core is compiled. */
  ready: (core: Core) => void;
  /** Another run is requested: answers about the run before it are no longer of use. */
  requested: () => void;
  packets: (packets: Packets) => void;
  /** The whole recording has its hash. */
  hashed: (sha256: string) => void;
  /** The core trapped; the worker is about to be replaced. */
  trapped: () => void;
}

export type Session = ReturnType<typeof createSession>;

/** Creates the session. Its signals have no other writer; `start` starts the worker. */
export function createSession(listener: Listener) {
  const picture = signal<Picture | null>(null);
  const hash = signal("");
  const problems = signal<Problem[]>([]);
  const notice = signal("");
  const asking = signal<number | null>(null);
  const version = signal("");
  const names = signal<Names>({ algorithms: [], queues: [], paths: [], media: [], workloads: [] });
  const view = signal<View>({ from: 0, to: 0, pixels: 800 });

  let module: WebAssembly.Module | null = null;
  let worker: Worker | null = null;
  /** The number of the newest request: answers to others are ignored. */
  let latest = 0;
  let silentTicks = 0;
  let waiting = false;
  /** The worker has its core: a slow machine may take long for that. */
  let ready = false;

  const post = (message: ToWorker) => worker?.postMessage(message);

  function start() {
    ready = false;
    worker = new PlayWorker();
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => receive(data);
    post(module ? { kind: "module", module } : { kind: "core", text: document.getElementById("dragstrip-core")!.textContent! });
  }

  function restart() {
    worker?.terminate();
    start();
  }

  function receive(message: FromWorker) {
    silentTicks = 0;
    if (message.kind === "broken") {
      notice.value = `The simulator cannot start: ${message.message}`;
      return;
    }
    if (message.kind === "ready") {
      ready = true;
      module = message.module;
      listener.ready(core(module));
      version.value = message.version;
      names.value = message.names;
      return;
    }
    if (message.kind === "beat" || message.id !== latest) return;
    if (message.kind === "picture") {
      waiting = !message.done;
      batch(() => {
        problems.value = [];
        // The whole recording's figures, which come with its hash, are finer than those of a picture.
        const last = hash.value ? picture.value : null;
        picture.value = last ? { ...message, measures: last.measures, sentence: last.sentence, marks: last.marks } : message;
        if (message.done) notice.value = "";
      });
      return;
    }
    if (message.kind === "packets") return listener.packets(message);
    if (message.kind === "hash") {
      const { measures, sentence, marks } = message;
      batch(() => {
        if (picture.value) picture.value = { ...picture.value, measures, sentence, marks };
        hash.value = message.sha256;
      });
      listener.hashed(message.sha256);
      return;
    }
    waiting = false;
    if (message.kind === "problems") problems.value = message.problems;
    else if (message.kind === "ask") asking.value = message.packets;
    else if (message.kind === "stalled") notice.value = "Refused: 100,000 events without a simulated millisecond.";
    else {
      notice.value = `The core has failed: ${message.message}. The address holds the race that did it.`;
      listener.trapped();
      restart();
    }
  }

  setInterval(() => {
    silentTicks += 1;
    if (!ready || !waiting || silentTicks <= SILENT_TICKS) return;
    waiting = false;
    restart();
    notice.value = "Stopped: no answer for 10 s. The last picture stays.";
  }, TICK_MS);

  /** Ignores answers to the requests until now. */
  function supersede() {
    latest += 1;
    hash.value = "";
  }

  /** Requests a run; `confirmed`: also one so long that the page asks first. */
  function run(request: Request, confirmed: boolean) {
    if (!worker) return;
    supersede();
    listener.requested();
    asking.value = null;
    if (!waiting) silentTicks = 0;
    waiting = true;
    post({ kind: "run", id: latest, ...request, confirmed, view: view.value });
  }

  /** Requests another part of the run, or another width of its picture. */
  function show(part: Partial<View>) {
    view.value = { ...view.value, ...part };
    post({ kind: "view", id: latest, view: view.value });
  }

  return {
    picture: picture as ReadonlySignal<Picture | null>,
    /** The hash of the whole recording; empty until it is computed. */
    hash: hash as ReadonlySignal<string>,
    problems: problems as ReadonlySignal<Problem[]>,
    notice: notice as ReadonlySignal<string>,
    /** The packets of a run that waits for consent; null where none does. */
    asking: asking as ReadonlySignal<number | null>,
    version: version as ReadonlySignal<string>,
    names: names as ReadonlySignal<Names>,
    view: view as ReadonlySignal<View>,
    start,
    run,
    supersede,
    show,
    /** The next run is shown whole. */
    showWhole: () => (view.value = { ...view.value, from: 0, to: 0 }),
    /** Requests packets. */
    look: (request: Look) => post(request),
    latest: () => latest,
    clearProblems: () => (problems.value = []),
    notify: (text: string) => (notice.value = text),
  };
}
