// The charts of a run: the flows with colours and figures, panels over time with the report's cursor, planes, and the table.
import { type Signal, effect } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { cursor as slider } from "../../python/dragstrip/report/viewer/cursor.js";
import { digits } from "../../python/dragstrip/report/viewer/data.js";
import { draw as drawScatter } from "../../python/dragstrip/report/viewer/scatter.js";
import { EDGE, panels } from "../../python/dragstrip/report/viewer/timelines.js";
import { LEFT, type StripKey, drawPlane, figureOf, stripKeysOf, tradeoffOf } from "./draw";
import { looksOf } from "./look";
import type { Picture } from "./protocol";
import { mbit, sentenceOf } from "./sentence";
import type { Session } from "./session";
import { Term } from "./term";

/** The width of the charts in pixels, with the labels of their axes. */
export const widthOf = ({ view }: Picture): number => view.pixels + LEFT + EDGE;

interface Props {
  session: Session;
  /** The instant under the cursor, ns; null where there is none. */
  cursor: Signal<number | null>;
  dark: boolean;
}

/** Acts as the keys + - 0 of the cursor, for buttons. */
const press = (key: string) => document.querySelector(".charts .cursor")?.dispatchEvent(new KeyboardEvent("keydown", { key }));

const FLOWS_MAX = 12;

/** Each flow's colour, name and figures, above the charts. */
export function Flows({ picture, dark }: { picture: Picture; dark: boolean }) {
  const { flows } = picture.measures;
  const looks = looksOf(picture.flows.map((flow) => flow.cc), dark);
  const ping = picture.measures.probes[0]?.rtt_ms?.p50;
  return (
    <div class="flows">
      <ul aria-label="Flows with goodput and median RTT">
        {flows.slice(0, FLOWS_MAX).map((flow, at) => (
          <li key={at}>
            <svg class="key" width="22" height="10" viewBox="0 0 22 10" aria-hidden="true">
              <line x1="0" y1="5" x2="22" y2="5" stroke={looks[at]?.colour} stroke-width="3" stroke-dasharray={looks[at]?.dash[1] ? looks[at]!.dash.join(" ") : undefined} />
            </svg>
            <b>{flow.label}</b> <span>{mbit(flow.goodput_bps)} Mbit/s</span> <span>RTT {flow.rtt_ms?.p50 == null ? "–" : digits(flow.rtt_ms.p50)} ms</span>
          </li>
        ))}
        {flows.length > FLOWS_MAX && <li>{`and ${flows.length - FLOWS_MAX} more, in the table`}</li>}
        {ping && <li>ping {digits(ping)} ms</li>}
      </ul>
      <p class="note"><Term name="goodput" id="flows">Goodput</Term> and median <Term name="RTT" id="flows">RTT</Term> of each flow</p>
    </div>
  );
}

function StripLegend({ picture, dark }: { picture: Picture; dark: boolean }) {
  const keys = stripKeysOf(picture, dark);
  const list = (name: string, entries: StripKey[]) => entries.length > 0 && (
    <li key={name}>
      <b>{name}</b>
      {entries.map(({ colour, words }) => (
        <span key={colour}>
          <svg class="key" width="14" height="10" viewBox="0 0 14 10" aria-hidden="true"><rect width="14" height="10" fill={colour} /></svg> {words}
        </span>
      ))}
    </li>
  );
  return <ul class="strips" aria-label="Colours of phases and limits">{list("Phase", keys.phase)}{list("Limit", keys.limit)}</ul>;
}

/** The panels over time, drawn by timelines.js of the report, and the plane. */
export function Charts({ session, cursor, dark }: Props) {
  const ref = useRef<HTMLDivElement>(null);
  const chart = useRef<{ inner: HTMLElement; handle: ReturnType<typeof slider>; follow: (time?: number) => void } | null>(null);
  const [pinned, pin] = useState<Picture | null>(null);
  const picture = session.picture.value;
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => {
      const pixels = Math.max(100, Math.floor(ref.current!.clientWidth) - LEFT - EDGE);
      if (pixels !== session.view.value.pixels) session.show({ pixels });
    });
    watch.observe(ref.current!);
    const inner = document.createElement("div");
    inner.className = "inner";
    ref.current!.append(inner);
    const its: NonNullable<typeof chart.current> = { inner, handle: slider(ref.current!), follow: () => {} };
    chart.current = its;
    const stop = effect(() => its.follow(cursor.value === null ? undefined : cursor.value / 1e9));
    return () => (watch.disconnect(), stop());
  }, []);
  useLayoutEffect(() => {
    const its = chart.current!;
    if (!picture) return;
    const { view, duration } = picture;
    const isComparable = pinned && pinned.view.from === view.from && pinned.view.to === view.to && pinned.view.pixels === view.pixels;
    its.inner.replaceChildren();
    // The picture has its own width until one of the page's new width comes: nothing is scaled.
    its.inner.style.width = `${widthOf(picture)}px`;
    const figure = figureOf(picture, isComparable ? pinned : null, sentenceOf(picture), dark);
    const { show: follow, reading } = panels(figure, its.inner, widthOf(picture), LEFT);
    const lie = (axis: { low: number; high: number }) => its.handle.place({
      ...reading, axis, whole: { low: 0, high: duration / 1e9 },
      moved: (time?: number) => (cursor.value = time === undefined ? null : time * 1e9),
      zoom: (part: { low: number; high: number }) => {
        // Fingers move faster than pictures come: each step goes on from the part that was asked for last.
        lie(part);
        const isWhole = part.high - part.low >= duration / 1e9;
        session.show(isWhole ? { from: 0, to: 0 } : { from: part.low * 1e9, to: part.high * 1e9 });
      },
    });
    lie(reading.axis);
    its.follow = (time) => (its.handle.show(time), follow(time));
    its.follow(cursor.peek() === null ? undefined : cursor.peek()! / 1e9);
  });
  return (
    <>
      <div class="row">
        <button type="button" aria-label="Zoom in" onClick={() => press("+")}>+</button>
        <button type="button" aria-label="Zoom out" onClick={() => press("-")}>−</button>
        <button type="button" onClick={() => press("0")}>Whole run</button>
        <button type="button" onClick={() => pin(pinned ? null : picture)}>{pinned ? "Unpin" : "Pin"}</button>
      </div>
      <div class="charts chart" ref={ref} />
      {picture && (
        <>
          <StripLegend picture={picture} dark={dark} />
          <div class="planes">
            <section aria-label="Throughput against delay">
              <h2>Throughput against delay (better: upper left)</h2>
              <Tradeoff picture={picture} pinned={pinned} dark={dark} />
            </section>
            {picture.flows.length === 2 && (
              <section aria-label="One goodput against the other">
                <h2>{`One goodput against the other (diagonal: fair; ${picture.queues.length > 1 ? "upright and level: the rate of each flow's bottleneck" : "falling line: the link is full"})`}</h2>
                <Plane picture={picture} dark={dark} />
              </section>
            )}
          </div>
        </>
      )}
    </>
  );
}

/** The plane of goodput and round-trip time, with the runs of the same race that were shown before. */
function Tradeoff({ picture, pinned, dark }: { picture: Picture; pinned: Picture | null; dark: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  const earlier = useRef<{ command: string; runs: Map<string, Picture> }>({ command: "", runs: new Map() });
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWidth(Math.floor(ref.current!.clientWidth)));
    watch.observe(ref.current!);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const memory = earlier.current;
    if (memory.command !== picture.command) earlier.current = { command: picture.command, runs: new Map() };
    const { runs } = earlier.current;
    if (picture.done) runs.set(picture.scenario, picture);
    const others = [...runs].filter(([scenario]) => scenario !== picture.scenario).map(([, run]) => run);
    ref.current!.replaceChildren();
    const outcomes = [picture, ...others].map((run) => ({ flows: run.measures.flows, pinned: false }));
    if (pinned) outcomes.push({ flows: pinned.measures.flows, pinned: true });
    const figure = tradeoffOf(outcomes, sentenceOf(picture), dark);
    if (figure && width) drawScatter(figure, ref.current!, Math.min(560, width));
  });
  return <div class="chart tradeoff" ref={ref} />;
}

function Plane({ picture, dark }: { picture: Picture; dark: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => drawPlane(ref.current!, Math.min(320, widthOf(picture)), picture, sentenceOf(picture), dark));
  return <div class="chart plane" ref={ref} />;
}

export function Table({ picture }: { picture: Picture }) {
  return (
    <details>
      <summary>Table</summary>
      <div class="table measures" tabIndex={0} role="region" aria-label="Measures of each flow">
        <table>
          <thead><tr><th scope="col">Flow</th><th scope="col">Goodput, Mbit/s</th><th scope="col">Share, %</th><th scope="col">RTT p50, ms</th><th scope="col">RTT p95, ms</th><th scope="col">Retransmits</th><th scope="col">Timeouts</th></tr></thead>
          <tbody>
            {picture.measures.flows.slice(0, 25).map((flow) => (
              <tr key={flow.label}>
                <th scope="row">{flow.label}</th><td>{mbit(flow.goodput_bps)}</td><td>{flow.share == null ? "–" : (100 * flow.share).toFixed(1)}</td>
                <td>{flow.rtt_ms?.p50 ?? "–"}</td><td>{flow.rtt_ms?.p95 ?? "–"}</td><td>{flow.retransmits ?? "–"}</td><td>{flow.timeouts ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
