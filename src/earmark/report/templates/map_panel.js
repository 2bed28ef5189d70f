// Beside the plane: the chosen clip with its neighbours and sound, the legend, the loop, the table.

const element = (name, settings = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};
const byId = (name) => document.getElementById(name);
const short = (text, most = 90) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const tail = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);
const nameOf = (text, extra = "") => element("span", { class: `name ${extra}`.trim(), title: text.length > 90 ? text.slice(0, 1000) : null }, short(text));
const say = (text) => { byId("status").textContent = text; };
const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

// --- sounds ------------------------------------------------------------------------------------------------------

let sounds = null;
const soundOf = (row) => {
  if (!sounds) {
    const told = JSON.parse(byId("map-sounds").textContent);
    sounds = new Map(told.rows.map((own, place) => [own, { address: told.addresses[place], remark: told.remarks[place] }]));
  }
  return sounds.get(row);
};

const player = element("audio", { controls: true, preload: "none" });
let playing = -1;
player.addEventListener("error", () => {
  if (playing < 0) return;
  const note = byId("sound-note");
  if (note) note.textContent = "This sound cannot be played: its file is gone, or the browser does not know its format.";
});

const play = (row) => {
  const sound = soundOf(row);
  if (!sound) { say(`There is no sound of ${short(data.ids[row])} in this page.`); return; }
  playing = row;
  if (player.getAttribute("src") !== sound.address) player.setAttribute("src", sound.address);
  player.setAttribute("aria-label", `Sound of ${short(data.ids[row])}`);
  const note = byId("sound-note");
  if (note) note.textContent = `${row === state.clip ? "" : `Neighbour ${short(data.ids[row])}. `}${sound.remark ? `Excerpt: ${sound.remark}.` : ""}`;
  player.currentTime = 0;
  const begun = player.play();
  if (begun) begun.catch(() => {});
};

const playButton = (row) => (soundOf(row)
  ? element("button", { type: "button", "aria-label": `Play ${short(data.ids[row])}`, onclick: () => play(row) }, "▶")
  : element("span", {}));

// --- the chosen clip ---------------------------------------------------------------------------------------------

const history_ = [];

const choose = (row, remembered = true) => {
  if (row === state.clip) return;
  if (remembered && state.clip >= 0) history_.push(state.clip);
  state.clip = row;
  player.pause();
  playing = -1;
  if (row >= 0) {
    bringIntoView(row);
    const near = neighboursOf(state.view, row);
    const label = labelOf(row) ? `, ${short(labelOf(row))}` : "";
    say(`${short(data.ids[row])}${label}. ${near.length ? `Nearest: ${short(data.ids[near[0].row])}${labelOf(near[0].row) ? `, ${short(labelOf(near[0].row))}` : ""}.` : "It has no neighbours."}`);
  }
  showClip();
  redraw();
  remember();
};

const goBack = () => { if (history_.length) choose(history_.pop(), false); };

const time = (value) => `${Number(value.toFixed(3))} s`;
const factsOf = (row) => {
  const made = viewOf(state.view);
  const facts = [["label", labelOf(row) || "none"]];
  if (groupOf(row)) facts.push(["group", groupOf(row)]);
  if (fileOf(row)) facts.push(["file", fileOf(row)]);
  if (starts && ends && (Number.isFinite(starts[row]) || Number.isFinite(ends[row])))
    facts.push(["span", `${time(starts[row] || 0)} – ${Number.isFinite(ends[row]) ? time(ends[row]) : "end"}`]);
  if (seconds && Number.isFinite(seconds[row])) facts.push(["duration", time(seconds[row])]);
  for (const [name, values] of Object.entries(made.values))
    facts.push([name, Number.isFinite(values[row]) ? `${digits(100 * values[row])} %` : "not measured"]);
  facts.push(["hubness", `in ${made.listed[row]} of ${plural(count, "list")} of ${views[state.view].k}`]);
  if (!made.ranked[row]) facts.push(["note", "left out of the evaluation: it is no clip's neighbour"]);
  return facts;
};

const neighbourLine = (other, place, row) => {
  const verdict = [["", ""], ["wrong", "other label"], ["right", data.labels.sets ? "shares a label" : "same label"]][agree(row, other.row) + 1];
  return element("li", { "data-row": other.row },
    element("span", { class: "rank" }, `${place + 1}`),
    element("button", { type: "button", class: "go", onclick: () => choose(other.row) },
      nameOf(labelOf(other.row) || data.ids[other.row]), " ",
      verdict[1] ? element("small", { class: verdict[0] }, verdict[1]) : null,
      labelOf(other.row) ? element("small", { class: "name" }, tail(data.ids[other.row], 28)) : null),
    element("span", { class: "far" }, digits(other.distance)),
    playButton(other.row));
};

const showClip = () => {
  const part = byId("clip");
  const row = state.clip;
  if (row < 0) {
    part.replaceChildren(element("p", { class: "quiet" }, "Click a point to see its true neighbours and hear it. Drag to move, turn the wheel or pinch to come closer."));
    return;
  }
  const near = neighboursOf(state.view, row);
  const view = views[state.view];
  const by = `${view.distance}${view.correction === "none" ? "" : ` ${view.correction}`}${view.across ? ", other groups only" : ""}`;
  const parts = [nameOf(data.ids[row], "title")];
  if (soundOf(row) || near.some((other) => soundOf(other.row))) {
    if (soundOf(row)) parts.push(element("button", { type: "button", id: "play", onclick: () => play(row) }, "▶ Play"));
    parts.push(player, element("p", { id: "sound-note", class: "quiet" }));
  }
  parts.push(element("dl", { class: "facts" }, ...factsOf(row).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, nameOf(value))])));
  parts.push(near.length
    ? element("p", { class: "quiet" }, `Its nearest neighbours in all dimensions (${by}), with their distance:`)
    : element("p", { class: "quiet" }, "It has no neighbours here."));
  if (near.length) parts.push(element("ol", { class: "near" }, ...near.map((other, place) => neighbourLine(other, place, row))));
  if (history_.length) parts.push(element("button", { type: "button", onclick: goBack }, "Back"));
  part.replaceChildren(...parts);
};

// --- the legend --------------------------------------------------------------------------------------------------

const swatch = (style) => {
  const made = element("canvas", { "aria-hidden": "true" });
  made.width = made.height = 16 * size.ratio;
  const to = made.getContext("2d");
  to.scale(size.ratio, size.ratio);
  outline(to, style.shape, 8, 8, 5);
  to.fillStyle = style.colour;
  to.fill();
  to.strokeStyle = QUIET;
  to.lineWidth = 0.6;
  to.stroke();
  return made;
};

let legendQuery = "";
const showLegend = (focusOn = -1) => {
  const part = byId("legend");
  const { entries, many } = colouring;
  byId("legend-title").textContent = `Colour: ${COLOURINGS[state.colour].title}`;
  const told = many
    ? `${entries.length} names. The ${SOME_COLOURED} with most wrong neighbours have colours; click others to bring them forward.`
    : "Click to bring forward; click again to let go.";
  const list = element("ul", { class: "entries" });
  const shown = entries.map((entry, code) => ({ ...entry, code }))
    .filter((entry) => entry.size && (!legendQuery || entry.name.toLowerCase().includes(legendQuery)))
    .sort((a, b) => (many ? state.focus.has(b.code) - state.focus.has(a.code) || Boolean(a.quiet) - Boolean(b.quiet) : 0));
  for (const entry of shown.slice(0, 300)) {
    const toggle = () => {
      if (state.focus.has(entry.code)) state.focus.delete(entry.code);
      else state.focus.add(entry.code);
      refresh();
      showLegend(entry.code);
    };
    list.append(element("li", {}, element("button", {
      type: "button", "data-code": entry.code, "aria-pressed": String(state.focus.has(entry.code)), onclick: toggle,
      title: entry.name.length > 40 ? entry.name.slice(0, 1000) : null,
    }, swatch(styleOf(entry.code)), element("span", { class: "name" }, short(entry.name, 60)), element("span", { class: "number" }, entry.size.toLocaleString("en")))));
  }
  const parts = [element("p", { class: "quiet" }, told)];
  const field = part.querySelector(".legend-search");
  if (entries.length > 12) {
    parts.push(field || element("input", {
      type: "search", class: "legend-search", placeholder: "Find a name", "aria-label": "Find a name in the legend",
      oninput: (event) => { legendQuery = event.target.value.toLowerCase(); showLegend(); },
    }));
  }
  parts.push(list);
  if (shown.length > 300) parts.push(element("p", { class: "quiet" }, `${shown.length - 300} more: find them by name.`));
  if (state.focus.size) parts.push(element("button", { type: "button", id: "all", onclick: () => { state.focus.clear(); refresh(); showLegend(); } }, "Show all"));
  const typing = field && document.activeElement === field;
  part.replaceChildren(...parts);
  if (typing) field.focus();
  if (focusOn >= 0) part.querySelector(`[data-code="${focusOn}"]`)?.focus();
};

// --- the loop ----------------------------------------------------------------------------------------------------

const cell = (text) => `"${String(text).replaceAll('"', '""')}"`;
const csvOf = (rows) => {
  const lines = [["id", "label", "group", "file", "start", "end", "nearest_id", "nearest_label"]];
  for (const row of rows) {
    const near = neighboursOf(state.view, row)[0];
    const span = [starts, ends].map((times) => (times && Number.isFinite(times[row]) ? times[row] : ""));
    lines.push([data.ids[row], labelOf(row), groupOf(row), fileOf(row), ...span, near ? data.ids[near.row] : "", near ? labelOf(near.row) : ""]);
  }
  return `${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
};

const download = (rows) => {
  const address = URL.createObjectURL(new Blob([csvOf(rows)], { type: "text/csv" }));
  const link = element("a", { href: address, download: "clips.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};

const showLoop = () => {
  const part = byId("looped");
  part.hidden = !state.looped;
  if (!state.looped) return;
  const rows = [...state.looped];
  const sizes = new Map();
  for (const row of rows) sizes.set(labelOf(row) || "(none)", (sizes.get(labelOf(row) || "(none)") || 0) + 1);
  const order = [...sizes].sort((a, b) => b[1] - a[1]);
  const lines = order.slice(0, 12).map(([name, number]) => element("li", {}, nameOf(name), ` ${number}`));
  byId("loop-told").replaceChildren(
    element("p", { id: "loop-count" }, `${plural(rows.length, "clip")}, ${plural(order.length, "label")}:`),
    element("ul", {}, ...lines, ...(order.length > 12 ? [element("li", {}, `${order.length - 12} more`)] : [])),
    element("button", { type: "button", id: "download", onclick: () => download(rows) }, "Save as CSV"), " ",
    element("button", { type: "button", onclick: () => { state.looped = null; showLoop(); redraw(); if (byId("table-part").open) showTable(); } }, "Let go"));
  say(`${plural(rows.length, "clip")} in the loop.`);
  if (byId("table-part").open) showTable();
};

// --- the table ---------------------------------------------------------------------------------------------------

const table = { page: 0, by: "clip", down: false };
const PAGE = 50;
const columns = () => {
  const made = viewOf(state.view);
  const nearest = (row) => neighboursOf(state.view, row)[0];
  const list = [
    ["clip", (row) => data.ids[row]], ["label", labelOf], ["group", groupOf],
    ["nearest", (row) => (nearest(row) ? data.ids[nearest(row).row] : "")],
    ["its label", (row) => (nearest(row) ? labelOf(nearest(row).row) : "")],
    ["right", (row) => ["not known", "no", "yes"][rightOf(state.view, row) + 1]],
    ["in lists", (row) => made.listed[row]],
  ];
  if (seconds) list.push(["seconds", (row) => (Number.isFinite(seconds[row]) ? Number(seconds[row].toFixed(3)) : "")]);
  return list.filter(([name]) => name !== "group" || data.groups);
};

const showTable = () => {
  const all = columns();
  const value = (all.find(([name]) => name === table.by) || all[0])[1];
  let rows = [];
  for (let row = 0; row < count; row += 1) if (lit[row] && (!state.looped || state.looped.has(row))) rows.push(row);
  const keys = new Map(rows.map((row) => [row, value(row)]));
  rows.sort((a, b) => {
    const [one, other] = [keys.get(a), keys.get(b)];
    const order = typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
    return (table.down ? -1 : 1) * order || a - b;
  });
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  table.page = Math.min(table.page, pages - 1);
  const head = all.map(([name]) => element("th", { scope: "col", "aria-sort": name === table.by ? (table.down ? "descending" : "ascending") : null },
    element("button", { type: "button", onclick: () => { table.down = table.by === name && !table.down; table.by = name; table.page = 0; showTable(); } }, name)));
  const body = rows.slice(table.page * PAGE, (table.page + 1) * PAGE).map((row) => element("tr", {}, ...all.map(([name, own]) => (name === "clip"
    ? element("th", { scope: "row" }, element("button", { type: "button", onclick: () => { choose(row); canvas.scrollIntoView({ block: "nearest" }); } }, nameOf(data.ids[row])), " ", playButton(row))
    : element("td", {}, nameOf(String(own(row))))))));
  const turn = (by, text) => element("button", { type: "button", disabled: table.page + by < 0 || table.page + by >= pages, onclick: () => { table.page += by; showTable(); } }, text);
  byId("table").replaceChildren(
    element("div", { class: "pages" }, turn(-1, "Before"), element("span", {}, `Page ${table.page + 1} of ${pages}: ${plural(rows.length, "clip")}`), turn(1, "Next")),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The clips as a table" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))));
};

// --- the tip -----------------------------------------------------------------------------------------------------

const tip = byId("tip");
const hideTip = () => { tip.hidden = true; };
const showTip = (row, [x, y]) => {
  const lines = [element("b", { class: "name" }, short(labelOf(row) || data.ids[row], 80))];
  if (labelOf(row)) lines.push(element("span", { class: "name" }, short(data.ids[row], 80)));
  if (groupOf(row)) lines.push(element("span", { class: "name" }, `group ${short(groupOf(row), 60)}`));
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, size.width - box.width - 4))}px`;
  tip.style.top = `${y + box.height + 20 > size.height ? Math.max(4, y - box.height - 10) : y + 14}px`;
};
