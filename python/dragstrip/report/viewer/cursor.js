// The cursor of a plot: follows mouse, finger and arrow keys, and says where it is as a slider does.

import { html } from "./marks.js";

/**
 * Lays a slider over `area` ({left, top, width, height}, pixels of the plot) of `host`. `axis` gives the range,
 * `vertical` its direction, `back` pixel → value (or `locate(event, box)` → value), `moved(value | undefined)` what to do, and `say(value)` the words.
 */
export function cursor(host, area, axis, options) {
  const { vertical, back, locate, moved, say, label } = options;
  const handle = html("div", { class: "cursor", role: "slider", tabindex: "0", "aria-label": label }, host);
  handle.setAttribute("aria-orientation", vertical ? "vertical" : "horizontal");
  handle.setAttribute("aria-valuemin", axis.low);
  handle.setAttribute("aria-valuemax", axis.high);
  handle.setAttribute("aria-valuenow", axis.low);
  handle.setAttribute("aria-valuetext", "arrow keys read the figure");
  // Positions through the object model: the page's policy forbids style attributes.
  for (const key of ["left", "top", "width", "height"]) handle.style[key] = `${area[key]}px`;
  const cursorState = { value: undefined };

  const within = (value) => Math.min(axis.high, Math.max(axis.low, value));
  const place = (event) => {
    const box = handle.getBoundingClientRect();
    return vertical
      ? area.top + ((event.clientY - box.top) / box.height) * area.height
      : area.left + ((event.clientX - box.left) / box.width) * area.width;
  };
  const move = (value) => moved(value === undefined ? undefined : within(value));
  const point = (event) => move(locate ? locate(event, handle.getBoundingClientRect()) : back(place(event)));
  handle.addEventListener("pointermove", point);
  handle.addEventListener("pointerdown", point);
  handle.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && move(undefined));
  handle.addEventListener("keydown", (event) => {
    const next = key(event, cursorState.value, axis);
    if (next === null) return;
    event.preventDefault();
    move(next);
  });
  return {
    show(value) {
      cursorState.value = value;
      if (value === undefined) return;
      handle.setAttribute("aria-valuenow", value.toPrecision(4));
      handle.setAttribute("aria-valuetext", say(value));
    },
  };
}

/** The value after a key: null where the key means nothing here, undefined to take the cursor away. */
export function key(event, value, axis) {
  const log = axis.log;
  const low = log ? Math.log10(axis.low) : axis.low;
  const high = log ? Math.log10(axis.high) : axis.high;
  const at = value === undefined ? low - (axis.step ?? 0) : log ? Math.log10(value) : value;
  const step = axis.step ?? ((high - low) / 100) * (event.shiftKey ? 10 : 1);
  const places = {
    ArrowRight: at + step,
    ArrowUp: at + step,
    ArrowLeft: at - step,
    ArrowDown: at - step,
    PageUp: at + 10 * step,
    PageDown: at - 10 * step,
    Home: low,
    End: high,
  };
  if (event.key === "Escape") return undefined;
  if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in places)) return null;
  const next = Math.min(high, Math.max(low, places[event.key]));
  return log ? 10 ** next : next;
}
