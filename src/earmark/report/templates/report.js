"use strict";
// Nothing here is needed to read the report: tables sort and filter, one sound plays at a time.
document.documentElement.classList.add("js");

const sortValue = (cell) => {
  const text = (cell?.dataset.value ?? cell?.textContent ?? "").trim().replace("\u2212", "-");
  const number = parseFloat(text);
  return Number.isNaN(number) ? text.toLowerCase() : number;
};

const compare = (a, b) => {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
};

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [sortValue(row.cells[column]), row]);
      rows.sort((one, other) => (down ? -1 : 1) * compare(one[0], other[0]));
      body.append(...rows.map(([, row]) => row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
}

for (const table of document.querySelectorAll("table[data-filter]")) {
  const input = document.createElement("input");
  input.type = "search";
  input.className = "filter";
  input.placeholder = "Filter these lines";
  input.setAttribute("aria-label", "Filter the lines of the table");
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  table.parentElement.before(input);
}

document.addEventListener("play", (event) => {
  for (const sound of document.querySelectorAll("audio")) if (sound !== event.target) sound.pause();
}, true);

window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
