// What of an axis is shown: a part of it, changed by keys and by two fingers.

/** No less is shown than this part of the whole. */
const LEAST = 1e-4;

const within = (low, span, whole) => {
  const from = Math.max(whole.low, Math.min(whole.high - span, low));
  return { low: from, high: from + span };
};

/** The part shown after it was made longer by the factor `by` around a value, within the whole; 0 shows all of it. */
export function zoomed(view, by, around, whole) {
  const all = whole.high - whole.low;
  const span = Math.min(all, Math.max(LEAST * all, (view.high - view.low) * by));
  return by === 0 || span >= all ? { ...whole } : within(around - span / 2, span, whole);
}

/** The part shown after two fingers moved from `before` to `after`, shares of its width: what was under them stays there. */
export function pinched(view, before, after, whole) {
  const apart = after[1] - after[0];
  // One on the other: which way is not said.
  if (Math.abs(apart) < 1e-3 || apart * (before[1] - before[0]) < 0) return view;
  const value = (share) => view.low + share * (view.high - view.low);
  const all = whole.high - whole.low;
  const span = Math.min(all, Math.max(LEAST * all, (value(before[1]) - value(before[0])) / apart));
  const middle = (value(before[0]) + value(before[1])) / 2 - ((after[0] + after[1]) / 2 - 0.5) * span;
  return within(middle - span / 2, span, whole);
}
