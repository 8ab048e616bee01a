// The fields of the form.
import { useState } from "preact/hooks";
import {
  type Form, type Problem, STEPS, type TextField, flowOf, limitOf, movedTo, place, rough, spoken, textOf, withLimit, withMedium, withPath, words,
} from "./form";
import { ABOUT } from "./options";
import { programsOf } from "./program";
import type { Named, Names } from "./protocol";
import { Term } from "./term";

interface Props {
  form: Form;
  problems: Problem[];
  /** The figures of the path by name, which an empty field has. */
  figures: Partial<Record<string, string>>;
  change: (fields: Partial<Form>) => void;
}

/** The option that a problem is about. */
export const optionOf = ({ field }: Problem): string => field.split(/[.[]/)[0]!;

const isWrong = (field: string, problems: Problem[]) => problems.some((it) => optionOf(it) === field);

function Problems({ field, problems }: { field: string; problems: Problem[] }) {
  const texts = problems.filter((it) => optionOf(it) === field).map((it) => `${it.value}: expected ${it.expected}`);
  return <p class="wrong" id={`wrong-${field}`}>{texts.join("; ")}</p>;
}

interface FieldProps extends Props {
  field: TextField;
  label: string;
  /** Its term in the glossary. */
  term?: string;
  /** Shown on a narrow page only where all settings are. */
  extra?: boolean;
  kind?: "rate" | "time" | "percent";
  least?: number;
  greatest?: number;
}

function Field({ form, problems, figures, change, field, label, term, extra, kind, least = 1, greatest = 1 }: FieldProps) {
  const text = form[field];
  const inherited = figures[field] ?? "";
  const value = kind ? rough(kind, text || inherited) : null;
  return (
    <div class={extra ? "field extra" : "field"}>
      <div class="name"><label for={field}>{label}</label>{term && <Term name={term} id={field}>?</Term>}</div>
      <div class="row">
        {kind && (
          <input
            type="range" min="0" max={STEPS} step="1" aria-label={`${label}, slider`} aria-valuetext={spoken(text || inherited)}
            value={value === null ? 0 : place(value, least, greatest)}
            onInput={(it) => change({ [field]: words(kind, movedTo(Number(it.currentTarget.value), value ?? least, least, greatest)) })}
          />
        )}
        <input
          id={field} class={kind ? "narrow" : ""} value={text} placeholder={inherited || "none"} autocomplete="off" spellcheck={false}
          aria-invalid={isWrong(field, problems)} aria-describedby={`wrong-${field}`} title={ABOUT[field]}
          onInput={(it) => change({ [field]: it.currentTarget.value.trim() })}
        />
      </div>
      <Problems field={field} problems={problems} />
    </div>
  );
}

/** The limit after its slider was moved to a place; a key moves it by a packet at least. */
function packetsAt(at: number, limit: number): number {
  const to = Math.round(movedTo(at, limit, 2, 10_000));
  const by = Math.sign(at - place(limit, 2, 10_000));
  return to === limit ? Math.min(10_000, Math.max(2, limit + by)) : to;
}

/** A choice by name, of the core's list; an empty name is the first entry. */
function Choice({ id, label, first, names, value, choose }: { id: string; label: string; first: string; names: readonly Named[]; value: string; choose: (name: string) => void }) {
  return (
    <>
      <label for={id}>{label}</label>
      <select id={id} value={value} title={names.find((it) => it.name === value)?.about} onChange={(it) => choose(it.currentTarget.value)}>
        <option value="">{first}</option>
        {value !== "" && !names.some((it) => it.name === value) && <option value={value}>{value}</option>}
        {names.map((it) => <option key={it.name} value={it.name} title={it.about}>{it.name}</option>)}
      </select>
    </>
  );
}

function NamedPlace({ form, problems, change, names }: Props & { names: Names }) {
  const about = names.paths.find((it) => it.name === form.path)?.about ?? names.media.find((it) => it.name === form.medium)?.about;
  return (
    <div class="field extra">
      <div class="pair">
        <div><Choice id="path" label="Path by name" first="as below" names={names.paths} value={form.path} choose={(path) => change(withPath(path))} /></div>
        <div><Choice id="medium" label="Medium" first={form.path ? "of the path" : "a rate"} names={names.media} value={form.medium} choose={(medium) => change(withMedium(form, medium))} /></div>
      </div>
      {about && <p class="note">{about}</p>}
      <Problems field="path" problems={problems} />
      <Problems field="medium" problems={problems} />
    </div>
  );
}

function Workload({ form, problems, change, names }: Props & { names: Names }) {
  const text = form.workload;
  const name = text.split(" ")[0]!;
  const workload = names.workloads.find((it) => it.name === name);
  // A name with parameters has an example of them in its description.
  const exampleOf = ({ name, about }: Named) => new RegExp(`'(${name} [^']*)'`).exec(about)?.[1] ?? name;
  return (
    <div class="field extra">
      <Choice id="workload-name" label="What the flows do" first="bulk (default)" names={names.workloads} value={name}
        choose={(chosen) => {
          const entry = names.workloads.find((it) => it.name === chosen);
          change({ workload: entry ? exampleOf(entry) : "" });
        }} />
      {text !== "" && (
        <input id="workload" aria-label="Workload" value={text} autocomplete="off" spellcheck={false} title={ABOUT.workload}
          aria-invalid={isWrong("workload", problems)} aria-describedby="wrong-workload" onInput={(it) => change({ workload: it.currentTarget.value })} />
      )}
      {workload && <p class="note">{workload.about}</p>}
      <Problems field="workload" problems={problems} />
    </div>
  );
}

function Queue({ form, problems, figures, change, queues }: Props & { queues: Names["queues"] }) {
  const text = form.queue;
  const limit = limitOf(text);
  return (
    <div class="field">
      <div class="name"><label for="queue">Queue</label><Term name="buffer" id="queue">?</Term></div>
      <div class="row">
        <select
          aria-label="Queue discipline" value={text.split(" ")[0]}
          onChange={(it) => {
            const name = it.currentTarget.value;
            change({ queue: name === "pfifo" ? "pfifo limit 100" : (queues.find((q) => q.name === name)?.example ?? name) });
          }}
        >
          {!queues.some((it) => it.name === text.split(" ")[0]) && <option value={text.split(" ")[0]}>{text.split(" ")[0] || figures.queue || "default"}</option>}
          {queues.map((it) => <option key={it.name}>{it.name}</option>)}
        </select>
        {limit !== null && (
          <input
            type="range" min="0" max={STEPS} aria-label="Queue limit, slider" aria-valuetext={`${limit} packets`} value={place(limit, 2, 10_000)}
            onInput={(it) => change({ queue: withLimit(text, packetsAt(Number(it.currentTarget.value), limit)) })}
          />
        )}
      </div>
      <input
        id="queue" value={text} placeholder={figures.queue || "default"} autocomplete="off" spellcheck={false} aria-invalid={isWrong("queue", problems)} aria-describedby="wrong-queue"
        onInput={(it) => change({ queue: it.currentTarget.value })}
      />
      <Problems field="queue" problems={problems} />
    </div>
  );
}

function Flows({ form, problems, change, algorithms: choices }: Props & { algorithms: string[] }) {
  const { algorithms, together } = form;
  const put = (at: number, text: string) => change({ algorithms: algorithms.map((it, number) => (number === at ? text : it)) });
  return (
    <fieldset class="extra">
      <legend>Flows <Term name="congestion control" id="flows">?</Term></legend>
      {algorithms.map((text, at) => {
        const flow = flowOf(text);
        return (
          <div class="row" key={at}>
            <input aria-label={`Algorithm ${at + 1}`} list="known" value={flow.name} spellcheck={false} aria-invalid={isWrong("algorithms", problems)}
              onInput={(it) => put(at, textOf({ ...flow, name: it.currentTarget.value }))} />
            <input class="tiny" aria-label={`Count of ${flow.name}`} inputmode="numeric" value={String(flow.count)}
              onInput={(it) => put(at, textOf({ ...flow, count: Math.max(1, Number(it.currentTarget.value) || 1) }))} />
            <input class="tiny" aria-label={`Own RTT of ${flow.name}`} placeholder="RTT" value={flow.rtt}
              onInput={(it) => put(at, textOf({ ...flow, rtt: it.currentTarget.value.trim() }))} />
            <input class="tiny" aria-label={`Start of ${flow.name}`} placeholder="start" value={flow.start}
              onInput={(it) => put(at, textOf({ ...flow, start: it.currentTarget.value.trim() }))} />
            <button type="button" aria-label={`Remove ${flow.name}`} disabled={algorithms.length < 2}
              onClick={() => change({ algorithms: algorithms.filter((_, number) => number !== at) })}>−</button>
          </div>
        );
      })}
      <datalist id="known">{[...Object.keys(programsOf(form)), ...choices].map((it) => <option key={it} value={it} />)}</datalist>
      <Problems field="algorithms" problems={problems} />
      <div class="row">
        <button type="button" onClick={() => change({ algorithms: [...algorithms, "reno"] })}>Add a flow</button>
        <label class="row"><input type="checkbox" checked={together} onChange={(it) => change({ together: it.currentTarget.checked })} /> together</label>
      </div>
    </fieldset>
  );
}

/** The whole form: path, flows and run. A narrow page shows it as a sheet, folded to a slider. */
export function RaceForm({ names, ...rest }: Omit<Props, "figures"> & { names: Names }) {
  const [isOpen, open] = useState(false);
  const path = names.paths.find((it) => it.name.toLowerCase() === rest.form.path.toLowerCase());
  // A path without a rate or an RTT has media and delays instead.
  const ofPath = path && Object.fromEntries(["rate", "rtt", "up_rate"].map((field) => [field, "of path"]));
  const medium = rest.form.medium && { rate: "of medium" };
  const figures = { ...ofPath, ...Object.fromEntries(path?.fields ?? []), ...medium };
  const props = { ...rest, figures };
  return (
    <form class={isOpen ? "open" : ""} aria-label="Race" onSubmit={(event) => event.preventDefault()}>
      <div class="fold"><button type="button" aria-expanded={isOpen} onClick={() => open(!isOpen)}>{isOpen ? "Fewer settings" : "All settings"}</button></div>
      <fieldset>
        <legend>Path</legend>
        <NamedPlace {...props} names={names} />
        <Field {...props} field="rate" label="Rate" kind="rate" least={1e5} greatest={1e9} />
        <Field {...props} field="rtt" label="RTT" term="RTT" kind="time" least={1e6} greatest={1e9} />
        <Queue {...props} queues={names.queues} />
        <Field {...props} field="loss" label="Loss" term="loss" kind="percent" least={0.001} greatest={20} extra />
        <Field {...props} field="jitter" label="Jitter" term="jitter" kind="time" least={1e5} greatest={1e8} extra />
        <Field {...props} field="netem" label="Impairment (netem)" extra />
        <Field {...props} field="up_rate" label="Rate of the up-link" kind="rate" least={1e5} greatest={1e9} extra />
        <Field {...props} field="up_netem" label="Impairment of the up-link (netem)" extra />
      </fieldset>
      <Flows {...props} algorithms={names.algorithms.map((it) => it.name)} />
      <fieldset class="extra">
        <legend>Run</legend>
        <Workload {...props} names={names} />
        <Field {...props} field="receiver_cc" label="Receivers' congestion control" />
        <Field {...props} field="stagger" label="Start one after the other, every" kind="time" least={1e8} greatest={3e10} />
        <Field {...props} field="duration" label="Duration" kind="time" least={1e9} greatest={6e11} />
        <Field {...props} field="seed" label="Seed" />
      </fieldset>
    </form>
  );
}
