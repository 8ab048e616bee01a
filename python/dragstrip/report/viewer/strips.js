// What holds of something over time, in words: a strip per row, a piece per stretch.

import { TEXT } from "./marks.js";

/** Of a row: a line of words, and its pieces beneath. */
export const ROW = 22;
const THICK = 5;

/** Draws rows of `{name, pieces: [{from, to, word, colour}]}` on a sheet, from `top` down. */
export function strips(to, rows, x, top, left, right, ink) {
  to.font = `${TEXT}px system-ui, sans-serif`;
  to.textBaseline = "middle";
  rows.forEach((row, number) => {
    const y = top + number * ROW;
    let free = left;
    const write = (words, from) => {
      const wide = to.measureText(words).width + 8;
      to.fillStyle = ink;
      to.fillText(words, from, y + 8);
      free = from + wide;
    };
    write(`${row.name}:`, left + 2);
    for (const piece of row.pieces) {
      const [from, until] = [Math.max(left, x.at(piece.from)), Math.min(right, x.at(piece.to))];
      if (until < left || from > right) continue;
      to.fillStyle = piece.colour;
      to.fillRect(from, y + ROW - THICK - 1, Math.max(1, until - from), THICK);
      const begin = Math.max(from + 2, free);
      if (to.measureText(piece.word).width + 4 < until - begin) write(piece.word, begin);
    }
  });
}

/** The word of a row at a time, empty where none holds. */
export function wordAt(row, time) {
  return row.pieces.findLast(({ from, to }) => from <= time && time <= to)?.word ?? "";
}
