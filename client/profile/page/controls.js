// What a user does: mouse, keyboard, fields.
const element = id => document.getElementById(id);
const TASKS_LISTED = 1000;
const number = value => value.toLocaleString("en", { maximumFractionDigits: 0 });
const percent = part => (100 * part).toFixed(2) + "%";

// Where choices lie: "" is everything, "c0" the comm of string 0, "t0" task 0, "b0" the container of string 0.
function isChosenTask(task) {
  const id = Number(state.chosen.slice(1)), [comm, container] = [profile.tasks[4 * task], profile.tasks[4 * task + 1]];
  return state.chosen === "" || { c: comm === id, t: task === id, b: container === id }[state.chosen[0]];
}

function rebuild() {
  const isChosen = Uint8Array.from({ length: profile.tasks.length / 4 }, (_, task) => isChosenTask(task) ? 1 : 0);
  const sums = sumEnds(state.value, isChosen);
  view = layOut(state.callers ? callersTree(sums) : calleesTree(sums), state.widthIsOld);
  view.colors = [];
  view.maxChange = 0;
  for (let node = 1; profile.isDifference && node < view.width.length; node++)
    view.maxChange = Math.max(view.maxChange, Math.abs(changeOf(node)));
  state.zoom = state.focus = 0;
  state.hover = -1;
  search();
  toRoot();
}

function toRoot() {
  draw();
  graph.scrollTop = state.icicle ? 0 : graphHeight();
  draw();
  tellDetails(state.focus);
}

// ---- words ---------------------------------------------------------------------------------------------------------------------

function wordsOf(node) {
  const unit = profile.values[state.value], name = view.names[node];
  const lines = [`${number(view.now[node])} ${unit.name}${unit.unit === "count" ? "" : " (" + unit.unit + ")"}, ${
    percent(share(view.now[node], view.now[0]))}; itself ${number(view.selfNow[node])}, ${percent(share(view.selfNow[node], view.now[0]))}`];
  if (state.zoom !== 0)
    lines.push(`${percent(share(view.width[node], view.width[state.zoom]))} of ${nameText(view.names[state.zoom])}`);
  if (profile.isDifference)
    lines.push(`before: ${number(view.old[node])}, ${percent(share(view.old[node], view.old[0]))}; change of the share: ${
      changeOf(node) > 0 ? "+" : ""}${percent(changeOf(node))}`);
  const place = [nameKind(name), nameDso(name), nameFile(name)].filter(word => word && word !== "root");
  if (place.length > 0)
    lines.push(place.join(", "));
  return lines;
}

function tellDetails(node) {
  element("details").textContent = [nameText(view.names[node]), ...wordsOf(node)].join(" · ");
}

function showTip(node, event) {
  const tip = element("tip");
  tip.hidden = node < 0;
  if (node < 0)
    return;
  const title = document.createElement("b");
  title.textContent = nameText(view.names[node]);
  tip.replaceChildren(title, wordsOf(node).join("\n"));
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10
    : event.clientY + 18) + "px";
}

// ---- what can be done ----------------------------------------------------------------------------------------------------------

function zoomTo(node) {
  state.zoom = state.focus = node;
  draw();
  showRow(view.depths[node]);
  draw();
  tellDetails(node);
}

function search() {
  const field = element("search"), output = element("matched");
  field.removeAttribute("aria-invalid");
  state.matches = null;
  output.value = "";
  if (field.value === "")
    return;
  let pattern;
  try {
    pattern = new RegExp(field.value);
  } catch (error) {
    field.setAttribute("aria-invalid", "true");
    output.value = "no regular expression";
    output.title = error.message;
    return;
  }
  state.matches = Uint8Array.from({ length: ROOT_NAME }, (_, name) => pattern.test(nameText(name)) ? 1 : 0);
  const covered = new Uint8Array(view.names.length); // each sample counts once, however many of its frames match
  let sum = 0;
  for (const row of view.rows)
    for (const node of row) {
      covered[node] = covered[view.parents[node]];
      if (isMatch(node) && !covered[node]) {
        covered[node] = 1;
        sum += view.width[node];
      }
    }
  output.value = `${percent(share(sum, view.width[0]))} match`;
  output.title = "";
}

function reset() {
  element("search").value = element("task").value = state.chosen = "";
  rebuild();
}

function toggle(what) {
  const button = element(what === "icicle" ? "invert" : what);
  state[what] = !state[what];
  button.setAttribute("aria-pressed", String(state[what]));
  if (what === "icicle")
    toRoot();
  else
    rebuild();
}

function moveFocus(rows, columns) {
  let node = state.focus;
  const depth = view.depths[node] + rows, row = view.rows[depth];
  if (columns !== 0)
    node = row[row.indexOf(node) + columns] ?? node;
  else if (rows < 0)
    node = depth >= 0 ? view.parents[node] : node;
  else if (row) // the widest child
    node = row.filter(child => view.parents[child] === node).reduce((best, child) =>
      best < 0 || view.width[child] > view.width[best] ? child : best, -1);
  if (node < 0)
    return;
  const [from, to] = [view.x[state.zoom], view.x[state.zoom] + view.width[state.zoom]];
  if (view.x[node] >= to || view.x[node] + view.width[node] <= from)
    return; // not in sight
  state.focus = node;
  showRow(view.depths[node]);
  draw();
  tellDetails(node);
}

function onGraphKey(event) {
  const inwards = state.icicle ? 1 : -1;
  const keys = {
    ArrowUp: () => moveFocus(-inwards, 0), ArrowDown: () => moveFocus(inwards, 0),
    ArrowLeft: () => moveFocus(0, -1), ArrowRight: () => moveFocus(0, 1),
    Enter: () => zoomTo(state.focus), Escape: () => zoomTo(0),
  };
  if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey)
    return;
  event.preventDefault();
  keys[event.key]();
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT)$/.test(event.target.tagName))
    return;
  const keys = { "/": () => element("search").focus(), i: () => toggle("icicle"), c: () => toggle("callers"), 0: reset };
  if (!keys[event.key])
    return;
  event.preventDefault();
  keys[event.key]();
}

// ---- fields --------------------------------------------------------------------------------------------------------------------

function addOption(parent, value, text) {
  const option = document.createElement("option");
  option.value = value;
  option.textContent = text;
  parent.append(option);
  return option;
}

// A group of choices, the largest first; what does not fit is said.
function addGroup(label, prefix, keyOf, textOf) {
  const sums = new Map(), of = new Float64Array(profile.tasks.length / 4);
  for (let i = 0; i < profile.ends.length; i++)
    of[profile.stackTasks[i]] += profile.sums[i * nValues];
  of.forEach((sum, task) => {
    if (keyOf(task) >= 0)
      sums.set(keyOf(task), (sums.get(keyOf(task)) ?? 0) + sum);
  });
  const group = document.createElement("optgroup"), keys = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a) || a - b);
  group.label = label;
  keys.slice(0, TASKS_LISTED).forEach(key => addOption(group, prefix + key, textOf(key)));
  if (keys.length > TASKS_LISTED)
    addOption(group, "", `${keys.length - TASKS_LISTED} smaller ones are not listed`).disabled = true;
  if (keys.length > 0)
    element("task").append(group);
}

function addLegend() {
  const kinds = new Set(Array.from({ length: nFunctions }, (_, name) => nameKind(name)));
  const entries = profile.isDifference ? [["hsl(8 75% 58%)", "larger share than before"], ["hsl(214 75% 58%)", "smaller share"]]
    : KINDS.filter(kind => kinds.has(kind)).map(kind => [colorOf(kind, "main"), kind]);
  element("legend").replaceChildren(...entries.map(([color, text]) => {
    const entry = document.createElement("span"), box = document.createElement("i");
    box.style.background = color;
    entry.append(box, text);
    return entry;
  }));
}

function fillFields() {
  document.title = element("title").textContent = visible(profile.title);
  profile.values.forEach((value, i) => addOption(element("value"), i, visible(value.name)));
  addOption(element("task"), "", "all");
  addGroup("containers", "b", task => profile.tasks[4 * task + 1], string);
  addGroup("commands", "c", task => profile.tasks[4 * task], string);
  addGroup("threads", "t", task => task, task =>
    `${string(profile.tasks[4 * task])} ${profile.tasks[4 * task + 2]}/${profile.tasks[4 * task + 3]}`);
  element("value-label").hidden = profile.values.length < 2;
  element("task-label").hidden = profile.tasks.length / 4 < 2;
  element("width-label").hidden = !profile.isDifference;
  addLegend();
}

function listen() {
  element("controls").addEventListener("submit", event => event.preventDefault());
  element("search").addEventListener("input", () => { search(); drawSoon(); });
  element("search").addEventListener("keydown", event => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.target.value = "";
      search();
    }
    if (event.key === "Escape" || event.key === "Enter")
      graph.focus();
    drawSoon();
  });
  element("value").addEventListener("change", event => { state.value = Number(event.target.value); rebuild(); });
  element("task").addEventListener("change", event => { state.chosen = event.target.value; rebuild(); });
  element("width").addEventListener("change", event => { state.widthIsOld = event.target.value === "old"; rebuild(); });
  element("invert").addEventListener("click", () => toggle("icicle"));
  element("callers").addEventListener("click", () => toggle("callers"));
  element("reset").addEventListener("click", reset);
  canvas.addEventListener("click", event => { const node = nodeAt(event.offsetX, event.offsetY); if (node >= 0) zoomTo(node); });
  canvas.addEventListener("mousemove", event => {
    state.hover = nodeAt(event.offsetX, event.offsetY);
    showTip(state.hover, event);
    drawSoon();
  });
  canvas.addEventListener("mouseleave", () => { state.hover = -1; showTip(-1); drawSoon(); });
  graph.addEventListener("keydown", onGraphKey);
  ["scroll", "focus", "blur"].forEach(what => graph.addEventListener(what, drawSoon));
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => { draw(); showRow(view.depths[state.focus]); drawSoon(); });
  isDark.addEventListener("change", () => { view.colors = []; addLegend(); drawSoon(); });
}

// What is on the screen, in pixels of the page, for tests and for tools that help people who do not see it.
function model() {
  const place = canvas.getBoundingClientRect();
  return {
    title: document.title, rows: view.rows.length, nodes: view.names.length, total: view.now[0],
    zoomed: nameText(view.names[state.zoom]), focused: nameText(view.names[state.focus]), icicle: state.icicle, callers: state.callers,
    matched: element("matched").value, details: element("details").textContent, dark: isDark.matches,
    frames: drawn.map(box => ({
      name: nameText(view.names[box.node]), kind: nameKind(view.names[box.node]), depth: view.depths[box.node], label: box.label,
      x: place.x + box.x, y: place.y + box.y, width: box.width, height: box.height, color: fillOf(box.node), matched: isMatch(box.node),
      value: view.now[box.node], self: view.selfNow[box.node], older: view.old[box.node], change: changeOf(box.node),
    })),
  };
}

fillFields();
listen();
rebuild();
window.flameGraph = { model, draw };
