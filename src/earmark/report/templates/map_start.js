// What joins plane and panel: choices, search, the address of the page, and the start.

const haystack = [];
const haystackOf = (row) => {
  if (haystack[row] === undefined) haystack[row] = [data.ids[row], labelOf(row), groupOf(row), data.files ? data.files.names[row] : ""].join("\n").toLowerCase();
  return haystack[row];
};

// Which clips are lit: those of the names brought forward that the search finds.
const refresh = () => {
  const wanted = state.query.trim().toLowerCase();
  let number = 0;
  for (let row = 0; row < count; row += 1) {
    lit[row] = (!state.focus.size || state.focus.has(colouring.codes[row])) && (!wanted || haystackOf(row).includes(wanted)) ? 1 : 0;
    number += lit[row];
  }
  byId("count").textContent = number === count ? "" : `${number.toLocaleString("en")} of ${plural(count, "clip")}`;
  table.page = 0;
  if (byId("table-part").open) showTable();
  redraw();
  remember();
};

const percent = (share) => `${Math.round(100 * share)} %`;
const tell = () => {
  const layout = layoutNow(), view = views[state.view];
  const said = [`Places: ${layout.method} of ${plural(count, "clip")}.`];
  if (layout.share !== null) said.push(`The two axes hold ${percent(layout.share)} of the variance.`);
  if (layout.method !== "PCA") said.push("Read who lies beside whom; sizes of islands and gaps between them mean little.");
  if (layout.trust !== null)
    said.push(`Of the ten points drawn nearest to a clip, ${(10 * layout.shared).toFixed(1)} on average are among its ten truly nearest; trustworthiness at 10 is ${layout.trust.toFixed(3)} (1: every neighbour on the map is one; about 0.5: a map of chance).`);
  if (view.correction !== "none") said.push("No places belong to corrected distances: these are of the distances as they were.");
  said.push(`Lists and lines show true neighbours, by ${view.distance} distance${view.correction === "none" ? "" : ` after ${view.correction}`} in all dimensions${view.across ? ", those of the clip's own group left out" : ""}, never by the picture. A dashed line leads to another label.`);
  byId("told").textContent = said.join(" ");
};

const recolour = () => {
  colouring = COLOURINGS[state.colour].make(state.view);
  legendQuery = "";
  byId("legend").replaceChildren();
  showLegend();
};

const setView = (number) => {
  state.view = number;
  const usable = views[number].layouts;
  if (!usable.includes(state.layout)) {
    const method = layouts[state.layout].method;
    state.layout = usable.find((own) => layouts[own].method === method) ?? usable[0];
  }
  fill(byId("layout"), usable.map((own) => [own, layouts[own].method]), state.layout);
  recolour();
  tell();
  showClip();
  refresh();
};

const setColour = (name) => {
  state.colour = name;
  state.focus.clear();
  recolour();
  refresh();
};

const setLooping = (on) => {
  state.looping = on;
  byId("loop").setAttribute("aria-pressed", String(on));
  canvas.classList.toggle("looping", on);
  say(on ? "Draw a loop around clips." : "Drag to move the map.");
};

const letGo = () => {
  state.looped = null;
  state.query = "";
  byId("search").value = "";
  state.focus.clear();
  setLooping(false);
  choose(-1);
  showLoop();
  showLegend();
  refresh();
};

const fill = (select, options, chosen) => {
  select.replaceChildren(...options.map(([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, short(text, 80))));
  select.closest("label").hidden = options.length < 2;
};

// --- the address -------------------------------------------------------------------------------------------------

let written = "";
let later = 0;
const remember = () => {
  clearTimeout(later);
  later = setTimeout(() => {
    const parts = new URLSearchParams();
    if (state.view) parts.set("view", state.view);
    if (layouts.length > 1) parts.set("places", state.layout);
    parts.set("colour", state.colour);
    if (state.clip >= 0) parts.set("clip", data.ids[state.clip]);
    if (state.focus.size) parts.set("only", [...state.focus].join("."));
    if (state.query) parts.set("search", state.query);
    if (state.zoom !== 1 || state.x !== 0.5 || state.y !== 0.5)
      parts.set("at", [state.x, state.y, state.zoom].map((value) => Number(value.toPrecision(5))).join(","));
    written = `#${parts}`;
    try { window.history.replaceState(null, "", written); } catch { /* a frame without an address */ }
  }, 150);
};

const recall = () => {
  const parts = new URLSearchParams(window.location.hash.slice(1));
  const whole = (name, most) => {
    const number = Number(parts.get(name));
    return Number.isInteger(number) && number >= 0 && number < most ? number : 0;
  };
  state.view = whole("view", views.length);
  const usable = views[state.view].layouts;
  const place = whole("places", layouts.length);
  state.layout = usable.includes(place) ? place : usable[0];
  const colour = parts.get("colour");
  const known = Object.keys(COLOURINGS).filter((name) => COLOURINGS[name].usable());
  state.colour = known.includes(colour) ? colour : known[0] || "hubness";
  state.query = parts.get("search") || "";
  const at = (parts.get("at") || "").split(",").map(Number);
  [state.x, state.y, state.zoom] = at.length === 3 && at.every(Number.isFinite) && at[2] > 0 ? at : [0.5, 0.5, 1];
  clampView();
  state.clip = parts.has("clip") ? data.ids.indexOf(parts.get("clip")) : -1;
  byId("search").value = state.query;
  fill(byId("view"), views.map((view, number) => [number, view.title]), state.view);
  fill(byId("colour"), known.map((name) => [name, COLOURINGS[name].title]), state.colour);
  byId("colour").value = state.colour;
  setView(state.view);
  const chosen = (parts.get("only") || "").split(".").filter(Boolean).map(Number);
  state.focus = new Set(chosen.filter((code) => Number.isInteger(code) && code >= 0 && code < colouring.entries.length));
  showLegend();
  refresh();
};

// --- the start ---------------------------------------------------------------------------------------------------

byId("view").addEventListener("change", (event) => setView(Number(event.target.value)));
byId("layout").addEventListener("change", (event) => { state.layout = Number(event.target.value); tell(); redraw(); remember(); });
byId("colour").addEventListener("change", (event) => setColour(event.target.value));
byId("search").addEventListener("input", (event) => { state.query = event.target.value; refresh(); });
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    const row = lit.indexOf(1);
    if (row >= 0) { choose(row); canvas.focus(); }
  } else if (event.key === "Escape") letGo();
});
byId("loop").addEventListener("click", () => setLooping(!state.looping));
byId("closer").addEventListener("click", () => zoomAt(1.4));
byId("farther").addEventListener("click", () => zoomAt(1 / 1.4));
byId("whole").addEventListener("click", showWhole);
byId("table-part").addEventListener("toggle", () => { if (byId("table-part").open) showTable(); });
dark.addEventListener("change", () => { stamps.clear(); redraw(); });
window.addEventListener("hashchange", () => { if (window.location.hash !== written) recall(); });
new ResizeObserver(measureCanvas).observe(canvas);

measureCanvas();
recall();
document.documentElement.classList.add("ready");
