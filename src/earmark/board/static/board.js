// What only a browser can do: count the systems chosen for a comparison, and copy what stands in a box.
(() => {
  const most = 6;
  const count = () => {
    const chosen = document.querySelectorAll("#results input[name=s]:checked").length;
    const button = document.getElementById("compare");
    if (!button) return;
    button.textContent = chosen ? `Compare ${chosen}` : "Compare";
    button.disabled = chosen < 2 || chosen > most;
    document.querySelectorAll("#results input[name=s]:not(:checked)").forEach((box) => { box.disabled = chosen >= most; });
  };
  document.addEventListener("change", (event) => { if (event.target.name === "s") count(); });
  document.addEventListener("htmx:afterSettle", count);
  document.addEventListener("DOMContentLoaded", () => {
    count();
    document.querySelectorAll("button[data-copy]").forEach((button) => {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        const words = button.textContent;
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = words; }, 1500);
      });
    });
  });
})();
