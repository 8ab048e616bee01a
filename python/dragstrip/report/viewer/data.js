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

/** Three significant digits without an exponent, as quantity.digits in Python. */
export function digits(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(rounded)))));
  const whole = Math.abs(value - Math.round(value)) < 1e-9 * Math.abs(value);
  return thousands(rounded.toFixed(whole ? 0 : decimals));
}

function thousands(text) {
  const [whole, part] = text.split(".");
  const parted = whole.replace(/\B(?=(\d{3})+$)/g, "\u2009");
  return part === undefined ? parted : `${parted}.${part}`;
}

/** `38.2 %` of a fraction. */
export function percent(fraction) {
  const value = fraction * 100;
  return `${value === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} %`;
}
