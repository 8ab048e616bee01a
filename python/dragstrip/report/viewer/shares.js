// Shares over time as stacked areas, and shares of the whole as a pie.

import { cursor } from "./cursor.js";
import { column, countUpTo, digits, percent, STEPS_X, STEPS_Y } from "./data.js";
import { frame, needleIn } from "./frame.js";
import { linked } from "./linked.js";
import { html, mark, picture, sample, TEXT, widthOf } from "./marks.js";

const HEIGHT = 252;
const RADIUS = 84;
// Readers cannot tell more parts than this apart by a legend (report/figure.py has the same).
const PARTS_MAX = 10;
const SLICE_MIN = 0.04;

export function read(figure) {
  if (figure.kind === "shares") {
    figure.times = column(figure.edges, figure.x, STEPS_X);
    figure.rows = figure.tops.map((row) => column(row, figure.y, STEPS_Y));
  }
  return figure;
}

export function draw(figure, host, width, link) {
  if (figure.kind === "pie") pie(figure, host, width);
  else linked(figure, host, link, (part, inner) => stacked(part, inner, width));
}

function stacked(figure, host, width) {
  const plot = frame(figure, host, width, HEIGHT, figure.x, figure.y);
  const { svg, x, y, right, area } = plot;
  const { times, rows } = figure;
  // What leads out of a part of the axis is cut off.
  const box = { x: area.left, y: area.top, width: area.width, height: area.height };
  const inside = mark("svg", { ...box, viewBox: Object.values(box).join(" ") }, svg);
  for (const [number, part] of figure.parts.entries()) {
    const upper = [];
    const lower = [];
    for (let bin = 0; bin < rows[0].length; bin++) {
      const [from, to] = [x.at(times[bin]), x.at(times[bin + 1])];
      upper.push(`L${from.toFixed(1)} ${y.at(rows[number][bin]).toFixed(1)}H${to.toFixed(1)}`);
      lower.push(`L${to.toFixed(1)} ${y.at(rows[number + 1][bin]).toFixed(1)}H${from.toFixed(1)}`);
    }
    const d = `M${upper.join("").slice(1)}${lower.reverse().join("")}Z`;
    const look = { fill: part.colour, "fill-opacity": part.depth, "data-colour": part.colour };
    mark("path", { class: "area", d, ...look }, inside);
  }
  plot.grid(); // over the areas
  const figures = legend(figure, host);
  const needle = needleIn(plot, true);
  const readout = mark("text", { class: "readout", x: right, y: 12, "text-anchor": "end" }, svg);
  const share = (number, time) => {
    const bin = Math.min(rows[0].length - 1, Math.max(0, countUpTo(times, time) - 1));
    return percent(Math.max(0, rows[number][bin] - rows[number + 1][bin]));
  };
  const say = (time) =>
    `${digits(time)} s: ${figure.parts.map((part, number) => `${part.label} ${share(number, time)}`).join(", ")}`;
  const show = (time) => {
    const seen = time !== undefined && time >= figure.x.low && time <= figure.x.high;
    needle.setAttribute("visibility", seen ? "visible" : "hidden");
    readout.textContent = time === undefined ? "" : `${digits(time)} s`;
    if (seen) for (const end of ["x1", "x2"]) needle.setAttribute(end, x.at(time));
    for (const [number, element] of figures.entries()) {
      element.textContent = time === undefined ? figure.parts[number].note : share(number, time);
    }
  };
  return { show, reading: { area, axis: figure.x, back: x.back, say, label: `Time in ${figure.title}` } };
}

function pie(figure, host, width) {
  const height = 2 * RADIUS + 3 * TEXT + 12;
  const svg = picture(figure, width, height, host);
  const [cx, cy] = [width / 2, height / 2];
  const everything = figure.parts.reduce((sum, part) => sum + part.total, 0);
  let angle = 0;
  const [slices, ends] = [[], []];
  const point = (a, r) => `${(cx + r * Math.sin(a)).toFixed(1)} ${(cy - r * Math.cos(a)).toFixed(1)}`;
  for (const part of figure.parts) {
    const turn = (part.total / everything) * 2 * Math.PI;
    const end = angle + Math.min(turn, 2 * Math.PI - 1e-6);
    // Of a whole circle both ends are one point, which no arc joins: two halves.
    const whole = end - angle > 2 * Math.PI - 0.01;
    const d = whole
      ? `M${point(angle, RADIUS)}A${RADIUS} ${RADIUS} 0 0 1 ${point(angle + Math.PI, RADIUS)}A${RADIUS} ${RADIUS} 0 0 1 ${point(angle, RADIUS)}Z`
      : `M${cx} ${cy}L${point(angle, RADIUS)}A${RADIUS} ${RADIUS} 0 ${turn > Math.PI ? 1 : 0} 1 ${point(end, RADIUS)}Z`;
    const look = { fill: part.colour, "fill-opacity": part.depth, "data-colour": part.colour };
    slices.push(mark("path", { class: "slice", d, ...look }, svg));
    if (figure.parts.length <= PARTS_MAX && part.total >= SLICE_MIN * everything) {
      const [x, y] = point((angle + end) / 2, RADIUS + 14).split(" ");
      const side = Number(x) > cx + 8 ? "start" : Number(x) < cx - 8 ? "end" : "middle";
      const words = `${part.label} ${part.note}`;
      const room = side === "end" ? Number(x) : width - Number(x);
      // On a narrow screen a long name stands in the legend alone.
      const shown = side === "middle" || widthOf(words) <= room ? words : part.note;
      mark("text", { class: "figure", x, y: Number(y) + 4, "text-anchor": side }, svg, shown);
    }
    ends.push(end);
    angle = end;
  }
  const entries = legend(figure, host);
  const words = html("p", { class: "level reading" }, host);
  const last = figure.parts.length - 1;
  const say = (value) => `${figure.parts[value].label} ${figure.parts[value].note}`;
  const show = (value) => {
    handle.show(value);
    words.textContent = value === undefined ? "" : say(value);
    for (const [number, slice] of slices.entries()) slice.classList.toggle("aside", value !== undefined && value !== number);
    for (const [number, entry] of entries.entries()) entry.parentNode.classList.toggle("aside", value !== undefined && value !== number);
  };
  // Clockwise from the top.
  const locate = (event, box) => {
    const turn = Math.atan2(event.clientX - box.left - box.width / 2, box.top + box.height / 2 - event.clientY);
    const found = ends.findIndex((end) => (turn + 2 * Math.PI) % (2 * Math.PI) <= end);
    return found < 0 ? last : found;
  };
  const area = { left: cx - RADIUS, top: cy - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS };
  const axis = { low: 0, high: last, step: 1 };
  const handle = cursor(host);
  handle.place({ area, axis, locate, moved: show, say, label: `Part of ${figure.title}` });
  handle.show(undefined);
}

function legend(figure, host) {
  if (figure.parts.length > PARTS_MAX) return [];
  const list = html("ul", { class: "legend" }, host);
  return figure.parts.map((part) => {
    const entry = html("li", { "data-colour": part.colour }, list);
    sample(part.colour, [1, 0], entry, part.depth);
    html("span", {}, entry, part.label);
    return html("b", {}, entry, part.note);
  });
}
