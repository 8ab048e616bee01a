// A run in one sentence, and its figures as text.
import { digits } from "../../python/dragstrip/report/viewer/data.js";
import type { Picture } from "./protocol";

/** A rate in Mbit/s, with three digits. */
export const mbit = (bps: number | null | undefined): string => (bps == null ? "–" : digits(bps / 1e6));

/** Goodput of each flow and the probe's median. */
export function figuresOf({ measures }: Picture): string {
  const rates = measures.flows.map((flow) => `${flow.label} ${mbit(flow.goodput_bps)}`);
  const listed = rates.length > 8 ? [...rates.slice(0, 8), `${rates.length - 8} more`] : rates;
  const ping = measures.probes[0]?.rtt_ms?.p50;
  return `${listed.join(", ")} Mbit/s${ping ? `; ping ${digits(ping)} ms` : ""}.`;
}

/** These figures, and the strongest cause. */
export const sentenceOf = (picture: Picture): string => `${figuresOf(picture)} ${picture.sentence}`;
