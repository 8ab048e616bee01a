// The race on the screen: a form, scenarios that `dragstrip play` embedded, or an experiment of the catalogue.
import { type ReadonlySignal, computed, signal } from "@preact/signals";
import { contentOf } from "./catalogue";
import { FIRST, type Form, fromOptions, toJson } from "./form";
import type { Request } from "./session";

interface Scenario {
  name: string;
  scenario: string;
}

export type Race = ReturnType<typeof createRace>;

/** Creates the race, the page's example. Its signals have no other writer. */
export function createRace() {
  const form = signal<Form>(FIRST);
  const scenarios = signal<Scenario[] | null>(null);
  const title = signal("");
  const experiment = signal("");
  const pick = signal(0);
  return {
    form: form as ReadonlySignal<Form>,
    /** The embedded scenarios, which the form does not describe; null where there are none. */
    scenarios: scenarios as ReadonlySignal<Scenario[] | null>,
    /** The title of the embedded scenarios. */
    title: title as ReadonlySignal<string>,
    /** True where the form describes the race. */
    isForm: computed(() => scenarios.value === null && experiment.value === ""),
    /** The name of the catalogue's experiment; empty where the race is not one. */
    experiment: experiment as ReadonlySignal<string>,
    /** The number of the run among those of the race, from 0. */
    pick: pick as ReadonlySignal<number>,
    /** Changes fields of the form, which is the race from now on. */
    edit(fields: Partial<Form>) {
      form.value = { ...form.value, ...fields };
      if (scenarios.value || experiment.value) pick.value = 0;
      scenarios.value = null;
      experiment.value = "";
    },
    openForm(link: Form) {
      form.value = link;
      scenarios.value = null;
      experiment.value = "";
      pick.value = 0;
    },
    /** Opens an experiment of the catalogue; with an empty name it returns to the form. */
    openExperiment(name: string, number: number) {
      experiment.value = name;
      pick.value = number;
      scenarios.value = null;
    },
    /** Opens the race that `dragstrip play` put into the page, else the page's example. */
    openEmbedded() {
      const race = JSON.parse(document.getElementById("dragstrip-race")?.textContent || "null");
      experiment.value = "";
      pick.value = 0;
      form.value = race?.kind === "form" ? fromOptions(race.form) : FIRST;
      scenarios.value = race?.kind === "runs" ? race.runs : null;
      title.value = race?.kind === "runs" ? String(race.title ?? "") : "";
    },
    choose: (number: number) => (pick.value = number),
    request(): Request {
      const number = pick.value;
      const name = experiment.value;
      if (name) return { experiment: contentOf(name)!, command: `dragstrip run ${name}`, pick: number };
      if (scenarios.value) return { scenario: scenarios.value[number]!.scenario, pick: number };
      return { form: toJson(form.value), pick: number };
    },
  };
}
