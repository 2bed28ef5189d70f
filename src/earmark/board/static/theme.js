// Light or dark: what the reader chose last, else what the system prefers. Loaded in the head, before anything is drawn.
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }
  };
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const chosen = stored();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  root.classList.add("js");

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const name = () => {
      const other = current() === "dark" ? "light" : "dark";
      button.textContent = other === "dark" ? "☾" : "☀";
      button.setAttribute("aria-label", `Show the pages in ${other} colours`);
      button.title = `Show the pages in ${other} colours`;
    };
    button.hidden = false;
    name();
    const announce = () => {
      name();
      document.dispatchEvent(new CustomEvent("earmark:theme"));
    };
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it holds for this page */ }
      announce();
    });
    dark.addEventListener("change", announce);
  });
})();
