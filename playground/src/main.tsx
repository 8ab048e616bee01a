// Mounts the page.
import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { App } from "./app";
import { createPlayground } from "./playground";
import "../../python/dragstrip/report/viewer/chart.css";
import "./style.css";

const playground = createPlayground();
const scheme = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(scheme.matches);
scheme.addEventListener("change", (event) => (dark.value = event.matches));

render(<App playground={playground} dark={dark} />, document.getElementById("app")!);
effect(() => {
  const picture = playground.session.picture.value;
  document.title = picture ? `${picture.flows.slice(0, 4).map((flow) => flow.label).join(", ")}: Dragstrip` : "Dragstrip: playground";
});
// In a notebook's cell: the race as an experiment, for the widget around the frame (python/dragstrip/playground/widget.js).
effect(() => {
  const experiment = playground.session.picture.value?.experiment;
  if (experiment && window.parent !== window) window.parent.postMessage({ dragstripExperiment: JSON.stringify(experiment) }, "*");
});
playground.start();
