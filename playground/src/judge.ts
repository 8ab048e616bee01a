// The lessons' content, and what a student hands in. The core judges (crates/measures/src/quiz.rs), here and where files are graded.
import { digits } from "../../python/dragstrip/report/viewer/data.js";
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
  see: { text: string; columns: { name: string; measure: string; scale: number }[]; rows: { set: Options; shown: string[] }[] };
  break: { label: string; set: Options }[];
  quiz: {
    question: string;
    set?: Options;
    /** Of a run: the options that an answer may change. */
    free?: string[];
    /** Of a number: the size of its unit, and the share by which it may be off. */
    scale?: number;
    within?: number;
    unit?: string;
  };
}

export const lessons = files as Lesson[];

/** A figure of a run by its path, such as `flows.0.share`; null where the run has none. */
export const figureOf = (summary: Summary, measure: string): number | null => rules()?.summary_figure(JSON.stringify(summary), measure) ?? null;

interface Check {
  measure: string;
  figure: number | null;
  least: number | null;
  most: number | null;
  right: boolean;
}

export interface Verdict {
  right: boolean;
  checks: Check[];
}

/** The verdict on a quiz by the run and, for a quiz about a number, that number. */
export const verdictOf = ({ quiz }: Lesson, summary: Summary, number: number): Verdict =>
  JSON.parse(rules()!.quiz_verdict(JSON.stringify(quiz), JSON.stringify(summary), number));

/** The name, unit and unit's size of a measure, as the lesson's table has them. */
function wordsOf({ see }: Lesson, measure: string): { name: string; unit: string; scale: number } {
  const column = see.columns.find((it) => it.measure === measure);
  const [name, unit] = column?.name.split(", ") ?? [];
  if (name && column) return { name, unit: unit ?? "", scale: column.scale };
  const rtt = /^flows\.(\d+)\.rtt_ms\.(p\d+)$/.exec(measure);
  if (rtt) return { name: `RTT of flow ${Number(rtt[1]) + 1}, ${rtt[2]}`, unit: "ms", scale: 1 };
  return { name: measure, unit: "", scale: 1 };
}

/** A wrong answer in words: each measured figure, and the wanted one. */
export function shortfallOf(lesson: Lesson, { checks }: Verdict, answer: number): string {
  const { quiz } = lesson;
  const parts = checks.map(({ measure, figure, least, most, right }) => {
    if (quiz.within !== undefined) {
      const text = (value: number | null) => (value === null ? "nothing" : `${digits(value)} ${quiz.unit}`);
      const range = least === null || most === null ? "" : ` (${digits(least)} to ${digits(most)})`;
      return `your answer ${text(answer)}, measured ${text(figure === null ? null : figure / quiz.scale!)}, wanted within ${digits(100 * quiz.within)} % of it${range}`;
    }
    const { name, unit, scale } = wordsOf(lesson, measure);
    const text = (value: number) => `${digits(value / scale)}${unit && ` ${unit}`}`;
    const bounds = [least === null ? "" : `at least ${text(least)}`, most === null ? "" : `at most ${text(most)}`].filter(Boolean).join(" and ");
    return `${name} ${figure === null ? "not measured" : text(figure)}, wanted ${bounds}${right ? " (reached)" : ""}`;
  });
  return `Not yet: ${parts.join("; ")}.`;
}

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
