// What figures with one pair of axes share: places and scales, the grid, a needle, an upright rule.

import { labelWidth, scale, xAxis, yAxis } from "./axes.js";
import { mark, picture } from "./marks.js";

const TOP = 24;
const FOOT = 40;

/** A picture with room for the axes `horizontal` and `vertical`, and the latter's title over it; `grid` draws them. */
export function frame(figure, host, width, height, horizontal, vertical) {
  const [left, right, top, bottom] = [10 + labelWidth(vertical, 4), width - 10, TOP, height - FOOT];
  const svg = picture(figure, width, height, host);
  const x = scale(horizontal, left, right);
  const y = scale(vertical, bottom, top);
  const grid = () => {
    yAxis(svg, vertical, y, left, right, 4);
    xAxis(svg, horizontal, x, top, bottom, (right - left) / 60, true);
    mark("text", { class: "title", x: 0, y: 12 }, svg, vertical.title);
  };
  const area = { left, top, width: right - left, height: bottom - top };
  return { svg, x, y, left, right, top, bottom, area, grid };
}

/** A line that follows the cursor: upright, or level. */
export function needleIn({ svg, left, right, top, bottom }, upright) {
  const ends = upright ? { y1: top, y2: bottom } : { x1: left, x2: right };
  return mark("line", { class: "needle", ...ends, visibility: "hidden" }, svg);
}

/** A dashed line at a value of the horizontal axis, with its meaning along it. */
export function rule({ svg, x, top, bottom }, [value, words]) {
  const at = x.at(value);
  mark("line", { class: "rule", x1: at, x2: at, y1: top, y2: bottom }, svg);
  const place = `translate(${at - 4},${(top + bottom) / 2}) rotate(-90)`;
  mark("text", { class: "tick", transform: place, "text-anchor": "middle" }, svg, words);
}
