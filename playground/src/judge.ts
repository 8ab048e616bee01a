// What a lesson is, and what makes an answer right: the same rules as python/dragstrip/playground/lessons.
import found from "virtual:lessons";
import { type Form, fromOptions, toJson } from "./form";
import type { Summary } from "./protocol";

export type Options = Record<string, unknown>;

export interface Lesson {
  title: string;
  sources: string[];
  why: string;
  start: Options;
  bet: { question: string; unit: string; measure: string; scale: number };
  see: { text: string; columns: { name: string }[]; rows: { set: Options; shown: string[] }[] };
  break: { label: string; set: Options }[];
  quiz: {
    question: string;
    set?: Options;
    /** Of a run: the options that an answer may change. */
    free?: string[];
    conditions?: { measure: string; least?: number; most?: number }[];
    /** Of a number: how far it may be off, as a part. */
    within?: number;
    measure?: string;
    scale?: number;
    unit?: string;
    right: unknown;
    wrong: unknown;
  };
}

export const lessons = found as Lesson[];

/** A figure by its path, such as `flows.0.share`; `goodput_bps` is that of all flows, `ping_ms` the median. */
export function measured(summary: Summary, measure: string): number | null {
  if (measure === "goodput_bps") return summary.flows.reduce((sum, flow) => sum + (flow.goodput_bps ?? 0), 0);
  let at: unknown = summary;
  for (const word of (measure === "ping_ms" ? "probes.0.rtt_ms.p50" : measure).split("."))
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[word] : null;
  return typeof at === "number" ? at : null;
}

/** Whether the run (and of a quiz about a number: that number) answers the quiz. */
export function right({ quiz }: Lesson, summary: Summary, number: number): boolean {
  if (quiz.within !== undefined) {
    const value = measured(summary, quiz.measure!);
    return value !== null && Math.abs(number - value / quiz.scale!) <= quiz.within * (value / quiz.scale!);
  }
  return quiz.conditions!.every(({ measure, least, most }) => {
    const value = measured(summary, measure);
    return value !== null && (least ?? value) <= value && value <= (most ?? value);
  });
}

/** The answer to hand in: a number, or the free options of the form; null if the form differs in others too. */
export function answerOf({ start, quiz }: Lesson, form: Form, number: number): unknown {
  if (quiz.within !== undefined) return number;
  const options = (it: Form): Options => JSON.parse(toJson(it));
  const [its, base] = [options(form), options(fromOptions({ ...start, ...quiz.set }))];
  const answer: Options = {};
  for (const key of new Set([...Object.keys(its), ...Object.keys(base)])) {
    if (quiz.free!.includes(key)) answer[key] = its[key];
    else if (key !== "together" && JSON.stringify(its[key]) !== JSON.stringify(base[key])) return null;
  }
  return answer;
}

/** What a student hands in: a line for each lesson. */
export function answersOf(version: string, answers: Record<number, { answer: unknown; recording: string }>): string {
  const lines = Object.entries(answers).map(([number, it]) => JSON.stringify({ lesson: Number(number), ...it }));
  return [`Dragstrip ${version}`, ...lines].join("\n");
}
