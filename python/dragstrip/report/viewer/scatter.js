// One quantity against another: a cloud of points per contender, an ellipse around it, its medians; the cursor reads the nearest.

import { cursor } from "./cursor.js";
import { column, digits, STEPS_X, STEPS_Y } from "./data.js";
import { frame, needleIn, rule } from "./frame.js";
import { dashes, html, mark, path, sample, widthOf } from "./marks.js";

const HEIGHT = 284;

export function read(figure) {
  for (const cloud of figure.clouds) {
    for (const part of ["points", "ellipse"]) {
      const [xs, ys] = cloud[part];
      cloud[part] = { xs: column(xs, figure.x, STEPS_X), ys: column(ys, figure.y, STEPS_Y) };
    }
  }
  return figure;
}

export function draw(figure, host, width) {
  const plot = frame(figure, host, width, HEIGHT, figure.x, figure.y);
  const { svg, x, y, left, right, top, bottom } = plot;
  plot.grid();
  // Beside the axis's title: in the corner itself a point, its name or the rule would cover it.
  if (figure.corner) mark("text", { class: "tick", x: widthOf(figure.y.title) + 14, y: 12 }, svg, figure.corner);
  if (figure.rule) rule(plot, figure.rule);
  for (const cloud of figure.clouds) {
    const group = mark("g", { "data-colour": cloud.colour }, svg);
    const { xs, ys } = cloud.points;
    for (let i = 0; i < xs.length; i++) {
      mark("circle", { cx: x.at(xs[i]), cy: y.at(ys[i]), r: 1.8, fill: cloud.colour, "fill-opacity": 0.35 }, group);
    }
    const outline = path(Array.from(cloud.ellipse.xs, x.at), Array.from(cloud.ellipse.ys, y.at), false);
    const look = { stroke: cloud.colour, "stroke-width": 1.5, "stroke-dasharray": dashes(cloud.dash) };
    if (outline) mark("path", { class: "curve", d: outline, ...look }, group);
  }
  // Medians and names over all clouds.
  const rows = [];
  const dots = figure.clouds.map(({ middle }) => ({ row: y.at(middle[1]) + 4, middle: x.at(middle[0]), half: 5 }));
  for (const [number, cloud] of figure.clouds.entries()) {
    const group = mark("g", { class: "dots", "data-colour": cloud.colour }, svg);
    const [atX, atY] = [x.at(cloud.middle[0]), y.at(cloud.middle[1])];
    const place = cloud.link ? mark("a", { href: cloud.link, "aria-label": `${cloud.label} over time` }, group) : group;
    mark("circle", { cx: atX, cy: atY, r: 5, fill: cloud.colour }, place);
    if (cloud.published) {
      const at = { cx: x.at(cloud.published[0]), cy: y.at(cloud.published[1]), r: 5 };
      mark("circle", { ...at, class: "published", fill: "none", stroke: cloud.colour, "stroke-width": 1.8 }, group);
    }
    const half = widthOf(cloud.label) / 2;
    const middle = Math.max(left + half, Math.min(atX, right - half));
    // Above its dot or beneath it, clear of other names and dots; where neither is free, the legend alone has its name.
    const near = (row) => (other) =>
      Math.abs(other.row - row) < 14 && Math.abs(other.middle - middle) < other.half + half + 4;
    const row = [atY - 9, atY + 18].find((row) => row > top && row < bottom && ![...rows, ...dots.toSpliced(number, 1)].some(near(row)));
    if (row === undefined) continue;
    rows.push({ row, middle, half });
    mark("text", { class: "label", x: middle, y: row, "text-anchor": "middle" }, group, cloud.label);
  }
  const entries = legend(figure, host);
  const needle = needleIn(plot, true);
  const ring = mark("circle", { cx: left, cy: bottom, r: 5, class: "needle", fill: "none", visibility: "hidden" }, svg);
  const named = ([one, other]) => `${digits(one)} ${figure.x.unit}, ${digits(other)} ${figure.y.unit}`;
  const say = (value) => {
    const found = nearest(figure, value);
    return found ? `${found.cloud.label} ${named([found.x, found.y])}` : "nothing near";
  };
  const show = (value) => {
    handle.show(value);
    const found = value === undefined ? undefined : nearest(figure, value);
    for (const part of [needle, ring]) part.setAttribute("visibility", found ? "visible" : "hidden");
    for (const [number, cloud] of figure.clouds.entries()) {
      entries[number].textContent = found?.cloud === cloud ? named([found.x, found.y]) : cloud.note;
    }
    if (!found) return;
    for (const end of ["x1", "x2"]) needle.setAttribute(end, x.at(found.x));
    ring.setAttribute("cx", x.at(found.x));
    ring.setAttribute("cy", y.at(found.y));
  };
  const label = `${figure.x.title} in ${figure.title}`;
  const handle = cursor(host);
  handle.place({ area: plot.area, axis: figure.x, back: x.back, moved: show, say, label });
  handle.show(undefined);
}

/** The point whose x is nearest. */
function nearest(figure, value) {
  let found;
  for (const cloud of figure.clouds) {
    const { xs, ys } = cloud.points;
    for (let i = 0; i < xs.length; i++) {
      const far = Math.abs(xs[i] - value);
      if (!found || far < found.far) found = { cloud, x: xs[i], y: ys[i], far };
    }
  }
  return found;
}

function legend(figure, host) {
  html("p", { class: "level" }, host, "Medians");
  const list = html("ul", { class: "legend" }, host);
  return figure.clouds.map((cloud) => {
    const entry = html("li", { "data-colour": cloud.colour }, list);
    sample(cloud.colour, cloud.dash, entry);
    html("span", {}, entry, cloud.label);
    return html("b", {}, entry, cloud.note);
  });
}
