// SVG elements: lines, boxes and words. Colours are attributes that the style sheet exchanges on dark pages.

const SVG = "http://www.w3.org/2000/svg";
// Of text in figures, in pixels; page.css says the same.
export const TEXT = 11;

export function mark(name, attributes, parent, words) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(key, value);
  }
  if (words !== undefined) element.textContent = words;
  if (parent) parent.append(element);
  return element;
}

export function html(name, attributes, parent, words) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (words !== undefined) element.textContent = words;
  if (parent) parent.append(element);
  return element;
}

let ruler;

/** How wide a text is in the figures' font. */
export function widthOf(text, size = TEXT) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `${size}px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif`;
  return ruler.measureText(text).width;
}

const short = (value) => Math.round(value * 10) / 10;

/** The path of a curve; `step`: each value holds until the next. */
export function path(xs, ys, step) {
  const parts = [];
  for (let i = 0; i < xs.length; i++) {
    const x = short(xs[i]);
    const y = short(ys[i]);
    if (i === 0) parts.push(`M${x} ${y}`);
    else if (step) parts.push(`H${x}V${y}`);
    else parts.push(`L${x} ${y}`);
  }
  return parts.join("");
}

/** A dash pattern as SVG wants it; none for a solid line. */
export function dashes(pattern) {
  return pattern[1] === 0 ? undefined : pattern.join(" ");
}

/** A short piece of the line, to stand beside its name. */
export function sample(colour, dash, parent, depth) {
  const box = mark("svg", { class: "key", width: 22, height: 10, viewBox: "0 0 22 10", "aria-hidden": "true" }, parent);
  if (depth === undefined) {
    const line = { x1: 0, y1: 5, x2: 22, y2: 5, stroke: colour, "stroke-width": 2.5 };
    mark("line", { ...line, "stroke-dasharray": dashes(dash) }, box);
  } else {
    mark("rect", { x: 5, y: 0, width: 12, height: 10, fill: colour, "fill-opacity": depth }, box);
  }
  return box;
}

/** The picture of a figure, empty, with its words for those who do not see it. */
export function picture(figure, width, height, parent) {
  const label = `${figure.title}. ${figure.words}`;
  const box = { viewBox: `0 0 ${width} ${height}`, width, height };
  return mark("svg", { ...box, class: "plot", role: "img", "aria-label": label }, parent);
}
