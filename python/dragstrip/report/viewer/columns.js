// A curve as a column of pixels for each pixel of the time axis: filled on a canvas, since stroking is what costs.

/** Least and greatest height of each pixel of a line, joined to the pixel before; -1 where nothing is. */
export function columns(line, greatest, height) {
  const count = line.length / 4;
  const made = new Int32Array(2 * count).fill(-1);
  let before = NaN;
  const y = (value) => Math.round(height - (Math.min(value, greatest) / greatest) * height);
  for (let x = 0; x < count; x++) {
    if (Number.isNaN(line[4 * x])) {
      // Between samples a value holds.
      if (!Number.isNaN(before)) made[2 * x] = made[2 * x + 1] = y(before);
      continue;
    }
    const known = !Number.isNaN(before);
    made[2 * x] = y(known ? Math.max(before, line[4 * x + 2]) : line[4 * x + 2]);
    made[2 * x + 1] = y(known ? Math.min(before, line[4 * x + 1]) : line[4 * x + 1]);
    before = line[4 * x + 3];
  }
  // After the last value nothing is known.
  let last = count - 1;
  while (last >= 0 && Number.isNaN(line[4 * last])) last--;
  made.fill(-1, 2 * (last + 1));
  return made;
}

/** The last value at or before a pixel, NaN before the first. */
export function valueAtPixel(line, pixel) {
  for (let x = Math.min(pixel, line.length / 4 - 1); x >= 0; x--) if (!Number.isNaN(line[4 * x])) return line[4 * x + 3];
  return NaN;
}

/** The greatest value of lines. */
export function greatestOf(lines) {
  let most = 0;
  for (const line of lines) for (let at = 2; at < line.length; at += 4) if (line[at] > most) most = line[at];
  return most;
}

/** Whether a pixel is within a dash of the pattern. */
function dashed(x, pattern) {
  let rest = x % pattern.reduce((sum, part) => sum + part, 0);
  let at = 0;
  while (rest >= pattern[at]) rest -= pattern[at++];
  return at % 2 === 0;
}

/** A canvas of that size over `host`, for sharp pixels. */
export function sheet(host, width, height) {
  const canvas = document.createElement("canvas");
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  host.append(canvas);
  const to = canvas.getContext("2d");
  to.scale(ratio, ratio);
  return to;
}

/** Fills the columns of a line from `left` on, within a panel from `top` down; values are up to `greatest`. */
export function fill(to, { columns: line, colour, dash, opacity }, { left, top, height, greatest }) {
  to.fillStyle = colour;
  to.globalAlpha = opacity;
  const made = columns(line, greatest, height);
  for (let x = 0; 2 * x < made.length; x++) {
    if (made[2 * x] < 0 || (dash[1] && !dashed(x, dash))) continue;
    to.fillRect(left + x, top + made[2 * x] - 1, 1, made[2 * x + 1] - made[2 * x] + 2);
  }
  to.globalAlpha = 1;
}
