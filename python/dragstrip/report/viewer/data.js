// Reads what report/embed.py writes: columns of steps along an axis, back to values.

export const STEPS_X = 4000;
export const STEPS_Y = 2000;

/** Values in the axis's unit, from the distances between their steps. */
export function column(steps, axis, of) {
  const low = axis.log ? Math.log10(axis.low) : axis.low;
  const high = axis.log ? Math.log10(axis.high) : axis.high;
  const values = new Float64Array(steps.length);
  let place = 0;
  for (let i = 0; i < steps.length; i++) {
    place += steps[i];
    const value = low + (place / of) * (high - low);
    values[i] = axis.log ? 10 ** value : value;
  }
  return values;
}

/** How many of the ascending values are at most `x`. */
export function countUpTo(values, x) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value of a curve at `x`: the latest one in a step, else the nearest; nothing beyond its ends. */
export function valueAt(curve, x, step) {
  const { xs, ys } = curve;
  const behind = countUpTo(xs, x);
  if (!xs.length) return undefined;
  // A tenth of a step's rounding beyond either end still counts.
  const slack = (xs[xs.length - 1] - xs[0]) / 100;
  if (x < xs[0] - slack || x > xs[xs.length - 1] + slack) return undefined;
  if (behind === 0) return ys[0];
  if (behind === xs.length || step) return ys[behind - 1];
  return x - xs[behind - 1] <= xs[behind] - x ? ys[behind - 1] : ys[behind];
}

/** Largest magnitude that six decimals round to zero. */
const ZERO = 5e-7;

/**
 * A number with three significant digits, or two below 1; thin spaces group the thousands from 10 000 on, and what six
 * decimals round to zero is `0`. The rule is that of `digits` in crates/measures/src/numbers.rs and
 * display/quantity.py; tests/numbers.json holds them together.
 */
export function digits(value) {
  if (!Number.isFinite(value)) return "–";
  const magnitude = Math.abs(value);
  if (magnitude <= ZERO) return "0";
  if (magnitude >= 99.95 || Number.isInteger(value)) return grouped(fixed(value, 0));
  if (magnitude >= 9.995) return grouped(fixed(value, 1));
  let decimals = 2;
  for (let least = 0.0995; magnitude < least && decimals < 6; least /= 10) decimals += 1;
  return grouped(fixed(value, decimals));
}

/** As toFixed, but a tie goes to the even digit, as in Rust and Python. */
function fixed(value, decimals) {
  const scaled = value * 10 ** decimals;
  const below = Math.floor(scaled);
  // A tie has so few binary digits that its product is exact.
  if (scaled - below !== 0.5 || !Number.isInteger(value * 2 ** (decimals + 1))) return value.toFixed(decimals);
  return ((below % 2 === 0 ? below : below + 1) / 10 ** decimals).toFixed(decimals);
}

/** Groups the thousands of a whole part of five digits or more. */
function grouped(text) {
  const [whole, part] = text.split(".");
  const groups = whole.replace("-", "").length < 5 ? whole : whole.replace(/\B(?=(\d{3})+$)/g, "\u2009");
  return part === undefined ? groups : `${groups}.${part}`;
}

/** `38.2 %` of a fraction. */
export function percent(fraction) {
  return `${digits(fraction * 100)} %`;
}
