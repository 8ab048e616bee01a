// Lessons: bet, run, see, why, break it, and a quiz that is judged by running (the texts: python/dragstrip/playground/lessons).
import { type ReadonlySignal, signal } from "@preact/signals";
import { type Form, fromOptions } from "./form";
import { type Lesson, type Options, answersOf, answerOf, figureOf, lessons, shortfallOf, verdictOf } from "./judge";
import type { Picture } from "./protocol";

const KEPT = "dragstrip-lessons";

interface Answer {
  answer: unknown;
  recording: string;
}

/** The lesson on the screen, 0 for none. */
export const at = signal(0);
const bets = signal<Record<number, { bet: number; true: number }>>({});
const marks = signal<Record<number, string>>({});
const answers = signal<Record<number, Answer>>(kept());
/** What waits for a run: all with a number above `since`. */
let waits: { kind: "bet" | "quiz"; number: number; value: number; since: number } | null = null;

function kept(): Record<number, Answer> {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return Object.fromEntries(
      lessons.map((_, it) => [it + 1, found[it + 1]]).filter(([, it]) => typeof it?.recording === "string"),
    );
  } catch {
    return {};
  }
}

function keep(number: number, answer: Answer) {
  answers.value = { ...answers.value, [number]: answer };
  try {
    localStorage.setItem(KEPT, JSON.stringify(answers.value));
  } catch {
    // A browser that keeps nothing: the answers last as long as the page.
  }
}

const shown = (value: number) => String(Number(value.toPrecision(3)));

/** Called when a run and its hash are there. */
export function ran(picture: Picture, form: Form, hash: string) {
  if (!waits || picture.id <= waits.since) return;
  const { kind, number, value } = waits;
  const lesson = lessons[number - 1]!;
  waits = null;
  if (kind === "bet") {
    const truth = figureOf(picture.measures, lesson.bet.measure);
    if (truth !== null) bets.value = { ...bets.value, [number]: { bet: value, true: truth / lesson.bet.scale } };
    return;
  }
  const verdict = verdictOf(lesson, picture.measures, value);
  marks.value = { ...marks.value, [number]: verdict.right ? "Right." : shortfallOf(lesson, verdict, value) };
  if (verdict.right) keep(number, { answer: answerOf(lesson, form, value), recording: hash.slice(0, 8) });
}

/** True where suggestions give no answer away: no lesson is open, or its quiz is answered. */
export const isRevealed = (): boolean => at.value === 0 || answers.value[at.value] !== undefined;

interface Props {
  form: ReadonlySignal<Form>;
  latest: () => number;
  load: (form: Form) => void;
  again: () => void;
  copy: (text: string) => void;
  version: string;
}

export function LessonChoice({ load }: { load: (form: Form) => void }) {
  return (
    <label>
      Lesson{" "}
      <select
        id="lesson" value={String(at.value)}
        onChange={(event) => {
          at.value = Number(event.currentTarget.value);
          const lesson = lessons[at.value - 1];
          if (lesson) load(fromOptions(lesson.start));
        }}
      >
        <option value="0">none</option>
        {lessons.map((it, number) => (
          <option key={it.title} value={String(number + 1)}>{`${number + 1}. ${it.title}${answers.value[number + 1] ? " ✓" : ""}`}</option>
        ))}
      </select>
    </label>
  );
}

function Ask({ id, label, unit, act, onAnswer }: { id: string; label: string; unit: string; act: string; onAnswer: (value: number) => void }) {
  const answer = () => {
    const text = (document.getElementById(id) as HTMLInputElement).value.trim().replace(",", ".");
    if (text !== "" && Number.isFinite(Number(text))) onAnswer(Number(text));
  };
  return (
    <form class="row plain" onSubmit={(event) => (event.preventDefault(), answer())}>
      <label for={id}>{label}</label>
      <input id={id} class="narrow" inputmode="decimal" autocomplete="off" /> {unit}
      <button type="submit">{act}</button>
    </form>
  );
}

export function LessonPanel({ form, latest, load, again, copy, version }: Props) {
  const number = at.value;
  const lesson: Lesson | undefined = lessons[number - 1];
  if (!lesson) return null;
  const { bet, see, quiz } = lesson;
  const won = bets.value[number];
  const wait = (kind: "bet" | "quiz", value: number) => (waits = { kind, number, value, since: latest() });
  const set = (options: Options) => load(fromOptions({ ...lesson.start, ...options }));
  const done = Object.keys(answers.value).length;
  const check = () => {
    if (answerOf(lesson, form.value, 0) === null) {
      const free = quiz.free!.join(" and ");
      marks.value = { ...marks.value, [number]: `Only ${free} may differ from the quiz's start: press the button, and change ${free} alone.` };
      return;
    }
    wait("quiz", 0);
    again();
  };
  return (
    <section class="lesson" aria-label={`Lesson ${number}`}>
      <h2>{`${number}. ${lesson.title}`}</h2>
      <h3>Bet</h3>
      <p>{bet.question}</p>
      <Ask key={`bet${number}`} id="bet" label="Your bet:" unit={bet.unit} act="Run" onAnswer={(value) => (wait("bet", value), load(fromOptions(lesson.start)))} />
      <p role="status" id="bet-result">{won ? `You: ${shown(won.bet)} ${bet.unit}. Measured: ${shown(won.true)} ${bet.unit}.` : ""}</p>
      {won && (
        <>
          <h3>See</h3>
          <p>{see.text}</p>
          <div class="table" tabIndex={0} role="region" aria-label="Runs of the lesson">
            <table>
              <thead><tr><th scope="col">With</th>{see.columns.map((it) => <th key={it.name} scope="col">{it.name}</th>)}</tr></thead>
              <tbody>
                {see.rows.map((row) => {
                  const name = Object.values(row.set).flat().join(", ");
                  return (
                    <tr key={name}>
                      <th scope="row"><button type="button" onClick={() => set(row.set)}>{name}</button></th>
                      {row.shown.map((it, column) => <td key={column}>{it}</td>)}
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          <h3>Why</h3>
          <p>{lesson.why}</p>
          <h3>Break it</h3>
          <div class="chips">{lesson.break.map((it) => <button key={it.label} type="button" onClick={() => set(it.set)}>{it.label}</button>)}</div>
        </>
      )}
      <h3>Quiz</h3>
      <p>{quiz.question}</p>
      {quiz.within !== undefined ? (
        <Ask key={`quiz${number}`} id="quiz" label="Your answer:" unit={quiz.unit!} act="Run and check" onAnswer={(value) => (wait("quiz", value), set(quiz.set ?? {}))} />
      ) : (
        <div class="row">
          <button type="button" onClick={() => set(quiz.set ?? {})}>The quiz's start</button>
          <button type="button" id="check" onClick={check}>Check this run</button>
        </div>
      )}
      <p role="status" id="mark">{marks.value[number] ?? (answers.value[number] ? "Answered rightly before." : "")}</p>
      <p>
        {`${done} of ${lessons.length} right. `}
        <button type="button" disabled={!done} onClick={() => copy(answersOf(version, answers.value))}>Copy answers</button>
      </p>
      <details><summary>Sources</summary><ul>{lesson.sources.map((it) => <li key={it}>{it}</li>)}</ul></details>
    </section>
  );
}

