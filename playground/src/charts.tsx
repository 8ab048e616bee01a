// The charts of a run: panels over time with the report's cursor, the plane of two flows, and the table of figures.
import { type Signal, effect } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { cursor as slider } from "../../python/dragstrip/report/viewer/cursor.js";
import { EDGE, panels } from "../../python/dragstrip/report/viewer/timelines.js";
import { LEFT, drawPlane, figureOf } from "./draw";
import type { Picture } from "./protocol";
import { mbit, sentenceOf } from "./sentence";
import type { Session } from "./session";

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
      {picture && picture.flows.length === 2 && <><h2>{`One goodput against the other (diagonal: fair; ${picture.queues.length > 1 ? "upright and level: the rate of each flow's bottleneck" : "falling line: the link is full"})`}</h2><Plane picture={picture} dark={dark} /></>}
    </>
  );
}

function Plane({ picture, dark }: { picture: Picture; dark: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => drawPlane(ref.current!, Math.min(320, picture.view.pixels), picture, sentenceOf(picture), dark));
  return <div class="chart plane" ref={ref} />;
}

export function Table({ picture }: { picture: Picture }) {
  return (
    <details>
      <summary>Table</summary>
      <div class="table" tabIndex={0} role="region" aria-label="Measures of each flow">
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
