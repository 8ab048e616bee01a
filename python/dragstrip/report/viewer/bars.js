// A row per contender: a bar with its range, or a tick on a band from the 5th to the 95th percentile.

import { scale, xAxis } from "./axes.js";
import { cursor } from "./cursor.js";
import { digits } from "./data.js";
import { html, mark, picture, TEXT, widthOf } from "./marks.js";

const ROW = 26;
const THICK = 14;
const FOOT = 38;
const NAME = TEXT + 1;

export function read(figure) {
  figure.rows = figure.bars.map(([who, colour, value, least, greatest, text]) => ({
    who, colour, value, least, greatest, text,
  }));
  return figure;
}

export function draw(figure, host, width) {
  const names = Math.max(...figure.rows.map((row) => widthOf(row.who, NAME)));
  // Long names stand above their bars.
  const above = names > 0.36 * width;
  const step = above ? ROW + 14 : ROW;
  const left = above ? 4 : names + 12;
  const beside = Math.max(...figure.rows.map((row) => widthOf(row.text)));
  const height = figure.rows.length * step + FOOT + 4;
  const bottom = height - FOOT;
  const svg = picture(figure, width, height, host);
  // The longest bar leaves room for its figure.
  const greatest = Math.max(...figure.rows.map((row) => Math.max(row.greatest, row.value)));
  const room = Math.max(40, width - left - beside - 12);
  const axis = { ...figure.axis, high: (greatest * (width - 6 - left)) / room || 1 };
  const x = scale(axis, left, width - 6);
  xAxis(svg, axis, x, 2, bottom, (width - left) / 70, true);
  const groups = [];
  for (const [number, row] of figure.rows.entries()) {
    const middle = 2 + number * step + step / 2 + (above ? 7 : 0);
    const group = mark("g", figure.fades ? { "data-colour": row.colour } : {}, svg);
    groups.push(group);
    const name = above
      ? { x: left, y: middle - THICK / 2 - 4 }
      : { x: left - 8, y: middle + 4, "text-anchor": "end" };
    mark("text", { class: "name", ...name }, group, row.who);
    if (figure.kind === "interval") interval(group, row, x, middle);
    else bar(group, row, x, middle, figure.ranged);
    mark("text", { class: "figure", x: x.at(Math.max(row.greatest, row.value)) + 7, y: middle + 4 }, group, row.text);
  }
  mark("line", { class: "base", x1: left, x2: left, y1: 2, y2: bottom }, svg);
  reading(figure, host, { left: 0, top: 2, width, height: bottom - 2 }, groups);
}

/** A row under the cursor, its range in words; rows are counted from the last one, so that arrow keys go as they point. */
function reading(figure, host, area, groups) {
  const last = figure.rows.length - 1;
  const words = html("p", { class: "level reading" }, host);
  const say = (value) => {
    const row = figure.rows[last - value];
    const range = `${digits(row.least)} to ${digits(row.greatest)} ${figure.axis.unit}`;
    if (figure.kind === "interval") return `${row.who} ${row.text}; ${figure.band} ${range}`;
    return figure.ranged && row.least !== row.greatest ? `${row.who} ${row.text}; repeats ${range}` : `${row.who} ${row.text}`;
  };
  const show = (value) => {
    handle.show(value);
    words.textContent = value === undefined ? "" : say(value);
    for (const [number, group] of groups.entries()) {
      group.classList.toggle("aside", value !== undefined && number !== last - value);
    }
  };
  const locate = (event, box) => last - Math.floor(((event.clientY - box.top) / box.height) * (last + 1));
  const axis = { low: 0, high: last, step: 1 };
  const handle = cursor(host);
  handle.place({ area, axis, vertical: true, locate, moved: show, say, label: `Row of ${figure.title}` });
  handle.show(undefined);
}

function bar(group, row, x, middle, ranged) {
  const left = x.at(0);
  const box = { x: left, y: middle - THICK / 2, width: Math.max(0, x.at(row.value) - left), height: THICK };
  mark("rect", { class: "bar", ...box, fill: row.colour }, group);
  if (!ranged || row.least === row.greatest) return;
  const [from, to] = [x.at(row.least), x.at(row.greatest)];
  mark("path", { class: "whisker", d: `M${from} ${middle}H${to}M${from} ${middle - 4}v8M${to} ${middle - 4}v8` }, group);
}

function interval(group, row, x, middle) {
  const [from, to] = [x.at(row.least), x.at(row.greatest)];
  const band = { x: from, y: middle - 3, width: Math.max(1, to - from), height: 6, rx: 3 };
  mark("rect", { class: "band", ...band, fill: row.colour, "fill-opacity": 0.35 }, group);
  const tick = { x: x.at(row.value) - 2, y: middle - 8, width: 4, height: 16, rx: 1 };
  mark("rect", { class: "bar", ...tick, fill: row.colour }, group);
}
