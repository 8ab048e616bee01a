// The playground in a notebook's cell: the whole page in a frame, and its race back as an experiment.
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "Dragstrip";
  frame.style.cssText = "width:100%;height:900px;border:0";
  frame.srcdoc = model.get("page");
  const hear = (event) => {
    if (event.source !== frame.contentWindow || typeof event.data?.dragstripExperiment !== "string") return;
    model.set("experiment", event.data.dragstripExperiment);
    model.save_changes();
  };
  window.addEventListener("message", hear);
  el.append(frame);
  return () => window.removeEventListener("message", hear);
}

export default { render };
