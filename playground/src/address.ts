// The address: the race as a link, the history of changes, and whether a link's recording is that of this version.
import { type ReadonlySignal, batch, signal } from "@preact/signals";
import { experimentOf, fragmentOfExperiment } from "./catalogue";
import { Refused, fragmentOf, keptVersion, linkOf } from "./link";
import type { Race } from "./race";
import type { Session } from "./session";

const SETTLED_MS = 500;
const LATER_MS = 2_000;

/** A message about the link, and the page of the version that made it, where the site has one. */
interface Warning {
  text: string;
  page: string;
}

const NONE: Warning = { text: "", page: "" };

export type Address = ReturnType<typeof createAddress>;

export function createAddress(race: Race, session: Session) {
  const warning = signal(NONE);
  /** The recording that the link promises. */
  let promise: { version: string; hash: string; fragment: string } | null = null;
  /** The race has changed since the last entry of the history. */
  let changed = false;
  let timer = 0;

  function write(push: boolean) {
    if (race.scenarios.value) return;
    if (push) changed = false;
    const name = race.experiment.value;
    const fragment = name ? fragmentOfExperiment(name, race.pick.value) : fragmentOf(race.form.value, session.version.value, session.hash.value);
    if (fragment === location.hash) return;
    try {
      history[push ? "pushState" : "replaceState"](null, "", fragment);
    } catch {
      // Safari takes a hundred changes of the address in 30 s.
      clearTimeout(timer);
      timer = window.setTimeout(() => write(push), LATER_MS);
    }
  }

  /** The race is no longer that of the link. */
  function leaveLink() {
    warning.value = NONE;
    promise = null;
  }

  /** Opens the race of the address; false if it has none. */
  function read(): boolean {
    try {
      const run = experimentOf(location.hash);
      if (run) {
        batch(() => {
          race.openExperiment(run.name, run.pick);
          session.showWhole();
          session.clearProblems();
          leaveLink();
        });
        return true;
      }
      const link = linkOf(location.hash);
      if (!link) return false;
      batch(() => {
        race.openForm(link.form);
        session.showWhole();
        leaveLink();
      });
      promise = { version: link.version, hash: link.hash, fragment: location.hash };
      return true;
    } catch (error) {
      warning.value = { text: error instanceof Refused ? error.message : String(error), page: "" };
      return false;
    }
  }

  return {
    warning: warning as ReadonlySignal<Warning>,
    read,
    leaveLink,
    /** Writes the race into the address; an entry of the history where it changed since the last one. */
    update: () => write(changed),
    /** Writes the race into the address without an entry of the history. */
    replace: () => write(false),
    /** Writes the race into the address as an entry of the history. */
    push: () => write(true),
    /** Writes the race when no change has come for a while, and then calls `settled`. */
    updateSoon(settled: () => void) {
      changed = true;
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        write(changed);
        settled();
      }, SETTLED_MS);
    },
    /** Warns where the recording is not the one that the link promises. */
    compare(sha256: string) {
      if (!promise?.hash || sha256.startsWith(promise.hash)) return;
      const version = session.version.value;
      const page = keptVersion(promise.version, version);
      warning.value = {
        text: `This link was made by version ${promise.version || "unknown"} with recording ${promise.hash}…; version ${version} gives ${sha256.slice(0, 8)}….`,
        page: page && page + promise.fragment,
      };
    },
    /** Opens the race of each entry of the history that somebody returns to; `openFirst` that of an empty address. */
    follow(opened: () => void, openFirst: () => void) {
      addEventListener("popstate", () => {
        clearTimeout(timer);
        changed = false;
        if (read()) opened();
        else if (location.hash === "") openFirst();
      });
    },
  };
}
