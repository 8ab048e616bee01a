// The cursor of a plot: follows mouse, finger and keys, and says where it is as a slider does.

import { html } from "./marks.js";
import { pinched, zoomed } from "./zoom.js";

/** What the keys of a plot over time do, in words. */
export const KEYS = "arrows move, with Shift ten times as far; + and - zoom, 0 shows all; [ and ] go to marks; Escape";

/**
 * Lays a slider over a plot in `host`, and returns `place(now)`, which says what it lies over, and `show(value)`. `now` has
 * `area` ({left, top, width, height}, pixels of the plot), `axis` (its range), `vertical` (its direction), `back` (pixel →
 * value) or `locate(event, box)` (→ value), `moved(value | undefined)` (what to do), `say(value)` (the words) and `label`.
 * Where its axis can be zoomed, `whole` is all of it, and `zoom(view)` shows a part; `stops` are the values of marks.
 */
export function cursor(host) {
  const handle = html("div", { class: "cursor", role: "slider", tabindex: "0", hidden: "" }, host); // until it has a place
  const state = { value: undefined, now: undefined };
  const fingers = new Map();

  const move = (value) => {
    const { axis, moved } = state.now;
    moved(value === undefined ? undefined : Math.min(axis.high, Math.max(axis.low, value)));
  };
  const place = (event) => {
    const { area, vertical } = state.now;
    const box = handle.getBoundingClientRect();
    return vertical
      ? area.top + ((event.clientY - box.top) / box.height) * area.height
      : area.left + ((event.clientX - box.left) / box.width) * area.width;
  };
  const point = (event) => {
    const { axis, area, back, locate, whole, zoom } = state.now;
    if (zoom && event.pointerType === "touch") {
      const before = [...fingers.values()];
      fingers.set(event.pointerId, (place(event) - area.left) / area.width);
      const after = [...fingers.values()];
      if (before.length === 2 && after.length === 2) return zoom(pinched(axis, before, after, whole));
    }
    return move(locate ? locate(event, handle.getBoundingClientRect()) : back(place(event)));
  };
  const lift = (event) => fingers.delete(event.pointerId);
  handle.addEventListener("pointermove", point);
  handle.addEventListener("pointerdown", point);
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) handle.addEventListener(end, lift);
  handle.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && move(undefined));
  handle.addEventListener("keydown", (event) => {
    const { axis, whole, zoom, stops } = state.now;
    const by = zoom && !event.altKey && !event.ctrlKey && !event.metaKey ? { "+": 0.5, "-": 2, "0": 0 }[event.key] : undefined;
    const next = key(event, state.value, axis, stops);
    if (by === undefined && next === null) return;
    event.preventDefault();
    if (by === undefined) move(next);
    else zoom(zoomed(axis, by, state.value ?? (axis.low + axis.high) / 2, whole));
  });
  return {
    place(now) {
      state.now = now;
      handle.hidden = false;
      handle.setAttribute("aria-label", now.label);
      handle.setAttribute("aria-orientation", now.vertical ? "vertical" : "horizontal");
      handle.setAttribute("aria-valuemin", now.axis.low);
      handle.setAttribute("aria-valuemax", now.axis.high);
      // Positions through the object model: the page's policy forbids style attributes.
      for (const side of ["left", "top", "width", "height"]) handle.style[side] = `${now.area[side]}px`;
    },
    show(value) {
      state.value = value;
      const { axis, say, zoom } = state.now;
      handle.setAttribute("aria-valuenow", (value ?? axis.low).toPrecision(4));
      handle.setAttribute("aria-valuetext", value === undefined ? (zoom ? KEYS : "arrow keys read the figure") : say(value));
    },
  };
}

/** The value after a key: null where the key means nothing here, undefined to take the cursor away. */
export function key(event, value, axis, stops = []) {
  const log = axis.log;
  const low = log ? Math.log10(axis.low) : axis.low;
  const high = log ? Math.log10(axis.high) : axis.high;
  const at = value === undefined ? low - (axis.step ?? 0) : log ? Math.log10(value) : value;
  const step = axis.step ?? ((high - low) / 100) * (event.shiftKey ? 10 : 1);
  // Nearer than half a pixel or so is the mark that the cursor is at.
  const apart = (high - low) / 2000;
  const places = {
    ArrowRight: at + step,
    ArrowUp: at + step,
    ArrowLeft: at - step,
    ArrowDown: at - step,
    PageUp: at + 10 * step,
    PageDown: at - 10 * step,
    Home: low,
    End: high,
    "[": stops.findLast((stop) => stop < at - apart),
    "]": stops.find((stop) => stop > at + apart),
  };
  if (event.key === "Escape") return undefined;
  if (event.altKey || event.ctrlKey || event.metaKey || places[event.key] === undefined) return null;
  const next = Math.min(high, Math.max(low, places[event.key]));
  return log ? 10 ** next : next;
}
