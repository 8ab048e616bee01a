// The core of this thread, for what the page asks between runs: the parts of a word, the appearance of charts, the verdict on a quiz.
// Runs are the worker's.
import type { Core } from "dragstrip-core";

let instance: Core | null = null;

/** Takes the core, once it is compiled. */
export function provide(core: Core) {
  instance = core;
}

/** The core; null until it is compiled. */
export const rules = (): Core | null => instance;
