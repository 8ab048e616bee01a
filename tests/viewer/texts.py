"""Texts of pictures that overlap each other, or leave their picture, as a browser lays them out."""

FAULTS = """(() => {
  const seen = [...document.querySelectorAll("%s")].filter((svg) => svg.checkVisibility());
  const faults = [];
  for (const svg of seen) {
    const around = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map((text) => {
      const {left, right, top, bottom} = text.getBoundingClientRect();
      const beyond = (right - left) * %s;
      const share = {start: 0, middle: 0.5, end: 1}[getComputedStyle(text).textAnchor];
      const box = {left: left + beyond * share, right: right - beyond * (1 - share), top, bottom};
      return [text.textContent, text, box];
    });
    for (const [words, , box] of boxes)
      if (box.left < around.left - 1 || box.right > around.right + 1 || box.top < around.top - 1
          || box.bottom > around.bottom + 1) faults.push(["outside", words]);
    for (const [i, [words, text, a]] of boxes.entries())
      for (const [others, other, b] of boxes.slice(i + 1)) {
        const turned = [text, other].some((it) => it.hasAttribute("transform"));
        if (turned) continue;  // the box of a turned text is larger than the text
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 0.5 && high > 2.5) faults.push(["overlap", words, others]);
      }
  }
  return [seen.length, faults];
})()"""


HELVETICA = 0.13
"""Part by which DejaVu Sans, which stands in for Helvetica here, is wider (Liberation Sans has its widths)."""


def texts(selector: str, wider: float = 0.0) -> str:
    """The expression that gives the number of visible pictures of this selector, and the faults in them.

    `wider` is the part of a text's width that the browser's font adds to that which the picture was drawn for.
    """
    return FAULTS % (selector, wider)
