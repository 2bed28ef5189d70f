// What is pointed at, or has the focus, comes forward everywhere on the page: its mark, its name, its line of a table.
// A box says what it is; without this script a mark's own title does. A click on a mark opens the system's page.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  const texts = new WeakMap();
  const textOf = (mark) => {
    if (!texts.has(mark)) {
      const title = mark.querySelector(":scope > title");
      texts.set(mark, title ? title.textContent : "");
      if (title) title.remove(); // else the browser's own box would come too
    }
    return texts.get(mark);
  };
  const marked = (target) => (target.closest ? target.closest("[data-s]") : null);
  const said = (target) => (target.closest ? target.closest("svg.chart use, svg.chart rect, svg.chart circle, svg.chart g[data-t]") : null);

  let current = "";
  const highlight = (key) => {
    if (key === current) return;
    current = key;
    document.querySelectorAll(".on").forEach((each) => each.classList.remove("on"));
    const same = key ? document.querySelectorAll(`[data-s="${CSS.escape(key)}"]`) : [];
    same.forEach((each) => each.classList.add("on"));
    document.querySelectorAll("svg.chart").forEach((chart) => chart.classList.toggle("pointing", !!chart.querySelector(".on")));
  };
  const show = (text, x, y) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const wide = document.documentElement.clientWidth;
    tip.style.left = "0";
    const left = Math.max(4, Math.min(x + 12, wide - tip.offsetWidth - 8));
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${y + window.scrollY + 14}px`;
  };
  const drop = () => { highlight(""); show(""); };

  document.addEventListener("pointerover", (event) => {
    const mark = said(event.target);
    const system = marked(event.target);
    highlight(system ? system.dataset.s : "");
    show(mark ? textOf(mark) : "", event.clientX, event.clientY);
  });
  document.addEventListener("pointerleave", drop);
  document.addEventListener("focusin", (event) => {
    const system = marked(event.target);
    highlight(system ? system.dataset.s : "");
    const mark = system && system.closest(".labels") && document.querySelector(`svg.chart use[data-s="${CSS.escape(system.dataset.s)}"]`);
    const box = mark && mark.getBoundingClientRect();
    show(mark ? textOf(mark) : "", box ? box.right : 0, box ? box.bottom : 0);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") drop(); });
  document.addEventListener("click", (event) => {
    const mark = event.target.closest && event.target.closest("svg.chart [data-s]");
    if (!mark || event.target.closest("a")) return;
    const link = document.querySelector(`a[href][data-s="${CSS.escape(mark.dataset.s)}"], tr[data-s="${CSS.escape(mark.dataset.s)}"] a[href]`);
    const base = mark.closest("[data-href]");
    const address = link ? link.getAttribute("href") : base ? base.dataset.href.replace("*", mark.dataset.s) : "";
    if (address) window.location.assign(address);
  });
  document.addEventListener("DOMContentLoaded", () => document.body.append(tip));
})();
