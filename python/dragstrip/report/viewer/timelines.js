// Panels over time beneath each other, on one axis; the cursor of time is shared with other figures.

import { labelWidth, scale, xAxis, yAxis } from "./axes.js";
import { cursor } from "./cursor.js";
import { column, digits, percent, STEPS_X, STEPS_Y, valueAt } from "./data.js";
import { dashes, html, mark, path, picture, sample } from "./marks.js";

const HEAD = 22;
const PANEL = 84;
const TALL = 150;
const GAP = 8;
const FOOT = 38;
const TICKS_Y = 4;
const NAMED_WIDTH = 300;
const LABELS = 6;

/** A figure with its curves read, once; drawing may come often. */
export function read(figure) {
  for (const panel of figure.panels) {
    for (const stroke of panel.strokes) {
      stroke.read = stroke.curves.map(([xs, ys]) => ({
        xs: column(xs, figure.x, STEPS_X),
        ys: column(ys, panel.y, STEPS_Y),
      }));
    }
  }
  return figure;
}

export function draw(figure, host, width, link) {
  const high = figure.tall ? TALL : PANEL;
  const left = 10 + Math.max(24, ...figure.panels.map((panel) => labelWidth(panel.y, TICKS_Y)));
  const right = width - 6;
  const height = figure.panels.length * (HEAD + high + GAP) - GAP + FOOT;
  const svg = picture(figure, width, height, host);
  const x = scale(figure.x, left, right);
  const panels = figure.panels.map((panel, number) => {
    const top = number * (HEAD + high + GAP) + HEAD;
    const group = mark("g", {}, svg);
    const y = scale(panel.y, top + high, top);
    yAxis(group, panel.y, y, left, right, TICKS_Y);
    xAxis(group, figure.x, x, top, top + high, (right - left) / 60, number === figure.panels.length - 1);
    mark("text", { class: "title", x: 0, y: top - 9 }, group, panel.y.title);
    if (panel.rule) rule(group, panel.rule, y, left, right);
    // A picture within the picture, which cuts off what leads out of the panel.
    const frame = { x: left, y: top, width: right - left, height: high };
    const inside = mark("svg", { ...frame, viewBox: Object.values(frame).join(" ") }, group);
    for (const stroke of panel.strokes) curves(inside, stroke, x, y, left, right);
    marks(group, figure.marks, x, top, high, number === 0 && right - left > NAMED_WIDTH);
    const readout = mark("text", { class: "readout", x: right, y: top - 9, "text-anchor": "end" }, svg);
    return { panel, y, readout, dots: mark("g", { class: "dots" }, svg) };
  });
  legend(figure, host);
  const needle = mark("line", { class: "needle", y1: HEAD, y2: height - FOOT, visibility: "hidden" }, svg);
  const moment = mark("text", { class: "readout", y: height - FOOT + 15, "text-anchor": "middle" }, svg);
  const area = { left, top: HEAD, width: right - left, height: height - FOOT - HEAD };
  const say = (time) => [`${digits(time)} s`, ...panels.map(({ panel }) => spoken(panel, time))].join(", ");
  const label = `Time in ${figure.title}`;
  const handle = cursor(host, area, figure.x, { back: x.back, moved: link.move, say, label });
  link.follow((time) => {
    handle.show(time);
    needle.setAttribute("visibility", time === undefined ? "hidden" : "visible");
    moment.textContent = time === undefined ? "" : `${digits(time)} s`;
    if (time !== undefined) {
      for (const end of ["x1", "x2"]) needle.setAttribute(end, x.at(time));
      moment.setAttribute("x", Math.min(x.at(time), right - 14));
    }
    for (const { panel, y, readout, dots } of panels) {
      dots.replaceChildren();
      readout.textContent = time === undefined ? "" : text(panel, time);
      if (time === undefined) continue;
      for (const { stroke, value } of values(panel, time)) {
        mark("circle", { cx: x.at(time), cy: y.at(value), r: 3, fill: stroke.colour }, dots);
      }
    }
  });
}

function curves(group, stroke, x, y, left, right) {
  // One path for all of them: a thousand pale lines are drawn as fast as one.
  const d = stroke.read.map(({ xs, ys }) => path(xs.map(x.at), ys.map(y.at), stroke.step)).join("");
  if (!d) return;
  mark("path", {
    class: stroke.main ? "curve main" : "curve",
    d,
    // One of several in its panel fades when its algorithm is taken away.
    "data-colour": stroke.main && stroke.label ? stroke.colour : undefined,
    stroke: stroke.colour,
    "stroke-width": stroke.width,
    "stroke-opacity": stroke.opacity < 1 ? stroke.opacity : undefined,
    "stroke-dasharray": dashes(stroke.dash),
  }, group);
  if (!stroke.label || stroke.main) return;
  const { xs, ys } = stroke.read[0];
  const [endX, endY] = [xs[xs.length - 1], ys[ys.length - 1]];
  if (endX === undefined) return;
  const at = Math.min(x.at(endX), right);
  // In narrow panels it would hide the curve; the words beneath the figures say what is dashed.
  if (right - left > NAMED_WIDTH) {
    mark("text", { class: "label", x: at - 2, y: y.at(endY) - 4, "text-anchor": "end" }, group, stroke.label);
  }
}

function rule(group, [at, words], y, left, right) {
  const line = mark("line", { class: "rule", x1: left, x2: right, y1: y.at(at), y2: y.at(at) }, group);
  mark("title", {}, line, words);
}

/** Moments through all panels, named in the first: each beneath the one before, so that neighbours do not overlap. */
function marks(group, moments, x, top, high, named) {
  moments.forEach(([at, words], number) => {
    const line = mark("line", { class: "moment", x1: x.at(at), x2: x.at(at), y1: top, y2: top + high }, group);
    mark("title", {}, line, words);
    const y = top + 10 + (number % LABELS) * 13;
    if (named) mark("text", { class: "label", x: x.at(at) + 4, y }, group, words);
  });
}

/** Names of the curves that are labelled, beneath the figure. */
function legend(figure, host) {
  const named = new Map();
  for (const panel of figure.panels) {
    for (const stroke of panel.strokes) if (stroke.main && stroke.label) named.set(stroke.label, stroke);
  }
  if (!named.size) return;
  const list = html("ul", { class: "legend" }, host);
  for (const [label, stroke] of named) {
    const entry = html("li", {}, list);
    sample(stroke.colour, stroke.dash, entry);
    html("span", {}, entry, label);
  }
}

function values(panel, time) {
  const found = [];
  for (const stroke of panel.strokes.filter((stroke) => stroke.main)) {
    for (const curve of stroke.read) {
      const value = valueAt(curve, time, stroke.step);
      if (value !== undefined) found.push({ stroke, value });
    }
  }
  return found;
}

/** `9.57 Mbit/s`; of several curves from the least to the greatest, or each by its name. */
function text(panel, time) {
  const found = values(panel, time);
  const shown = (value) => (panel.y.share ? percent(value) : digits(value));
  if (!found.length) return "–";
  if (found.every(({ stroke }) => stroke.label)) {
    return found.map(({ stroke, value }) => `${stroke.label} ${shown(value)}`).join(", ");
  }
  const all = found.map(({ value }) => value);
  const [least, greatest] = [shown(Math.min(...all)), shown(Math.max(...all))];
  return `${least === greatest ? least : `${least}–${greatest}`} ${panel.y.unit}`.trim();
}

function spoken(panel, time) {
  return `${panel.y.title.replace(/ \(.*/, "")} ${text(panel, time)}`;
}
