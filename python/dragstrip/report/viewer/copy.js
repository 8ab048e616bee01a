// Commands that a page shows, copied by a click, a tap or Enter.

const TOLD_MS = 2000;

/** Every `code.copy` of the page becomes a button. */
export function watch() {
  for (const code of document.querySelectorAll("code.copy")) {
    code.tabIndex = 0;
    code.setAttribute("role", "button");
    code.title = "click to copy";
    code.addEventListener("click", () => copy(code));
    code.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      copy(code);
    });
  }
}

/** By the selection: the clipboard's own interface is refused to a page that was opened as a file. */
function copy(code) {
  const selection = getSelection();
  const range = document.createRange();
  range.selectNodeContents(code);
  selection.removeAllRanges();
  selection.addRange(range);
  const done = document.execCommand("copy");
  code.dataset.copied = done ? "copied" : "selected";
  if (done) selection.removeAllRanges();
  setTimeout(() => delete code.dataset.copied, TOLD_MS);
}
