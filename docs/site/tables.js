// Tables in `.sortable` are sorted by a click on a column's head; cells of `.heat` are shaded by their number.
const number = (cell) => Number.parseFloat(cell.textContent.replace("\u2212", "-"));

function sort(table, column, head) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows];
  const value = (row) => row.cells[column];
  rows.sort((a, b) => {
    const [x, y] = [number(value(a)), number(value(b))];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    const order = Number.isNaN(x) ? value(a).textContent.localeCompare(value(b).textContent) : x - y;
    return descending ? -order : order;
  });
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll(".sortable table")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, column, head));
  });
}
for (const cell of document.querySelectorAll(".heat td + td")) {
  const share = number(cell);
  if (!Number.isNaN(share)) cell.style.setProperty("--share", `${Math.max(0, Math.min(100, share)) * 0.6}%`);
}
