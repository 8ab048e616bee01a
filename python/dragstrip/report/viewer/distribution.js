// Cumulative distributions: curves, each with its name; the cursor moves along the shares of samples.

import { cursor } from "./cursor.js";
import { column, countUpTo, digits, STEPS_X, STEPS_Y } from "./data.js";
import { frame, needleIn, rule } from "./frame.js";
import { dashes, html, mark, path, sample, TEXT, widthOf } from "./marks.js";

const HEIGHT = 284;
const FORCED = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [1, 3], [12, 3]];
const Y = { title: "Share of samples at or below", low: 0, high: 1, unit: "", log: false, share: true };

export function read(figure) {
  for (const line of figure.lines) {
    line.xs = column(line.x, figure.x, STEPS_X);
    line.ys = column(line.y, Y, STEPS_Y);
  }
  return figure;
}

export function draw(figure, host, width) {
  const plot = frame(figure, host, width, HEIGHT, figure.x, Y);
  const { svg, x, y, left, right } = plot;
  plot.grid();
  if (figure.rule) rule(plot, figure.rule);
  const lines = figure.lines.map((line, number) => {
    const group = mark("g", { "data-colour": line.colour }, svg);
    mark("path", {
      class: "curve main",
      d: path(line.xs.map(x.at), line.ys.map(y.at), true),
      stroke: line.colour,
      // Where curves coincide, the lower ones show beside the upper.
      "stroke-width": Math.min(3.4, 1.6 + 0.45 * (figure.lines.length - 1 - number)),
      "stroke-dasharray": dashes(dashOf(line, number)),
    }, group);
    return line;
  });
  if (lines.length > 1) labels(figure, svg, x, y, left, right);
  const entries = legend(figure, host);
  const needle = needleIn(plot, false);
  const dots = mark("g", { class: "dots" }, svg);
  const at = (line, share) => line.xs[Math.min(countUpTo(line.ys, share - 1e-9), line.xs.length - 1)];
  const value = (line, share) => `${digits(at(line, share))} ${figure.x.unit}`;
  const say = (share) =>
    `${Math.round(share * 100)} % at or below: ${lines.map((line) => `${line.label} ${value(line, share)}`).join(", ")}`;
  const show = (share) => {
    handle.show(share);
    needle.setAttribute("visibility", share === undefined ? "hidden" : "visible");
    dots.replaceChildren();
    entries.level.textContent = share === undefined ? "Median" : `${Math.round(share * 100)} % at or below`;
    for (const [number, line] of lines.entries()) {
      entries.figures[number].textContent = share === undefined ? line.note : value(line, share);
    }
    if (share === undefined) return;
    for (const end of ["y1", "y2"]) needle.setAttribute(end, y.at(share));
    for (const line of lines) {
      mark("circle", { cx: x.at(at(line, share)), cy: y.at(share), r: 3.5, fill: line.colour }, dots);
    }
  };
  const label = `Share of samples in ${figure.title}`;
  const handle = cursor(host);
  handle.place({ area: plot.area, axis: Y, vertical: true, back: y.back, moved: show, say, label });
  handle.show(undefined);
}

/**
 * Each curve's name beside it where no other curve is near, as high up as that is possible; curves that run together
 * all the way have theirs in the legend only.
 */
function labels(figure, svg, x, y, left, right) {
  const placed = [];
  // The rule, and its words at its left.
  const ruled = figure.rule ? [x.at(figure.rule[0]), x.at(figure.rule[0]) - TEXT - 4] : [];
  const at = (line, share) => x.at(line.xs[Math.min(countUpTo(line.ys, share), line.xs.length - 1)]);
  for (const line of figure.lines) {
    const need = widthOf(line.label) + 12;
    for (let share = 0.9; share > 0.05; share -= 0.05) {
      // A word is as high as a few per cent of the plot.
      const near = [share - 0.03, share, share + 0.03];
      const own = near.map((level) => at(line, level));
      const others = figure.lines.filter((other) => other !== line);
      const beside = [...ruled, ...others.flatMap((other) => near.map((level) => at(other, level)))];
      const [low, high] = [Math.min(...own), Math.max(...own)];
      if (beside.some((place) => place > low - 4 && place < high + 4)) continue;
      const rightRoom = Math.min(right, ...beside.filter((place) => place > high)) - high;
      const leftRoom = low - Math.max(left, ...beside.filter((place) => place < low));
      if (Math.max(rightRoom, leftRoom) < need) continue;
      const after = rightRoom >= need;
      const from = after ? high + 6 : low - 6 - widthOf(line.label);
      const row = y.at(share) + 4;
      const hits = (other) => Math.abs(other.row - row) < 13 && from < other.to && other.from < from + need;
      if (placed.some(hits)) continue;
      placed.push({ row, from, to: from + need });
      mark("text", { class: "label", x: from, y: row, "data-colour": line.colour }, svg, line.label);
      break;
    }
  }
}

/** Where the system chooses the colours, dashes tell the curves apart. */
function dashOf(line, number) {
  return matchMedia("(forced-colors: active)").matches ? FORCED[number % FORCED.length] : line.dash;
}

function legend(figure, host) {
  const level = html("p", { class: "level" }, host, "Median");
  const list = html("ul", { class: "legend" }, host);
  const figures = figure.lines.map((line, number) => {
    const entry = html("li", { "data-colour": line.colour }, list);
    sample(line.colour, dashOf(line, number), entry);
    html("span", {}, entry, line.label);
    return html("b", {}, entry, line.note);
  });
  return { level, figures };
}
