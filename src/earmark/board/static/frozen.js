// A frozen copy has no server: here the table that is on the page is searched, filtered and sorted. The part of the
// address after # keeps what was asked for, so that a view can be shared. Without this script it is a plain table.
(() => {
  const FILTERED = ["Family", "Licence", "Training-free"];
  const start = () => {
    const table = document.querySelector("#results table");
    if (!table || !table.tBodies.length) return;
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const rows = [...body.rows].filter((row) => row.cells.length > 1);
    const titles = heads.map((head) => (head.firstChild ? head.firstChild.textContent.trim() : ""));
    const name = heads.findIndex((head) => head.classList.contains("name"));
    const text = (row, column) => {
      const cell = row.cells[column];
      return cell && cell.firstChild ? cell.firstChild.textContent.trim() : "";
    };
    const words = rows.map((row) => [row.cells[name].textContent, ...FILTERED.map((title) => (titles.includes(title) ? text(row, titles.indexOf(title)) : ""))].join("\n").toLowerCase());
    const number = (shown) => {
      const value = parseFloat(shown.replace("−", "-").replace(/^[^\d-]+/, ""));
      return Number.isNaN(value) ? null : value;
    };

    const form = document.createElement("div");
    form.className = "filters";
    form.setAttribute("role", "search");
    form.setAttribute("aria-label", "What the table shows");
    const field = (label, input) => {
      const box = document.createElement("div");
      box.className = "field";
      const title = document.createElement("label");
      input.id = `frozen-${label.toLowerCase()}`;
      title.htmlFor = input.id;
      title.textContent = label;
      box.append(title, input);
      form.append(box);
      return input;
    };
    const search = field("Search", document.createElement("input"));
    search.type = "search";
    const filters = FILTERED.filter((title) => titles.includes(title)).map((title) => {
      const column = titles.indexOf(title);
      const known = [...new Set(rows.map((row) => text(row, column)))].sort((a, b) => a.localeCompare(b));
      if (known.length < 2) return null;
      const select = field(title, document.createElement("select"));
      select.append(new Option("any", ""), ...known.map((each) => new Option(each === "—" ? "not stated" : each, each)));
      return { title, column, select };
    }).filter(Boolean);
    const count = document.createElement("p");
    count.className = "quiet";
    count.setAttribute("role", "status");
    form.append(count);
    document.getElementById("results").prepend(form);

    let sort = -1; // a column; -1 is the order of the copy
    let down = false;
    const show = (keep = true) => {
      const sought = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = rows.filter((row, place) => sought.every((word) => words[place].includes(word)) && filters.every(({ column, select }) => !select.value || text(row, column) === select.value));
      if (sort >= 0) {
        const keys = new Map(fits.map((row) => {
          const shown = text(row, sort);
          const value = heads[sort].classList.contains("n") ? number(shown) : shown.toLowerCase();
          return [row, value === "—" || value === "" ? null : value];
        }));
        const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
        fits.sort((one, other) => {
          const [a, b] = [keys.get(one), keys.get(other)];
          if (a === null || b === null) return (a === null) - (b === null); // what is missing stays last
          return down ? compare(b, a) : compare(a, b);
        });
      }
      const whole = sort < 0 && fits.length === rows.length;
      body.replaceChildren(...(whole ? original : fits));
      heads.forEach((head, column) => {
        if (column === sort) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      count.textContent = fits.length === rows.length ? `${rows.length} lines` : `${fits.length} of ${rows.length} lines`;
      if (!keep) return;
      const asked = new URLSearchParams();
      if (search.value) asked.set("q", search.value);
      filters.forEach(({ title, select }) => { if (select.value) asked.set(title.toLowerCase(), select.value); });
      if (sort >= 0) asked.set("sort", `${titles[sort]}${down ? " down" : ""}`);
      window.history.replaceState(null, "", `#${asked}`);
    };
    const original = [...body.rows];

    heads.forEach((head, column) => {
      if (!titles[column]) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(head.firstChild);
      head.prepend(button);
      button.addEventListener("click", () => {
        const first = head.hasAttribute("data-down");
        if (sort === column && down !== first) sort = -1; // a third click: as it was
        else [sort, down] = [column, sort === column ? !down : first];
        show();
      });
    });
    search.addEventListener("input", () => show());
    filters.forEach(({ select }) => select.addEventListener("change", () => show()));

    const asked = new URLSearchParams(window.location.hash.slice(1));
    search.value = asked.get("q") || "";
    filters.forEach(({ title, select }) => { select.value = asked.get(title.toLowerCase()) || ""; });
    const order = asked.get("sort") || "";
    down = order.endsWith(" down");
    sort = order ? titles.indexOf(down ? order.slice(0, -5) : order) : -1;
    show(false);
  };
  document.addEventListener("DOMContentLoaded", start);
})();
