// The lessons' content, and what a student hands in. The core judges (crates/measures/src/quiz.rs), here and where files are graded.
import files from "virtual:lessons";
import { type Form, fromOptions, toJson } from "./form";
import type { Summary } from "./protocol";
import { rules } from "./rules";

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
    /** Of a number: the share by which it may be off. */
    within?: number;
    unit?: string;
  };
}

export const lessons = files as Lesson[];

/** A figure of a run by its path, such as `flows.0.share`; null where the run has none. */
export const figureOf = (summary: Summary, measure: string): number | null => rules()?.summary_figure(JSON.stringify(summary), measure) ?? null;

/** The verdict on a quiz by the run and, for a quiz about a number, that number. */
export const isRight = ({ quiz }: Lesson, summary: Summary, number: number): boolean =>
  rules()?.quiz_is_right(JSON.stringify(quiz), JSON.stringify(summary), number) ?? false;

/** The answer to hand in: a number, or the free options of the form; null if the form differs in others too. */
export function answerOf({ start, quiz }: Lesson, form: Form, number: number): unknown {
  if (quiz.within !== undefined) return number;
  const options = (it: Form): Options => JSON.parse(toJson(it));
  const [now, base] = [options(form), options(fromOptions({ ...start, ...quiz.set }))];
  const answer: Options = {};
  for (const key of new Set([...Object.keys(now), ...Object.keys(base)])) {
    if (quiz.free!.includes(key)) answer[key] = now[key];
    else if (key !== "together" && JSON.stringify(now[key]) !== JSON.stringify(base[key])) return null;
  }
  return answer;
}

/** The text that a student hands in: a line for each lesson. */
export function answersOf(version: string, answers: Record<number, { answer: unknown; recording: string }>): string {
  const lines = Object.entries(answers).map(([number, it]) => JSON.stringify({ lesson: Number(number), ...it }));
  return [`Dragstrip ${version}`, ...lines].join("\n");
}
