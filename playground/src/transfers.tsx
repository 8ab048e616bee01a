// Completion times of a run's transfers by size, measured as a claim on `fct_s_p99` measures them.
import { useState } from "preact/hooks";
import { digits } from "../../python/dragstrip/report/viewer/data.js";
import type { Problem } from "./form";
import type { Picture } from "./protocol";
import { rules } from "./rules";
import { Term } from "./term";

const MEASURES = ["fct_s_p50", "fct_s_p99", "fct_slowdown_p50", "fct_slowdown_p99", "fct_unfinished"];

interface Answer {
  figure: number | null;
  unit: string;
  transfers: number;
}

/** The figure in words, or the refusal of the core. */
export function answerOf(summary: Picture["measures"], measure: string, above: string, upTo: string): { text: string; isWrong: boolean } {
  try {
    const { figure, unit, transfers }: Answer = JSON.parse(rules()!.transfers_figure(JSON.stringify(summary), measure, above, upTo));
    const value = figure === null ? "nothing to measure" : `${digits(figure)}${unit === "1" ? "" : ` ${unit}`}`;
    return { text: `${value} (${transfers} ${transfers === 1 ? "flow" : "flows"})`, isWrong: false };
  } catch (thrown) {
    if (typeof thrown !== "string") throw thrown;
    const problems = JSON.parse(thrown) as Problem[];
    return { text: problems.map((it) => `${it.field} ${it.value}: expected ${it.expected}`).join("; "), isWrong: true };
  }
}

/** The measures of flows with a size; nothing where no flow has one. */
export function Transfers({ picture }: { picture: Picture }) {
  const [measure, setMeasure] = useState("fct_s_p99");
  const [above, setAbove] = useState("");
  const [upTo, setUpTo] = useState("");
  if (!picture.measures.flows.some((flow) => flow.transfer)) return null;
  const { text, isWrong } = answerOf(picture.measures, measure, above, upTo);
  const bounds = [above && `size_above = ${JSON.stringify(above)}`, upTo && `size_up_to = ${JSON.stringify(upTo)}`].filter(Boolean).join(", ");
  return (
    <section class="transfers" aria-label="Flow completion times">
      <h2><Term name="FCT">Flow completion times</Term></h2>
      <div class="row">
        <label>Measure <input id="fct" class="name" list="fct-measures" value={measure} spellcheck={false} onInput={(it) => setMeasure(it.currentTarget.value.trim())} /></label>
        <datalist id="fct-measures">{MEASURES.map((it) => <option key={it} value={it} />)}</datalist>
        <label>larger than <input id="fct-above" class="narrow" value={above} placeholder="any" onInput={(it) => setAbove(it.currentTarget.value.trim())} /></label>
        <label>up to <input id="fct-up-to" class="narrow" value={upTo} placeholder="any" onInput={(it) => setUpTo(it.currentTarget.value.trim())} /></label>
      </div>
      <p class={isWrong ? "wrong" : ""} role="status" id="fct-figure">{text}</p>
      {!isWrong && <p class="note">In a claim: <code>{`metric = ${JSON.stringify(measure)}${bounds && `, where = { ${bounds} }`}`}</code></p>}
    </section>
  );
}
