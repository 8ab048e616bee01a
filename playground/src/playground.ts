// The state of the page, and what changes it: a race, the session that runs it, and its address.
import { type ReadonlySignal, batch, signal } from "@preact/signals";
import { createAddress } from "./address";
import type { Form } from "./form";
import { forget, receive } from "./lens";
import { ran } from "./lessons";
import { createRace } from "./race";
import { provide } from "./rules";
import { sentenceOf } from "./sentence";
import { createSession } from "./session";

/** A race that the form does not describe and that was left, and the way back to it. */
interface Departure {
  name: string;
  back: () => void;
}

export type Playground = ReturnType<typeof createPlayground>;

export function createPlayground() {
  const race = createRace();
  const session = createSession({
    ready: provide,
    requested: forget,
    packets: receive,
    hashed(sha256) {
      const picture = session.picture.value;
      if (picture?.done && !race.experiment.value) ran(picture, race.form.value, sha256);
      address.compare(sha256);
      // Whichever comes first, this or the pause after a change, makes the entry.
      address.update();
    },
    trapped: () => address.update(),
  });
  const address = createAddress(race, session);
  const announcement = signal("");
  const departure = signal<Departure | null>(null);
  let frame = 0;

  const run = (confirmed = false) => session.run(race.request(), confirmed);
  const announce = (words: string) => (announcement.value = words);

  /** Notes that the race on the screen is left for the form's, where it is another. */
  function depart() {
    if (race.isForm.value) return;
    const [name, number] = [race.experiment.value, race.pick.value];
    const back = name ? () => openExperiment(name, number) : openEmbedded;
    departure.value = { name: name || race.title.value || "the runs of the file", back };
  }

  function openEmbedded() {
    batch(() => {
      race.openEmbedded();
      departure.value = null;
      session.showWhole();
      session.clearProblems();
      address.leaveLink();
    });
    run();
  }

  /** Changes the form, and runs it with the next frame. */
  function change(fields: Partial<Form>) {
    batch(() => {
      depart();
      session.supersede();
      race.edit(fields);
      session.showWhole();
      address.leaveLink();
    });
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => run());
    address.updateSoon(() => {
      const picture = session.picture.value;
      if (picture) announce(sentenceOf(picture));
    });
  }

  /** Opens an experiment of the catalogue; with an empty name it returns to the form. */
  function openExperiment(name: string, number = 0) {
    batch(() => {
      if (name) departure.value = null;
      else depart();
      race.openExperiment(name, number);
      session.showWhole();
      session.clearProblems();
      address.leaveLink();
    });
    address.push();
    run();
  }

  /** Chooses another run of the race, from 0. */
  function choose(number: number) {
    race.choose(number);
    if (race.experiment.value) address.push();
    run();
  }

  async function copy(text: string) {
    try {
      await navigator.clipboard.writeText(text);
      session.notify("Copied.");
    } catch {
      session.notify(text);
    }
  }

  function start() {
    address.follow(() => ((departure.value = null), run()), openEmbedded);
    session.start();
    if (!address.read()) race.openEmbedded();
    run();
  }

  return {
    race,
    session,
    address,
    /** Text for a screen reader. */
    announcement: announcement as ReadonlySignal<string>,
    announce,
    /** The race that was left for the form's; null where none was. */
    departure: departure as ReadonlySignal<Departure | null>,
    run,
    change,
    openExperiment,
    choose,
    copy: (text: string) => void copy(text),
    start,
  };
}
