// A figure over time on the page of a report: its cursor, and the part of the time axis that it shows, are those of its section.

import { cursor } from "./cursor.js";
import { html } from "./marks.js";

/** Draws it, and again for another part of the axis; `paint(figure, host)` returns what timelines.js' `panels` does. */
export function linked(figure, host, link, paint) {
  const inner = html("div", {}, host);
  const handle = cursor(host);
  let plot;
  link.follow((time, view, anew) => {
    if (!plot || anew) {
      inner.replaceChildren();
      plot = paint(view ? { ...figure, x: { ...figure.x, ...view } } : figure, inner);
      handle.place({ ...plot.reading, whole: figure.x, moved: link.move, zoom: link.zoom });
    }
    handle.show(time);
    plot.show(time);
  });
}
