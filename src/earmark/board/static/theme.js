// Light or dark: what the reader chose last, else what the system prefers. Loaded in the head, before anything is drawn.
// And who is signed in: pages that everybody shares do not know it, so the last page made for one reader tells them.
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = (name) => {
    try { return localStorage.getItem(name); } catch { return null; }
  };
  const store = (name, text) => {
    try { localStorage.setItem(name, text); } catch { /* it holds for this page */ }
  };
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const chosen = stored("theme");
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  root.classList.add("js");
  if ("visitor" in root.dataset) store("visitor", root.dataset.visitor);

  document.addEventListener("DOMContentLoaded", () => {
    const account = document.getElementById("account");
    if (account) account.textContent = stored("visitor") || "Sign in";
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
      store("theme", root.dataset.theme);
      announce();
    });
    dark.addEventListener("change", announce);
  });
})();
