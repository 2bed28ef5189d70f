"use strict";
// The values of the page as typed arrays, and what follows from them: who is near whom, who is wrong, colours.

const data = JSON.parse(document.getElementById("map-data").textContent);
const TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };
const COLOURS = ["#2b83c4", "#e08a00", "#12997c", "#cf5a1f", "#c06aa0", "#4fb0e0", "#8a78d8"];
const SCALE = ["#5a4aa8", "#3a70b8", "#2497a8", "#3fb57a", "#a3cc3d", "#f7d22a"];
const SHAPES = 7;
const ALL_COLOURED = 28;
const SOME_COLOURED = 14;
const QUIET = "#8b98a5";
const WRONG = "#d9480f";
const RIGHT = "#4f9bd0";

const numbers = (packed) => {
  if (!packed) return null;
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
  return new TYPES[packed.type](bytes.buffer);
};

const count = data.clips;
const labelCodes = numbers(data.labels.codes);
const groupCodes = data.groups && numbers(data.groups.codes);
const fileCodes = data.files && numbers(data.files.codes);
const starts = numbers(data.starts), ends = numbers(data.ends), seconds = numbers(data.seconds);
const layouts = data.layouts.map((layout) => ({ ...layout, x: numbers(layout.x), y: numbers(layout.y) }));
const views = data.views.map((view) => ({ ...view, made: null }));

const labelOf = (row) => (labelCodes[row] ? data.labels.names[labelCodes[row] - 1] : "");
const groupOf = (row) => (groupCodes && groupCodes[row] ? data.groups.names[groupCodes[row] - 1] : "");
const fileOf = (row) => (data.files ? data.files.folders[fileCodes[row]] + data.files.names[row] : "");

// A view is unpacked when it is first looked at.
const viewOf = (number) => {
  const view = views[number];
  if (view.made) return view.made;
  const rows = numbers(view.neighbours);
  const listed = new Uint32Array(count);
  for (const other of rows) if (other) listed[other - 1] += 1;
  const values = Object.fromEntries(Object.entries(view.values).map(([name, packed]) => [name, numbers(packed)]));
  view.made = { rows, listed, values, distances: numbers(view.distances), ranked: numbers(view.ranked) };
  return view.made;
};

const neighboursOf = (number, row) => {
  const { k } = views[number];
  const made = viewOf(number);
  const near = [];
  for (let place = row * k; place < (row + 1) * k; place += 1)
    if (made.rows[place]) near.push({ row: made.rows[place] - 1, distance: made.distances[place] });
  return near;
};

// 1: a clip has another's label, or shares one of several; 0: it does not; -1: nobody knows, or it is background.
const agree = (row, other) => {
  const own = labelCodes[row], its = labelCodes[other], { sets } = data.labels;
  if (!own || !its) return -1;
  if (!sets) return own === its ? 1 : 0;
  if (!sets[own - 1].length) return -1;
  return sets[own - 1].some((label) => sets[its - 1].includes(label)) ? 1 : 0;
};

const rightOf = (number, row) => {
  const other = viewOf(number).rows[row * views[number].k];
  return other ? agree(row, other - 1) : -1;
};

// --- colours: every way to colour gives categories with a name, a colour, a shape and a size ---------------------

const categories = (names, codes, styles) => {
  const sizes = new Array(names.length).fill(0);
  for (const code of codes) if (code >= 0) sizes[code] += 1;
  return { codes, entries: names.map((name, code) => ({ name, size: sizes[code], ...styles(code) })) };
};

const styleAt = (place) => ({ colour: COLOURS[place % COLOURS.length], shape: Math.floor(place / COLOURS.length) % SHAPES });

// Names beyond the palette: those with the most clips that are taken for others come first.
const named = (texts, codes, number) => {
  const names = [...texts.names];
  const own = Int32Array.from(codes, (code) => code - 1);
  if (codes.includes(0)) {
    names.push("(none)");
    own.forEach((code, row) => { if (code < 0) own[row] = names.length - 1; });
  }
  const many = texts.names.length > ALL_COLOURED;
  const places = new Map();
  if (many) {
    const wrong = new Float64Array(names.length);
    own.forEach((code, row) => { wrong[code] += (rightOf(number, row) === 0 ? 1 : 0) + 1e-6; });
    const order = texts.names.map((_, code) => code).sort((a, b) => wrong[b] - wrong[a] || a - b);
    order.slice(0, SOME_COLOURED).forEach((code, place) => places.set(code, place));
  } else texts.names.forEach((_, code) => places.set(code, code));
  const made = categories(names, own, (code) => (places.has(code) ? styleAt(places.get(code)) : { colour: QUIET, shape: 0, quiet: true }));
  return { ...made, many };
};

const scaled = (values, edges, name) => {
  const codes = Int32Array.from(values, (value) => {
    if (Number.isNaN(value)) return edges.length - 1;
    let bin = 0;
    while (bin < edges.length - 2 && value >= edges[bin + 1]) bin += 1;
    return bin;
  });
  const names = edges.slice(0, -1).map((low, bin) => name(low, edges[bin + 1], bin === edges.length - 2));
  const bins = names.length;
  if (codes.includes(bins)) names.push("not known");
  const colour = (code) => (bins === 1 ? SCALE[2] : SCALE[Math.round((code / (bins - 1)) * (SCALE.length - 1))]);
  return categories(names, codes, (code) => (code < bins ? { colour: colour(code), shape: 0 } : { colour: QUIET, shape: 0, quiet: true }));
};

const digits = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString());

const edgesOf = (values, logarithmic) => {
  const known = Array.from(values).filter((value) => Number.isFinite(value) && (!logarithmic || value > 0)).sort((a, b) => a - b);
  if (!known.length) return [0, 0];
  const low = known[0], high = known[known.length - 1];
  if (low === high) return [low, high];
  const step = (part) => (logarithmic ? low * (high / low) ** part : low + (high - low) * part);
  return [0, 1, 2, 3, 4, 5, 6].map((place) => (place === 0 ? low : place === 6 ? high : Number(step(place / 6).toPrecision(2))))
    .filter((edge, place, all) => place === 0 || edge > all[place - 1]);
};

const COLOURINGS = {
  label: { title: "label", usable: () => data.labels.names.length > 0, make: (number) => named(data.labels, labelCodes, number) },
  group: { title: "group", usable: () => Boolean(data.groups && data.groups.names.length), make: (number) => named(data.groups, groupCodes, number) },
  error: {
    title: "error", usable: () => data.labels.names.length > 1,
    make: (number) => {
      const codes = Int32Array.from({ length: count }, (_, row) => 1 - rightOf(number, row));
      const looks = [{ colour: RIGHT, shape: 0 }, { colour: WRONG, shape: 3 }, { colour: QUIET, shape: 0, quiet: true }];
      return categories(["nearest has its label", "nearest has another label", "not known"], codes, (code) => looks[code]);
    },
  },
  hubness: {
    title: "hubness", usable: () => count > 2,
    make: (number) => {
      const { k } = views[number];
      const edges = [0, 1, Math.ceil(k / 2), k, 2 * k, 5 * k, Infinity].filter((edge, place, all) => place === 0 || edge > all[place - 1]);
      const name = (low, high) => (low === 0 ? "in no list (antihub)" : high === Infinity ? `in ${low} lists or more (hub)` : high - 1 > low ? `in ${low} to ${high - 1} lists` : `in ${low} lists`);
      return scaled(viewOf(number).listed, edges, name);
    },
  },
  GSR: {
    title: "GSR", usable: () => views.some((view) => view.values.GSR),
    make: (number) => {
      const values = viewOf(number).values.GSR || new Float32Array(count).fill(NaN);
      return scaled(values, edgesOf(values, false), (low, high) => `${digits(100 * low)} to ${digits(100 * high)} %`);
    },
  },
  duration: {
    title: "duration", usable: () => Boolean(seconds),
    make: () => scaled(seconds, edgesOf(seconds, true), (low, high) => (low === high ? `${digits(low)} s` : `${digits(low)} to ${digits(high)} s`)),
  },
};
