// Two fingers on the charts: what was under them stays under them.
export interface Span {
  from: number;
  to: number;
}

/** A millisecond of the run is as wide as a chart may show it. */
const LEAST_NS = 1e6;

/** The span after fingers moved from `before` to `after`, both shares of a chart's width; within a run of `duration`. */
export function pinched(view: Span, before: readonly [number, number], after: readonly [number, number], duration: number): Span {
  const apart = after[1] - after[0];
  if (Math.abs(apart) < 1e-3 || apart * (before[1] - before[0]) < 0) return view; // one on the other: which way is not said
  const time = (share: number) => view.from + share * (view.to - view.from);
  const wanted = (time(before[1]) - time(before[0])) / apart;
  const span = Math.min(duration, Math.max(LEAST_NS, wanted));
  const middle = (time(before[0]) + time(before[1])) / 2 - ((after[0] + after[1]) / 2) * span;
  const from = Math.max(0, Math.min(duration - span, middle));
  return { from, to: from + span };
}
