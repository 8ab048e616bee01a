// Panels over time beneath each other, on one axis: a report's timelines, and the playground's charts.

import { labelWidth, scale, xAxis, yAxis } from "./axes.js";
import { fill, sheet, valueAtPixel } from "./columns.js";
import { column, digits, percent, STEPS_X, STEPS_Y, valueAt } from "./data.js";
import { linked } from "./linked.js";
import { dashes, html, mark, path, picture, sample, widthOf } from "./marks.js";
import { ROW, strips, wordAt } from "./strips.js";

const HEAD = 22;
const PANEL = 84;
const TALL = 120;
const GAP = 8;
const FOOT = 38;
const TICKS_Y = 4;
const NAMED_WIDTH = 300;
const LABELS = 6;
const NAME_HEIGHT = 14;
/** Beside the panels, at the right. */
export const EDGE = 6;
// What a bold text is wider by.
const BOLD = 1.1;
// Curves that are read by name; of more the least and the greatest value are said.
const NAMES = 8;

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
  linked(figure, host, link, (part, inner) => panels(part, inner, width));
}

/**
 * Draws the panels into `host`. Returns `show(time)`, which moves the needle and reads the curves, and `reading`: what the
 * cursor needs of it. A stroke has `read` curves, drawn as paths, or `columns`, a line of pixels, drawn on a canvas; `base`
 * of its panel is then the size of the axis's unit in that of the line. A panel may have `ticks`, instants at its upper edge,
 * or `rows` of strips in place of curves. With `room` the labels of the y axes have that much of it, whatever they say:
 * columns of pixels are counted before.
 */
export function panels(figure, host, width, room) {
  const high = figure.tall ? TALL : PANEL;
  const left = room ?? 10 + Math.max(24, ...figure.panels.map((panel) => labelWidth(panel.y, TICKS_Y)));
  const right = width - EDGE;
  const tall = (panel) => (panel.rows ? panel.rows.length * ROW : high);
  const height = figure.panels.reduce((sum, panel) => sum + HEAD + tall(panel) + GAP, FOOT - GAP);
  const svg = picture(figure, width, height, host);
  const pixels = ({ rows, strokes }) => rows || strokes.some((stroke) => stroke.columns);
  const to = figure.panels.some(pixels) ? sheet(host, width, height) : null;
  // Over the curves, whichever way they are drawn.
  const over = mark("svg", { class: "plot over", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, host);
  const x = scale(figure.x, left, right);
  const along = (value) => `${digits(value)} ${figure.x.unit}`;
  const inside = ([at]) => at >= figure.x.low && at <= figure.x.high;
  const moments = figure.marks.filter(inside);
  let top = HEAD - GAP;
  const drawn = figure.panels.map((panel, number) => {
    top += number ? tall(figure.panels[number - 1]) + HEAD + GAP : GAP;
    const group = mark("g", { class: "panel" }, svg);
    const y = scale(panel.y, top + high, top);
    if (!panel.rows) yAxis(group, panel.y, y, left, right, TICKS_Y);
    xAxis(group, figure.x, x, top, top + tall(panel), (right - left) / 60, number === figure.panels.length - 1);
    const title = panel.note ? `${panel.y.title}, ${panel.note}` : panel.y.title;
    mark("text", { class: "title", x: 0, y: top - 9 }, group, title);
    if (panel.rule) rule(group, panel.rule, y, left, right);
    // A picture within the picture, which cuts off what leads out of the panel.
    const frame = { x: left, y: top, width: right - left, height: high };
    const cut = mark("svg", { ...frame, viewBox: Object.values(frame).join(" ") }, group);
    for (const stroke of panel.strokes) {
      if (stroke.columns) fill(to, stroke, { left, top, height: high, greatest: panel.y.high * panel.base });
      else curves(cut, stroke, x, y, left, right, top);
    }
    if (panel.rows) strips(to, panel.rows, x, top, left, right, getComputedStyle(svg).getPropertyValue("--ink"));
    const teeth = (panel.ticks ?? []).filter((at) => inside([at])).map((at) => `M${x.at(at).toFixed(1)} ${top}v8`).join("");
    if (teeth) mark("path", { class: "tooth", d: teeth }, over);
    marks(over, moments, x, top, tall(panel), right, number === 0 && right - left > NAMED_WIDTH);
    const readout = mark("text", { class: "readout", x: right, y: top - 9, "text-anchor": "end" }, over);
    return { panel, y, readout, space: right - widthOf(title) - 16, dots: mark("g", { class: "dots" }, over) };
  });
  legend(figure, host);
  const needle = mark("line", { class: "needle", y1: HEAD, y2: height - FOOT, visibility: "hidden" }, over);
  const moment = mark("text", { class: "readout", y: height - FOOT + 15, "text-anchor": "middle" }, over);
  const show = (told) => {
    const time = told !== undefined && inside([told]) ? told : undefined;
    needle.setAttribute("visibility", time === undefined ? "hidden" : "visible");
    moment.textContent = time === undefined ? "" : along(time);
    if (time !== undefined) {
      for (const end of ["x1", "x2"]) needle.setAttribute(end, x.at(time));
      moment.setAttribute("x", Math.min(x.at(time), right - 14));
    }
    for (const { panel, y, readout, space, dots } of drawn) {
      dots.replaceChildren();
      const found = time === undefined ? [] : values(figure, panel, time);
      const said = time === undefined ? "" : text(panel, found, time);
      readout.textContent = widthOf(said) * BOLD <= space ? said : range(panel, found);
      for (const { stroke, value } of found) {
        mark("circle", { cx: x.at(time), cy: y.at(value), r: 3, fill: stroke.colour }, dots);
      }
    }
  };
  const say = (time) =>
    [along(time), ...drawn.map(({ panel }) => `${named(panel)} ${text(panel, values(figure, panel, time), time)}`)].join(", ");
  const area = { left, top: HEAD, width: right - left, height: height - FOOT - HEAD };
  const stops = [...new Set([...figure.marks.map(([at]) => at), ...figure.panels.flatMap((panel) => panel.ticks ?? [])])];
  const reading = {
    area, axis: figure.x, back: x.back, say, label: `${named({ y: figure.x })} in ${figure.title}`, stops: stops.sort((a, b) => a - b),
  };
  return { show, reading };
}

function curves(group, stroke, x, y, left, right, top) {
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
    // Beneath a line at the panel's upper edge, which would cut its name off.
    const beside = y.at(endY) - top < NAME_HEIGHT ? NAME_HEIGHT - 2 : -4;
    mark("text", { class: "label", x: at - 2, y: y.at(endY) + beside, "text-anchor": "end" }, group, stroke.label);
  }
}

function rule(group, [at, words], y, left, right) {
  const line = mark("line", { class: "rule", x1: left, x2: right, y1: y.at(at), y2: y.at(at) }, group);
  mark("title", {}, line, words);
}

/** Moments through all panels, named in the first: each beneath the one before, so that neighbours do not overlap. */
function marks(group, moments, x, top, high, right, named) {
  moments.forEach(([at, words], number) => {
    const line = mark("line", { class: "moment", x1: x.at(at), x2: x.at(at), y1: top, y2: top + high }, group);
    mark("title", {}, line, words);
    const y = top + 10 + (number % LABELS) * 13;
    if (!named) return;
    // Left of its line where it would lead off the picture.
    const leftward = x.at(at) + 4 + widthOf(words) > right;
    const place = leftward ? { x: x.at(at) - 4, "text-anchor": "end" } : { x: x.at(at) + 4 };
    mark("text", { class: "label", ...place, y }, group, words);
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

function values(figure, panel, time) {
  const found = [];
  for (const stroke of panel.strokes.filter((stroke) => stroke.main)) {
    if (stroke.columns) {
      const { low, high } = figure.x;
      const pixel = Math.floor(((time - low) / (high - low)) * (stroke.columns.length / 4));
      const value = valueAtPixel(stroke.columns, pixel) / panel.base;
      if (!Number.isNaN(value)) found.push({ stroke, value });
      continue;
    }
    for (const curve of stroke.read) {
      const value = valueAt(curve, time, stroke.step);
      if (value !== undefined) found.push({ stroke, value });
    }
  }
  return found;
}

const shown = (panel, value) => (panel.y.share ? percent(value) : digits(value));

/** `9.57 Mbit/s`; of several curves from the least to the greatest, or each by its name. */
function text(panel, found, time) {
  if (panel.rows) return panel.rows.map((row) => `${row.name} ${wordAt(row, time) || "–"}`).join(", ");
  if (found.length && found.length <= NAMES && found.every(({ stroke }) => stroke.label)) {
    return found.map(({ stroke, value }) => `${stroke.label} ${shown(panel, value)}`).join(", ");
  }
  return range(panel, found);
}

function range(panel, found) {
  if (panel.rows) return "";
  if (!found.length) return "–";
  const all = found.map(({ value }) => value);
  const [least, greatest] = [shown(panel, Math.min(...all)), shown(panel, Math.max(...all))];
  return `${least === greatest ? least : `${least}–${greatest}`} ${panel.y.unit}`.trim();
}

/** Its title without the unit. */
const named = (panel) => panel.y.title.replace(/ \(.*/, "");
