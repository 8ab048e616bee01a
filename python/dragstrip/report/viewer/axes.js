// Scales and axes: from a value to a place, ticks that a reader can name, grid lines.

import { digits } from "./data.js";
import { mark, widthOf } from "./marks.js";

/** Value → pixel, and back. */
export function scale(axis, from, to) {
  const f = axis.log ? Math.log10 : (value) => value;
  const low = f(axis.low);
  const span = f(axis.high) - low || 1;
  const at = (value) => from + ((f(value) - low) / span) * (to - from);
  const back = (place) => {
    const value = low + ((place - from) / (to - from)) * span;
    return axis.log ? 10 ** value : value;
  };
  return { at, back };
}

/** At most about `count` round values within the axis. */
export function ticks(axis, count) {
  if (axis.share) return [0, 0.25, 0.5, 0.75, 1];
  if (axis.log) return logTicks(axis, count);
  const raw = (axis.high - axis.low) / Math.max(1, count * 1.35);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(axis.low / step - 1e-9); i * step <= axis.high * (1 + 1e-9); i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

function logTicks(axis, count) {
  const found = [];
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    found.length = 0;
    for (let power = Math.floor(Math.log10(axis.low)); power <= Math.log10(axis.high); power++) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= axis.low && value <= axis.high) found.push(Number(value.toPrecision(12)));
      }
    }
    if (found.length <= count + 1) break;
  }
  return found;
}

/** As few digits as tell it from its neighbours. */
export function tickText(axis, value) {
  if (axis.share) return `${Math.round(value * 100)} %`;
  return value >= 10000 ? digits(value) : String(value);
}

/** How much room the labels of a y axis need. */
export function labelWidth(axis, count) {
  return Math.max(...ticks(axis, count).map((value) => widthOf(tickText(axis, value))));
}

/** Grid lines across and their labels at the left. */
export function yAxis(group, axis, y, left, right, count) {
  for (const value of ticks(axis, count)) {
    const at = y.at(value);
    mark("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }, group);
    mark("text", { class: "tick", x: left - 6, y: at + 4, "text-anchor": "end" }, group, tickText(axis, value));
  }
}

/** Grid lines upwards; with `labelled` the labels beneath them and the axis's title. */
export function xAxis(group, axis, x, top, bottom, count, labelled) {
  const [from, to] = [x.at(axis.low), x.at(axis.high)];
  for (const value of ticks(axis, count)) {
    const at = x.at(value);
    mark("line", { class: "grid", x1: at, x2: at, y1: top, y2: bottom }, group);
    if (labelled) {
      const words = tickText(axis, value);
      // Under its line, but within the picture.
      const middle = Math.min(at, to + 6 - widthOf(words) / 2);
      mark("text", { class: "tick", x: middle, y: bottom + 15, "text-anchor": "middle" }, group, words);
    }
  }
  mark("line", { class: "base", x1: from, x2: to, y1: bottom, y2: bottom }, group);
  if (labelled) {
    // In the middle, but within the picture.
    const half = widthOf(axis.title) / 2;
    const middle = Math.max(half, Math.min((from + to) / 2, to + 6 - half));
    mark("text", { class: "title", x: middle, y: bottom + 31, "text-anchor": "middle" }, group, axis.title);
  }
}
