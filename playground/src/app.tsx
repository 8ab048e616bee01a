// The page: header with choices and copies, the form, messages, and the run.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { CatalogueChoice, CataloguePanel } from "./catalogue";
import { Charts, Flows, Table } from "./charts";
import { citationOf, pythonOf, tomlOf } from "./copies";
import { RaceForm, optionOf } from "./fields";
import { TEXTS } from "./form";
import { Lens } from "./lens";
import { LessonChoice, LessonPanel, isRevealed } from "./lessons";
import type { Playground } from "./playground";
import { Programs, isMarked } from "./program";
import { figuresOf } from "./sentence";
import { Transfers } from "./transfers";

interface Props {
  playground: Playground;
}

/** A narrow page folds what is not needed at once; style.css has the same width. */
const narrow = matchMedia("(max-width: 800px)");

function Header({ playground }: Props) {
  const { race, session, address, change, openExperiment, copy } = playground;
  const picture = session.picture.value;
  const hash = session.hash.value;
  const isNarrow = useSignal(narrow.matches);
  useEffect(() => {
    const follow = () => (isNarrow.value = narrow.matches);
    narrow.addEventListener("change", follow);
    return () => narrow.removeEventListener("change", follow);
  }, []);
  return (
    <header>
      <h1>Dragstrip</h1>
      <LessonChoice load={change} />
      <CatalogueChoice opened={race.experiment.value} load={openExperiment} />
      <details class="copy" open={!isNarrow.value}>
        <summary>Copy</summary>
        <div class="row" role="group" aria-label="Copy">
          <span class="word" aria-hidden="true">Copy</span>
        <button type="button" aria-label="Copy link" onClick={() => { address.replace(); copy(location.href); }}>link</button>
        <button type="button" disabled={!picture?.command} aria-label="Copy command" onClick={() => copy(picture?.command ?? "")}>command</button>
        <button type="button" disabled={!race.isForm.value} aria-label="Copy Python" onClick={() => copy(pythonOf(race.form.value))}>Python</button>
        <button type="button" disabled={!picture?.experiment} aria-label="Copy TOML" onClick={() => copy(tomlOf(picture!.experiment!))}>TOML</button>
        <button type="button" disabled={!hash || !picture?.command} aria-label="Copy citation" onClick={() => copy(citationOf(picture!.command, session.version.value, hash))}>citation</button>
        </div>
      </details>
    </header>
  );
}

/** Problems that no field shows, warnings about the link, and the question before a long run. */
function Messages({ playground }: Props) {
  const { race, session, address, run } = playground;
  const experiment = race.experiment.value;
  const problems = session.problems.value;
  const loose = problems.filter((it) => !["algorithms", ...TEXTS].includes(optionOf(it)) && !isMarked(race.form.value, it));
  const warning = address.warning.value;
  const packets = session.asking.value;
  const departure = playground.departure.value;
  return (
    <>
      {warning.text && <p class="banner" role="alert">{warning.text}{warning.page && <>{" "}<a href={warning.page}>Open it in that version</a></>}</p>}
      {experiment && problems.length > 0 && <p class="wrong" role="alert">{`This run does not fit into the page. On the command line: dragstrip run ${experiment}`}</p>}
      {loose.map((it) => <p class="wrong" key={it.field}>{`${it.field} ${it.value}: expected ${it.expected}`}</p>)}
      {departure && (
        <p class="banner" role="status">{`The charts now show the form's race, no longer ${departure.name}. `}
          <button type="button" onClick={departure.back}>{`Return to ${departure.name}`}</button></p>
      )}
      {session.notice.value && <p class="banner" role="status">{session.notice.value}</p>}
      {packets !== null && (
        <p class="banner">{`About ${(packets / 1e6).toPrecision(2)} million packets, some ${Math.max(1, Math.round(packets / 1e6))} s or more. `}
          <button type="button" onClick={() => run(true)}>Run it</button></p>
      )}
    </>
  );
}

function Run({ playground, dark }: Props & { dark: boolean }) {
  const { race, session, change, choose, copy, announce } = playground;
  const cursor = useSignal<number | null>(null);
  const picture = session.picture.value;
  const runs = race.scenarios.value?.map((run) => run.name) ?? picture?.names ?? [];
  return (
    <div class="race">
      <p class="sentence">{picture ? <><span class="figures">{figuresOf(picture)} </span>{picture.sentence}</> : "Loading the simulator …"}</p>
      {picture && <Flows picture={picture} dark={dark} />}
      {race.isForm.value && isRevealed() && (
        <div class="chips">
          <button type="button" onClick={() => change({ algorithms: ["vegas"], together: false })}>Vegas alone</button>
          <button type="button" onClick={() => change({ queue: "fq_codel" })}>Turn on fq_codel</button>
          <button type="button" onClick={() => change({ queue: "pfifo limit 10" })}>Shrink the buffer</button>
        </div>
      )}
      {runs.length > 1 && (
        <label class="runs">Run <select value={String(race.pick.value)} onChange={(event) => choose(Number(event.currentTarget.value))}>
          {runs.map((name, at) => <option key={name} value={String(at)}>{name}</option>)}
        </select></label>
      )}
      <div class="desk">
        {race.isForm.value && <Programs form={race.form} problems={session.problems.value} change={change} copy={copy} />}
        <div class="figures-of-run">
          {picture && <Lens picture={picture} latest={session.latest} cursor={cursor} dark={dark} look={session.look} say={announce} />}
          <div class="over-time"><Charts session={session} cursor={cursor} dark={dark} /></div>
          <div class="after">
            {picture && <Transfers picture={picture} />}
            {picture && <Table picture={picture} />}
            <details>
              <summary>How this was made</summary>
              <p><code>{picture?.command}</code></p>
              <p>Version {session.version.value}; recording <code id="hash">{session.hash.value || "…"}</code></p>
            </details>
          </div>
        </div>
      </div>
      <div class="unseen" role="status" aria-live="polite">{playground.announcement.value}</div>
    </div>
  );
}

/** In place of the form, where the runs on the screen are not its race. */
function FixedRuns({ playground }: Props) {
  const { race, change } = playground;
  const { algorithms, rate, rtt, path } = race.form.value;
  const name = race.experiment.value;
  return (
    <aside class="settings" aria-label="Race">
      <h2>{name ? "Experiment of the catalogue" : "Runs of a file"}</h2>
      <p><code>{name || race.title.value}</code></p>
      <p class="about">{name ? "An experiment describes these runs" : "The file holds these runs"}; no slider changes them.</p>
      <button type="button" onClick={() => change({})}>Leave for the form's race</button>
      <p class="note about">{`The form has ${algorithms.join(", ")} on ${path || `${rate}, ${rtt}`}.`}</p>
    </aside>
  );
}

export function App({ playground, dark }: Props & { dark: ReadonlySignal<boolean> }) {
  const { race, session, change, run, copy } = playground;
  return (
    <>
      <Header playground={playground} />
      <div class="layout">
        {race.isForm.value
          ? <RaceForm form={race.form.value} problems={session.problems.value} names={session.names.value} change={change} />
          : <FixedRuns playground={playground} />}
        <main>
          <Messages playground={playground} />
          <div class="beside">
            <LessonPanel form={race.form} latest={session.latest} load={change} again={run} copy={copy} version={session.version.value} />
            <CataloguePanel opened={race.experiment.value} />
            <Run playground={playground} dark={dark.value} />
          </div>
        </main>
      </div>
    </>
  );
}
