// Shows and hides algorithms. Without it the page is complete, and the boxes stay hidden.
(() => {
  const form = document.querySelector(".toggles");
  const style = document.head.appendChild(document.createElement("style"));
  form.hidden = false;
  form.addEventListener("change", () => {
    const boxes = [...form.querySelectorAll("input")];
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const faded = boxes.filter((box) => !box.checked).map((box) => box.dataset.colour);
    style.textContent = faded
      .map((colour) => `.picture:not(.path) [stroke="${colour}"],.picture:not(.path) [fill="${colour}"]{opacity:.07}`)
      .join("");
    for (const part of document.querySelectorAll("[data-algorithms]")) {
      const any = part.dataset.algorithms.split(" ").some((name) => shown.has(name));
      part.toggleAttribute("data-hidden", !any);
    }
  });
})();
