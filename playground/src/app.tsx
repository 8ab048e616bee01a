// The page: header with choices and copies, the form, messages, and the run.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { CatalogueChoice, CataloguePanel } from "./catalogue";
import { Charts, Table, widthOf } from "./charts";
import { citationOf, pythonOf, tomlOf } from "./copies";
import { RaceForm, optionOf } from "./fields";
import { TEXTS } from "./form";
import { Lens } from "./lens";
import { LessonChoice, LessonPanel } from "./lessons";
import type { Playground } from "./playground";
import { Programs, isMarked } from "./program";
import { sentenceOf } from "./sentence";

interface Props {
  playground: Playground;
}

function Header({ playground }: Props) {
  const { race, session, address, change, openExperiment, copy } = playground;
  const picture = session.picture.value;
  const hash = session.hash.value;
  return (
    <header>
      <h1>Dragstrip</h1>
      <LessonChoice load={change} />
      <CatalogueChoice opened={race.experiment.value} load={openExperiment} />
      <div class="row" role="group" aria-label="Copy">
        <span aria-hidden="true">Copy</span>
        <button type="button" aria-label="Copy link" onClick={() => { address.replace(); copy(location.href); }}>link</button>
        <button type="button" disabled={!picture?.command} aria-label="Copy command" onClick={() => copy(picture?.command ?? "")}>command</button>
        <button type="button" disabled={race.scenarios.value !== null || race.experiment.value !== ""} aria-label="Copy Python" onClick={() => copy(pythonOf(race.form.value))}>Python</button>
        <button type="button" disabled={!picture?.experiment} aria-label="Copy TOML" onClick={() => copy(tomlOf(picture!.experiment!))}>TOML</button>
        <button type="button" disabled={!hash || !picture?.command} aria-label="Copy citation" onClick={() => copy(citationOf(picture!.command, session.version.value, hash))}>citation</button>
      </div>
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
  return (
    <>
      {warning.text && <p class="banner" role="alert">{warning.text}{warning.page && <>{" "}<a href={warning.page}>Open it in that version</a></>}</p>}
      {experiment && problems.length > 0 && <p class="wrong" role="alert">{`This run does not fit into the page. On the command line: dragstrip run ${experiment}`}</p>}
      {loose.map((it) => <p class="wrong" key={it.field}>{`${it.field} ${it.value}: expected ${it.expected}`}</p>)}
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
      <p class="sentence">{picture ? sentenceOf(picture) : "Loading the simulator …"}</p>
      <div class="chips">
        <button type="button" onClick={() => change({ algorithms: ["vegas"], together: false })}>Vegas alone</button>
        <button type="button" onClick={() => change({ queue: "fq_codel" })}>Turn on fq_codel</button>
        <button type="button" onClick={() => change({ queue: "pfifo limit 10" })}>Shrink the buffer</button>
      </div>
      {runs.length > 1 && (
        <label>Run <select value={String(race.pick.value)} onChange={(event) => choose(Number(event.currentTarget.value))}>
          {runs.map((name, at) => <option key={name} value={String(at)}>{name}</option>)}
        </select></label>
      )}
      <Programs form={race.form} problems={session.problems.value} change={change} copy={copy} />
      {picture && <Lens picture={picture} latest={session.latest} cursor={cursor} width={widthOf(picture)} dark={dark} look={session.look} say={announce} />}
      <Charts session={session} cursor={cursor} dark={dark} />
      {picture && <Table picture={picture} />}
      <details>
        <summary>How this was made</summary>
        <p><code>{picture?.command}</code></p>
        <p>Version {session.version.value}; recording <code id="hash">{session.hash.value || "…"}</code></p>
      </details>
      <div class="unseen" role="status" aria-live="polite">{playground.announcement.value}</div>
    </div>
  );
}

export function App({ playground, dark }: Props & { dark: ReadonlySignal<boolean> }) {
  const { race, session, change, run, copy } = playground;
  return (
    <>
      <Header playground={playground} />
      <div class="layout">
        <RaceForm form={race.form.value} problems={session.problems.value} names={session.names.value} change={change} />
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
