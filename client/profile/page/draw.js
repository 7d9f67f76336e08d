// What is drawn: a canvas as large as what is seen of it, in which only what is wide enough is drawn, so that a frame more in the
// profile costs nothing more. `drawn` is what flameGraph.model() tells, for whoever cannot see it.
const ROW = 19, LEAST = 0.5; // pixels
const graph = document.getElementById("graph"), canvas = document.getElementById("canvas"), context = canvas.getContext("2d");
const isDark = matchMedia("(prefers-color-scheme: dark)");
const state = { value: 0, chosen: "", callers: false, icicle: false, widthIsOld: false, zoom: 0, focus: 0, hover: -1, matches: null };
let view = null, drawn = [];

const FONT = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
const HUES = { user: [14, 36], kernel: [200, 20], inlined: [92, 30], "off-cpu": [262, 26] };

function hashOf(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) / 4294967296;
}

function colorOf(kind, text) {
  const dark = isDark.matches, hue = HUES[kind], hash = hashOf(text);
  if (!hue)
    return dark ? "hsl(30 5% 27%)" : "hsl(34 14% 86%)";
  return `hsl(${Math.round(hue[0] + hue[1] * hash)} ${dark ? 48 : 82}% ${Math.round((dark ? 31 : 70) + 6 * hashOf(text + "."))}%)`;
}

// Red: a larger share than before; blue: a smaller one; how much, in relation to the change that is largest.
function changeColor(node) {
  const change = changeOf(node) / (view.maxChange || 1), dark = isDark.matches, strength = Math.sqrt(Math.abs(change));
  return `hsl(${change > 0 ? 8 : 214} ${Math.round(change === 0 ? 0 : 25 + 60 * strength)}% ${
    Math.round(dark ? 27 + 20 * strength : 91 - 33 * strength)}%)`;
}

const share = (part, whole) => whole > 0 ? part / whole : 0;
const changeOf = node => share(view.now[node], view.now[0]) - share(view.old[node], view.old[0]);
const isMatch = node => state.matches !== null && state.matches[view.names[node]] === 1;

function fillOf(node) {
  if (isMatch(node))
    return isDark.matches ? "hsl(312 62% 46%)" : "hsl(312 78% 72%)";
  if (profile.isDifference)
    return changeColor(node);
  const name = view.names[node];
  return view.colors[name] ??= colorOf(nameKind(name), nameText(name));
}

// The first of a row that ends to the right of x.
function firstIn(row, x) {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.x[row[middle]] + view.width[row[middle]] > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

function labelFor(text, room) {
  const letter = view.letter, wide = /[^\x20-\x7e]/.test(text);
  if ((wide ? context.measureText(text).width : text.length * letter) <= room)
    return text;
  const characters = Array.from(text), n = Math.floor(room / letter) - 1;
  if (n < 2)
    return "";
  let label = characters.slice(0, n).join("");
  while (wide && label && context.measureText(label + "…").width > room)
    label = Array.from(label).slice(0, -1).join("");
  return label && label + "…";
}

function drawRow(depth, y, from, to, scale) {
  const row = view.rows[depth];
  for (let i = firstIn(row, from); i < row.length && view.x[row[i]] < to;) {
    const node = row[i], left = Math.max(0, (view.x[node] - from) * scale);
    const right = Math.min(canvas.clientWidth, (view.x[node] + view.width[node] - from) * scale), width = right - left;
    context.fillStyle = fillOf(node);
    if (width < LEAST) { // and with it all that would lie on the same pixel
      context.fillRect(left, y, 1, ROW - 1);
      i = Math.max(i + 1, firstIn(row, from + (left + 1) / scale));
      continue;
    }
    const box = { node, x: left, y, width: Math.max(LEAST, width > 3 ? width - 1 : width), height: ROW - 1, label: "" };
    context.fillRect(box.x, y, box.width, box.height);
    if (width > 24) {
      box.label = labelFor(nameText(view.names[node]), width - 9);
      context.fillStyle = view.ink;
      context.fillText(box.label, left + 4, y + ROW / 2);
    }
    drawn.push(box);
    i++;
  }
}

function outline(node, color, thick) {
  const box = drawn.find(b => b.node === node);
  if (!box)
    return;
  context.strokeStyle = color;
  context.lineWidth = thick;
  context.strokeRect(box.x + thick / 2, box.y + thick / 2, Math.max(1, box.width - thick), box.height - thick);
}

const graphHeight = () => Math.max(graph.clientHeight, view.rows.length * ROW);
const rowTop = depth => state.icicle ? depth * ROW : graphHeight() - (depth + 1) * ROW;

function draw() {
  const width = graph.clientWidth, height = graph.clientHeight, ratio = devicePixelRatio || 1, top = graph.scrollTop;
  document.getElementById("height").style.height = graphHeight() + "px";
  canvas.style.height = height + "px";
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  view.letter = context.measureText("x").width;
  view.ink = isDark.matches ? "#f3eee8" : "#241c14";
  drawn = [];
  const from = view.x[state.zoom], to = from + view.width[state.zoom], scale = width / (to - from);
  for (let depth = 0; to > from && depth < view.rows.length; depth++) {
    const y = rowTop(depth) - top;
    if (y + ROW > 0 && y < height)
      drawRow(depth, y, from, to, scale);
  }
  if (state.hover >= 0)
    outline(state.hover, view.ink, 1);
  if (document.activeElement === graph)
    outline(state.focus, isDark.matches ? "#ffffff" : "#000000", 2);
}

let isDue = false;
function drawSoon() {
  if (isDue)
    return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

// The node at a point of the canvas; -1: none.
function nodeAt(x, y) {
  const at = y + graph.scrollTop, depth = Math.floor((state.icicle ? at : graphHeight() - at) / ROW);
  if (depth < 0 || depth >= view.rows.length)
    return -1;
  const value = view.x[state.zoom] + x / graph.clientWidth * view.width[state.zoom], row = view.rows[depth], i = firstIn(row, value);
  return i < row.length && view.x[row[i]] <= value ? row[i] : -1;
}

// Scrolls as little as is needed to have a row in sight.
function showRow(depth) {
  const top = rowTop(depth);
  if (top < graph.scrollTop)
    graph.scrollTop = top;
  else if (top + ROW > graph.scrollTop + graph.clientHeight)
    graph.scrollTop = top + ROW - graph.clientHeight;
}
