// Pixels of charts: columns filled from least to greatest, since stroking is what costs.
import type { Line, Picture } from "./protocol";

const LIGHT = ["#02387a", "#b04204", "#09745c", "#dc5c91", "#492600", "#0591f1", "#a48d3f", "#161616"];
const DARK = ["#57a9ff", "#dd5902", "#3d916f", "#a8709f", "#f7ba29", "#b3e6fe", "#f2f6bf", "#afafaf"];
const OWN = ["reno", "cubic", "vegas", "bbr", "cdg"];

export interface Look {
  dark: boolean;
  ink: string;
  faint: string;
  ghost: string;
}

export const TOP = 6;
export const LEFT = 52;
export const RIGHT = 104;

/** A colour's number for each flow: an algorithm's own, else the next of the rest. */
export function colours(ccs: readonly string[]): number[] {
  const others = [...new Set(ccs.filter((cc) => !OWN.includes(cc)))];
  return ccs.map((cc) => (OWN.includes(cc) ? OWN.indexOf(cc) : OWN.length + (others.indexOf(cc) % 3)));
}

export const colour = (number: number, dark: boolean): string => (dark ? DARK : LIGHT)[number % 8]!;

/** Least and greatest height of each pixel of a line, joined to the pixel before; -1 where nothing is. */
export function columns(line: Line, greatest: number, height: number): Int32Array {
  const count = line.length / 4;
  const made = new Int32Array(2 * count).fill(-1);
  let before = Number.NaN;
  const y = (value: number) => Math.round(height - (Math.min(value, greatest) / greatest) * height);
  for (let x = 0; x < count; x++) {
    const first = line[4 * x]!;
    if (Number.isNaN(first)) {
      // Between samples a value holds.
      if (!Number.isNaN(before)) made[2 * x] = made[2 * x + 1] = y(before);
      continue;
    }
    const least = Number.isNaN(before) ? line[4 * x + 1]! : Math.min(before, line[4 * x + 1]!);
    const most = Number.isNaN(before) ? line[4 * x + 2]! : Math.max(before, line[4 * x + 2]!);
    made[2 * x] = y(most);
    made[2 * x + 1] = y(least);
    before = line[4 * x + 3]!;
  }
  // After the last value nothing is known.
  let last = count - 1;
  while (last >= 0 && Number.isNaN(line[4 * last]!)) last--;
  made.fill(-1, 2 * (last + 1));
  return made;
}

export function greatestOf(lines: readonly Line[]): number {
  let most = 0;
  for (const line of lines) for (let at = 2; at < line.length; at += 4) if (line[at]! > most) most = line[at]!;
  return most;
}

/** A round number at or above, and the step of its ticks. */
export function rounded(most: number): { top: number; step: number } {
  if (!(most > 0)) return { top: 1, step: 1 };
  const unit = 10 ** Math.floor(Math.log10(most / 2.5));
  const step = [1, 2, 5, 10].map((it) => it * unit).find((it) => most / it <= 4) ?? 10 * unit;
  return { top: Math.ceil(most / step) * step, step };
}

/** Places of labels, moved apart so that none covers another. */
export function apart(wanted: readonly number[], gap: number, greatest: number): number[] {
  const order = wanted.map((_, at) => at).sort((a, b) => wanted[a]! - wanted[b]!);
  const made = [...wanted];
  let least = 0;
  for (const at of order) least = (made[at] = Math.max(made[at]!, least)) + gap;
  let most = greatest;
  for (const at of order.reverse()) most = (made[at] = Math.min(made[at]!, most)) - gap;
  return made;
}

/** The last value at or before a pixel. */
export function valueAtPixel(line: Line, pixel: number): number {
  for (let x = Math.min(pixel, line.length / 4 - 1); x >= 0; x--) if (!Number.isNaN(line[4 * x]!)) return line[4 * x + 3]!;
  return Number.NaN;
}

interface Curve {
  line: Line;
  colour: string;
  label: string;
  dashed?: boolean;
}

export interface Chart {
  height: number;
  curves: Curve[];
  ghosts: Line[];
  ticks: Line | null;
  scale: number;
  from: number;
  to: number;
  times: boolean;
}

export function drawChart(canvas: HTMLCanvasElement, width: number, chart: Chart, look: Look) {
  const ratio = devicePixelRatio || 1;
  const whole = chart.height + TOP + (chart.times ? 20 : 4);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(whole * ratio);
  canvas.style.height = `${whole}px`;
  const to = canvas.getContext("2d")!;
  to.scale(ratio, ratio);
  to.font = "12px system-ui, sans-serif";
  to.textBaseline = "middle";
  const inner = width - LEFT - RIGHT;
  const { top, step } = rounded(Math.max(greatestOf(chart.curves.map((it) => it.line)), greatestOf(chart.ghosts)) / chart.scale);
  to.textAlign = "right";
  for (let at = 0; at <= top + step / 2; at += step) {
    const y = Math.round(TOP + chart.height * (1 - at / top));
    to.fillStyle = look.faint;
    to.fillRect(LEFT, y, inner, 1);
    to.fillStyle = look.ink;
    to.fillText(String(Number(at.toPrecision(6))), LEFT - 6, y);
  }
  const span = (chart.to - chart.from) / 1e9;
  const { step: every } = rounded(span);
  to.textAlign = "center";
  for (let s = Math.ceil(chart.from / 1e9 / every) * every; s <= chart.to / 1e9 + 1e-9; s += every) {
    const x = Math.round(LEFT + ((s - chart.from / 1e9) / span) * inner);
    to.fillStyle = look.faint;
    to.fillRect(x, TOP, 1, chart.height);
    to.fillStyle = look.ink;
    if (chart.times) to.fillText(`${Number(s.toPrecision(6))} s`, x, TOP + chart.height + 12);
  }
  const fill = (line: Line, paint: string, dashed: boolean) => {
    to.fillStyle = paint;
    const made = columns(line, top * chart.scale, chart.height);
    for (let x = 0; 2 * x < made.length; x++) {
      if (made[2 * x]! < 0 || (dashed && x % 8 > 4)) continue;
      to.fillRect(LEFT + x, TOP + made[2 * x]! - 1, 1, made[2 * x + 1]! - made[2 * x]! + 2);
    }
  };
  for (const ghost of chart.ghosts) fill(ghost, look.ghost, false);
  for (const curve of chart.curves) fill(curve.line, curve.colour, curve.dashed ?? false);
  if (chart.ticks) {
    to.fillStyle = look.ink;
    for (let x = 0; 4 * x < chart.ticks.length; x++) if (chart.ticks[4 * x + 2]! > 0) to.fillRect(LEFT + x, TOP, 1, 8);
  }
  const named = chart.curves.filter((it) => it.label).slice(0, 8);
  const ends = named.map((it) => TOP + chart.height * (1 - valueAtPixel(it.line, 1e9) / chart.scale / top) || TOP);
  to.textAlign = "left";
  apart(ends, 15, TOP + chart.height).forEach((y, at) => {
    to.fillStyle = named[at]!.colour;
    to.fillRect(width - RIGHT + 6, y - 4, 8, 8);
    to.fillStyle = look.ink;
    to.fillText(named[at]!.label, width - RIGHT + 18, y, RIGHT - 20);
  });
}

/** Shares of the goodput, stacked. */
export function sharesOf(goodput: readonly Line[]): Line[] {
  const count = (goodput[0]?.length ?? 0) / 4;
  const made = goodput.map(() => new Float64Array(4 * count).fill(Number.NaN));
  const now = goodput.map(() => 0);
  let known = count - 1;
  while (known >= 0 && goodput.every((line) => Number.isNaN(line[4 * known]!))) known--;
  for (let x = 0; x <= known; x++) {
    goodput.forEach((line, at) => {
      if (!Number.isNaN(line[4 * x + 3]!)) now[at] = line[4 * x + 3]!;
    });
    const sum = now.reduce((a, b) => a + b, 0);
    if (sum > 0) now.forEach((value, at) => made[at]!.fill((100 * value) / sum, 4 * x, 4 * x + 4));
  }
  return made;
}

export function drawStrips(canvas: HTMLCanvasElement, width: number, picture: Picture, look: Look) {
  const ratio = devicePixelRatio || 1;
  const { strips, view } = picture;
  const rows = strips.limit.flatMap((limit, flow) => [
    { words: strips.stateWords, pieces: strips.state[flow]!, name: `${picture.flows[flow]!.label}: phase` },
    { words: strips.limitWords, pieces: limit, name: `${picture.flows[flow]!.label}: limit` },
  ]);
  const whole = rows.length * 22 + 4;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(whole * ratio);
  canvas.style.height = `${whole}px`;
  const to = canvas.getContext("2d")!;
  to.scale(ratio, ratio);
  to.font = "12px system-ui, sans-serif";
  to.textBaseline = "middle";
  const inner = width - LEFT - RIGHT;
  const x = (at: number) => LEFT + ((at - view.from) / (view.to - view.from)) * inner;
  rows.forEach((row, number) => {
    const y = number * 22 + 2;
    to.fillStyle = look.ink;
    to.textAlign = "left";
    to.fillText(row.name, width - RIGHT + 6, y + 9, RIGHT - 8);
    let free = 0;
    for (let at = 0; at < row.pieces.length; at += 3) {
      const [from, until, word] = [x(row.pieces[at]!), x(row.pieces[at + 1]!), row.pieces[at + 2]!];
      to.fillStyle = colour(word % 8, look.dark);
      to.fillRect(from, y + 15, Math.max(1, until - from), 4);
      const name = row.words[word] ?? "";
      if (from >= free && to.measureText(name).width + 4 < until - from) {
        to.fillStyle = look.ink;
        to.fillText(name, from + 2, y + 7);
        free = until;
      }
    }
  });
}

/** The Chiu–Jain plane: the goodput of two flows against each other. */
export function drawPlane(canvas: HTMLCanvasElement, side: number, picture: Picture, look: Look) {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(side * ratio);
  canvas.style.width = canvas.style.height = `${side}px`;
  const to = canvas.getContext("2d")!;
  to.scale(ratio, ratio);
  const [a, b] = picture.lines.goodput as [Line, Line];
  const top = Math.max(greatestOf([a, b]), picture.link?.rate_bps ?? 0) || 1;
  const inner = side - 34;
  const place = (x: number, y: number): [number, number] => [28 + (x / top) * inner, 6 + inner - (y / top) * inner];
  to.strokeStyle = look.faint;
  to.strokeRect(28, 6, inner, inner);
  const line = (from: [number, number], until: [number, number]) => {
    to.beginPath();
    to.moveTo(...from);
    to.lineTo(...until);
    to.stroke();
  };
  to.strokeStyle = look.ink;
  line(place(0, 0), place(top, top));
  if (picture.link?.rate_bps) line(place(0, picture.link.rate_bps), place(picture.link.rate_bps, 0));
  to.fillStyle = colour(1, look.dark);
  for (let x = 0; x < a.length / 4; x++) to.fillRect(...place(valueAtPixel(a, x), valueAtPixel(b, x)), 2, 2);
  to.fillStyle = look.ink;
  to.font = "12px system-ui, sans-serif";
  to.fillText(`${picture.flows[0]!.label} →`, 32, side - 8);
  to.save();
  to.translate(16, side - 34);
  to.rotate(-Math.PI / 2);
  to.fillText(`${picture.flows[1]!.label} →`, 0, 0);
  to.restore();
}
