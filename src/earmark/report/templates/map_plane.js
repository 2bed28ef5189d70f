// The plane: places on the screen, drawing, and what hands and keys do with it.

const state = {
  view: 0, layout: 0, colour: "label", clip: -1, focus: new Set(), query: "", looped: null, looping: false,
  x: 0.5, y: 0.5, zoom: 1,
};
const canvas = document.getElementById("map");
const pen = canvas.getContext("2d");
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let colouring = null;
let lit = new Uint8Array(count).fill(1);
let hovered = -1;
let loopLine = [];
let waiting = 0;

const size = { width: 1, height: 1, ratio: 1 };
const layoutNow = () => layouts[state.layout];
// Points fill the plane at zoom 1, whatever the proportions of both.
const reachOf = (layout) => {
  if (!layout.reach) {
    const span = (places) => places.reduce((most, place) => Math.max(most, Math.abs(place / 32767.5 - 1)), 0.02);
    layout.reach = [span(layout.x), span(layout.y)];
  }
  return layout.reach;
};
const scaleNow = () => {
  const [wide, high] = reachOf(layoutNow());
  return Math.min((size.width - 50) / wide, (size.height - 110) / high) * state.zoom;
};
const screenX = (row) => (layoutNow().x[row] / 65535 - state.x) * scaleNow() + size.width / 2;
const screenY = (row) => (state.y - layoutNow().y[row] / 65535) * scaleNow() + size.height / 2;
const radius = () => {
  const first = count <= 150 ? 6 : count <= 1200 ? 4.5 : count <= 8000 ? 3 : 1.8;
  return Math.min(9, first * state.zoom ** 0.3);
};

// --- drawing -----------------------------------------------------------------------------------------------------

const outline = (to, shape, x, y, r) => {
  to.beginPath();
  if (shape === 0) to.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === 1) to.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
  else if (shape === 2 || shape === 4) {
    const up = shape === 2 ? -1 : 1;
    to.moveTo(x, y + up * 1.2 * r);
    to.lineTo(x + 1.1 * r, y - up * 0.8 * r);
    to.lineTo(x - 1.1 * r, y - up * 0.8 * r);
  } else if (shape === 3) {
    to.moveTo(x, y - 1.25 * r);
    to.lineTo(x + 1.25 * r, y);
    to.lineTo(x, y + 1.25 * r);
    to.lineTo(x - 1.25 * r, y);
  } else {
    const corners = shape === 5 ? 4 : 5;
    for (let turn = 0; turn < 2 * corners; turn += 1) {
      const reach = (turn % 2 ? 0.45 : 1.3) * r;
      const angle = (Math.PI * turn) / corners - Math.PI / 2;
      to.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    }
  }
  to.closePath();
};

const stamps = new Map();
const stampOf = (colour, shape, r) => {
  const key = `${colour} ${shape} ${r} ${dark.matches}`;
  if (!stamps.has(key)) {
    if (stamps.size > 500) stamps.clear();
    const stamp = document.createElement("canvas");
    stamp.width = stamp.height = Math.ceil((2.8 * r + 2) * size.ratio);
    const draw = stamp.getContext("2d");
    draw.scale(size.ratio, size.ratio);
    outline(draw, shape, 1.4 * r + 1, 1.4 * r + 1, r);
    draw.fillStyle = colour;
    draw.fill();
    draw.lineWidth = r < 2.5 ? 0.3 : 0.8;
    draw.strokeStyle = dark.matches ? "rgba(255,255,255,.45)" : "rgba(20,30,40,.4)";
    draw.stroke();
    stamps.set(key, stamp);
  }
  return stamps.get(key);
};

// A name that is brought forward has a colour of its own, also where there are more names than colours.
const styleOf = (code) => {
  const entry = colouring.entries[code];
  if (!colouring.many || !state.focus.has(code)) return entry;
  return styleAt([...state.focus].indexOf(code));
};

const drawPoints = (rows, faint) => {
  const r = Math.round(radius() * 2) / 2;
  const half = 1.4 * r + 1;
  const side = (2.8 * r + 2);
  const styles = colouring.entries.map((_, code) => styleOf(code));
  pen.globalAlpha = faint ? 0.13 : 0.92;
  for (const row of rows) {
    const x = screenX(row), y = screenY(row);
    if (x < -half || y < -half || x > size.width + half || y > size.height + half) continue;
    const style = faint ? { colour: QUIET, shape: 0 } : styles[colouring.codes[row]];
    pen.drawImage(stampOf(style.colour, style.shape, r), x - half, y - half, side, side);
  }
  pen.globalAlpha = 1;
};

const ring = (row, width, colour, reach) => {
  pen.beginPath();
  pen.arc(screenX(row), screenY(row), radius() + reach, 0, 2 * Math.PI);
  pen.lineWidth = width;
  pen.strokeStyle = colour;
  pen.stroke();
};

const drawNeighbours = (ink) => {
  const near = neighboursOf(state.view, state.clip);
  const x = screenX(state.clip), y = screenY(state.clip);
  for (const other of near) {
    const same = agree(state.clip, other.row) === 1;
    pen.beginPath();
    pen.setLineDash(same || !labelCodes[state.clip] ? [] : [5, 4]);
    pen.moveTo(x, y);
    pen.lineTo(screenX(other.row), screenY(other.row));
    pen.lineWidth = 1.4;
    pen.strokeStyle = ink;
    pen.globalAlpha = 0.7;
    pen.stroke();
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  drawPoints([...near.map((other) => other.row), state.clip], false);
  near.forEach((other) => ring(other.row, 1.5, ink, 2.5));
  ring(state.clip, 3, ink, 4);
};

const draw = () => {
  waiting = 0;
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim() || "#000";
  pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  const bright = [], quiet = [], faint = [];
  for (let row = 0; row < count; row += 1)
    (!lit[row] ? faint : colouring.entries[colouring.codes[row]].quiet ? quiet : bright).push(row);
  drawPoints(faint, true);
  drawPoints(quiet, false);
  drawPoints(bright, false);
  if (state.looped) for (const row of state.looped) if (state.looped.size < 2000) ring(row, 1.2, ink, 1.5);
  if (state.clip >= 0) drawNeighbours(ink);
  if (hovered >= 0) ring(hovered, 2, ink, 3);
  if (loopLine.length > 1) {
    pen.beginPath();
    loopLine.forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
    pen.fillStyle = "rgba(43,131,196,.15)";
    pen.fill();
    pen.strokeStyle = ink;
    pen.lineWidth = 1.5;
    pen.stroke();
  }
};

const redraw = () => { if (!waiting) waiting = requestAnimationFrame(draw); };

const measureCanvas = () => {
  const box = canvas.getBoundingClientRect();
  size.ratio = window.devicePixelRatio || 1;
  size.width = Math.max(1, box.width);
  size.height = Math.max(1, box.height);
  canvas.width = Math.round(size.width * size.ratio);
  canvas.height = Math.round(size.height * size.ratio);
  stamps.clear();
  redraw();
};

// --- moving ------------------------------------------------------------------------------------------------------

const clampView = () => {
  state.zoom = Math.min(400, Math.max(0.5, state.zoom));
  state.x = Math.min(1.2, Math.max(-0.2, state.x));
  state.y = Math.min(1.2, Math.max(-0.2, state.y));
};

const zoomAt = (factor, x = size.width / 2, y = size.height / 2) => {
  const before = scaleNow();
  const px = state.x + (x - size.width / 2) / before;
  const py = state.y - (y - size.height / 2) / before;
  state.zoom *= factor;
  clampView();
  state.x = px - (x - size.width / 2) / scaleNow();
  state.y = py + (y - size.height / 2) / scaleNow();
  clampView();
  redraw();
  remember();
};

let flight = 0;
const flyTo = (x, y, zoom = state.zoom) => {
  cancelAnimationFrame(flight);
  const from = { x: state.x, y: state.y, zoom: state.zoom };
  const begun = performance.now();
  const step = (now) => {
    const part = still.matches ? 1 : Math.min(1, (now - begun) / 220);
    const eased = part * (2 - part);
    state.x = from.x + (x - from.x) * eased;
    state.y = from.y + (y - from.y) * eased;
    state.zoom = from.zoom * (zoom / from.zoom) ** eased;
    redraw();
    if (part < 1) flight = requestAnimationFrame(step);
    else remember();
  };
  step(still.matches ? Infinity : begun);
};

const showWhole = () => flyTo(0.5, 0.5, 1);

const bringIntoView = (row) => {
  const x = screenX(row), y = screenY(row), edge = 30;
  if (x > edge && y > edge && x < size.width - edge && y < size.height - edge) return;
  flyTo(layoutNow().x[row] / 65535, layoutNow().y[row] / 65535);
};

const nearestTo = (x, y, reach, wanted = () => true) => {
  let best = -1, least = reach * reach;
  for (let row = 0; row < count; row += 1) {
    const dx = screenX(row) - x, dy = screenY(row) - y;
    const far = dx * dx + dy * dy;
    // Of points that lie on one another the one that is drawn last, which is on top; lit ones before faint ones.
    if (far <= least && lit[row] && wanted(row, dx, dy)) { best = row; least = far; }
  }
  return best;
};

// --- loops -------------------------------------------------------------------------------------------------------

const inside = (x, y, line) => {
  let within = false;
  for (let here = 0, before = line.length - 1; here < line.length; before = here, here += 1) {
    const [ax, ay] = line[here], [bx, by] = line[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
  }
  return within;
};

const finishLoop = () => {
  const rows = new Set();
  for (let row = 0; row < count; row += 1) if (lit[row] && inside(screenX(row), screenY(row), loopLine)) rows.add(row);
  loopLine = [];
  state.looped = rows.size ? rows : null;
  showLoop();
  redraw();
};

// --- hands -------------------------------------------------------------------------------------------------------

const pointers = new Map();
let travelled = 0;
let pinched = 0;

const placeOf = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, placeOf(event));
  cancelAnimationFrame(flight);
  travelled = pointers.size > 1 ? 100 : 0;
  pinched = 0;
  if ((state.looping || event.shiftKey) && pointers.size === 1) loopLine = [placeOf(event)];
  hideTip();
});

canvas.addEventListener("pointermove", (event) => {
  const now = placeOf(event);
  if (!pointers.has(event.pointerId)) { hover(now); return; }
  const before = pointers.get(event.pointerId);
  travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
  pointers.set(event.pointerId, now);
  if (pointers.size === 2) {
    const [one, other] = [...pointers.values()];
    const apart = Math.hypot(one[0] - other[0], one[1] - other[1]);
    if (pinched) zoomAt(apart / pinched, (one[0] + other[0]) / 2, (one[1] + other[1]) / 2);
    pinched = apart;
  } else if (loopLine.length) loopLine.push(now);
  else if (travelled > 4) {
    state.x -= (now[0] - before[0]) / scaleNow();
    state.y += (now[1] - before[1]) / scaleNow();
    clampView();
  }
  redraw();
});

const release = (event) => {
  const known = pointers.delete(event.pointerId);
  if (!known) return;
  if (loopLine.length && travelled > 6) finishLoop();
  else if (travelled <= 4 && event.type === "pointerup") {
    const row = nearestTo(...placeOf(event), 16);
    choose(row);
  } else remember();
  loopLine = [];
  redraw();
};
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => { hovered = -1; hideTip(); redraw(); });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  zoomAt(Math.exp(-event.deltaY * lines * 0.0016), ...placeOf(event));
}, { passive: false });

const hover = (place) => {
  const row = nearestTo(...place, 12);
  if (row !== hovered) { hovered = row; redraw(); }
  if (row < 0) hideTip();
  else showTip(row, place);
};

// --- keys --------------------------------------------------------------------------------------------------------

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const towards = ([dx, dy]) => {
  if (state.clip < 0) return nearestTo(size.width / 2, size.height / 2, Infinity);
  const x = screenX(state.clip), y = screenY(state.clip);
  const ahead = (row, rx, ry) => row !== state.clip && rx * dx + ry * dy > 0.7 * Math.hypot(rx, ry);
  return nearestTo(x, y, Infinity, ahead);
};

canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const direction = DIRECTIONS[event.key];
  if (direction && event.shiftKey) {
    flyTo(state.x + (direction[0] * 80) / scaleNow(), state.y - (direction[1] * 80) / scaleNow());
  } else if (direction) {
    const row = towards(direction);
    if (row >= 0) choose(row);
  } else if (event.key === "+" || event.key === "=") zoomAt(1.3);
  else if (event.key === "-") zoomAt(1 / 1.3);
  else if (event.key === "0") showWhole();
  else if ((event.key === "Enter" || event.key === " ") && state.clip >= 0) play(state.clip);
  else if (event.key === "Enter" || event.key === " ") choose(towards([0, 0]));
  else if (/^[1-9]$/.test(event.key) && state.clip >= 0) {
    const other = neighboursOf(state.view, state.clip)[Number(event.key) - 1];
    if (other) choose(other.row);
  } else if (event.key === "Backspace") goBack();
  else if (event.key.toLowerCase() === "l") setLooping(!state.looping);
  else if (event.key === "Escape") letGo();
  else return;
  event.preventDefault();
});
