// A figure's numbers as CSV, for the button beneath it: the rows of report/rows.py, from what the page carries.

const HEADS = {
  distribution: (figure) => ["name", figure.x.title, "share of samples at or below"],
  bars: (figure) => ["name", figure.axis.title, "least", "greatest"],
  interval: (figure) => ["name", figure.axis.title, "least", "greatest"],
  shares: () => ["name", "from (s)", "to (s)", "share"],
  pie: () => ["name", "total", "share"],
  scatter: (figure) => ["name", figure.x.title, figure.y.title],
  timelines: (figure) => ["panel", "name", figure.x.title, "value"],
};

const points = ({ xs, ys }, ...names) => Array.from(xs, (x, i) => [...names, x, ys[i]]);

const ROWS = {
  distribution: (figure) => figure.lines.flatMap((line) => points(line, line.label)),
  bars: (figure) => figure.rows.map((row) => [row.who, row.value, row.least, row.greatest]),
  interval: (figure) => ROWS.bars(figure),
  shares: (figure) => figure.parts.flatMap((part, number) => {
    const [above, below] = [figure.rows[number], figure.rows[number + 1]];
    const edges = figure.times;
    return Array.from({ length: above.length }, (_, i) => [part.label, edges[i], edges[i + 1], above[i] - below[i]]);
  }),
  pie: (figure) => {
    const all = figure.parts.reduce((sum, part) => sum + part.total, 0) || 1;
    return figure.parts.map((part) => [part.label, part.total, part.total / all]);
  },
  scatter: (figure) => figure.clouds.flatMap((cloud) => points(cloud.points, cloud.label)),
  timelines: (figure) => figure.panels.flatMap((panel) => panel.strokes.flatMap((stroke) =>
    stroke.read.flatMap((curve) => points(curve, panel.y.title, stroke.label)))),
};

const cell = (value) => {
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value; // a formula to a spreadsheet
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** All of it as text. */
export function csv(figure) {
  const rows = [HEADS[figure.kind](figure), ...ROWS[figure.kind](figure)];
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}

/** A button that gives the figure as a file. */
export function button(figure, parent, make) {
  const made = make("button", { type: "button", class: "csv" }, parent, "CSV");
  made.setAttribute("aria-label", `${figure.title} as CSV`);
  made.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([csv(figure)], { type: "text/csv" }));
    const link = make("a", { href: address, download: `${figure.name}.csv` }, parent);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}
