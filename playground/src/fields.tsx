// The fields of the form.
import {
  type Form, type Problem, STEPS, type TextField, flowOf, limitOf, movedTo, place, rough, spoken, textOf, withLimit, words,
} from "./form";
import { ABOUT } from "./options";
import { programsOf } from "./program";
import type { Names } from "./session";

interface Props {
  form: Form;
  problems: Problem[];
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
  kind?: "rate" | "time" | "percent";
  least?: number;
  greatest?: number;
}

function Field({ form, problems, change, field, label, kind, least = 1, greatest = 1 }: FieldProps) {
  const text = form[field];
  const value = kind ? rough(kind, text) : null;
  return (
    <div class="field">
      <label for={field}>{label}</label>
      <div class="row">
        {kind && (
          <input
            type="range" min="0" max={STEPS} step="1" aria-label={`${label}, slider`} aria-valuetext={spoken(text)}
            value={value === null ? 0 : place(value, least, greatest)}
            onInput={(it) => change({ [field]: words(kind, movedTo(Number(it.currentTarget.value), value ?? least, least, greatest)) })}
          />
        )}
        <input
          id={field} class={kind ? "narrow" : ""} value={text} placeholder="none" autocomplete="off" spellcheck={false}
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

function Queue({ form, problems, change, queues }: Props & { queues: Names["queues"] }) {
  const text = form.queue;
  const limit = limitOf(text);
  return (
    <div class="field">
      <label for="queue">Queue</label>
      <div class="row">
        <select
          aria-label="Queue discipline" value={text.split(" ")[0]}
          onChange={(it) => {
            const name = it.currentTarget.value;
            change({ queue: name === "pfifo" ? "pfifo limit 100" : (queues.find((q) => q.name === name)?.example ?? name) });
          }}
        >
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
        id="queue" value={text} autocomplete="off" spellcheck={false} aria-invalid={isWrong("queue", problems)} aria-describedby="wrong-queue"
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
    <fieldset>
      <legend>Flows</legend>
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

/** The whole form: path, flows and run. */
export function RaceForm({ names, ...props }: Props & { names: Names }) {
  return (
    <form aria-label="Race" onSubmit={(event) => event.preventDefault()}>
      <fieldset>
        <legend>Path</legend>
        <Field {...props} field="rate" label="Rate" kind="rate" least={1e5} greatest={1e9} />
        <Field {...props} field="rtt" label="RTT" kind="time" least={1e6} greatest={1e9} />
        <Queue {...props} queues={names.queues} />
        <Field {...props} field="loss" label="Loss" kind="percent" least={0.001} greatest={20} />
        <Field {...props} field="jitter" label="Jitter" kind="time" least={1e5} greatest={1e8} />
        <Field {...props} field="netem" label="Impairment (netem)" />
        <Field {...props} field="up_rate" label="Rate of the up-link" kind="rate" least={1e5} greatest={1e9} />
        <Field {...props} field="up_netem" label="Impairment of the up-link (netem)" />
      </fieldset>
      <Flows {...props} algorithms={names.algorithms} />
      <fieldset>
        <legend>Run</legend>
        <Field {...props} field="receiver_cc" label="Receivers' congestion control" />
        <Field {...props} field="stagger" label="Start one after the other, every" kind="time" least={1e8} greatest={3e10} />
        <Field {...props} field="duration" label="Duration" kind="time" least={1e9} greatest={6e11} />
        <Field {...props} field="seed" label="Seed" />
      </fieldset>
    </form>
  );
}
