"use strict";
// The profile, and the tree of what is chosen of it. Numbers above 2^53 are rounded here, as everywhere in JavaScript.
const profile = JSON.parse(document.getElementById("profile").textContent);
const nValues = profile.values.length * (profile.isDifference ? 2 : 1); // of each stack
const nFunctions = profile.functions.length / 4;
const KINDS = ["user", "kernel", "inlined", "off-cpu"];

// What cannot be seen, or changes the order of what can, as an escape; U+EF80 to U+EFFF are bytes that are no UTF-8.
function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\uef80-\uefff]/g, c => {
    const code = c.charCodeAt(0);
    return code < 0x100 || code >= 0xef80 && code <= 0xefff ? "\\x" + (code & 0xff).toString(16).padStart(2, "0")
      : "\\u" + code.toString(16).padStart(4, "0");
  });
}
const strings = profile.strings.map(visible);
const string = id => id < 0 ? "" : strings[id];

// A name is a function, or behind these a comm: -1 - its string. The root of the tree is the last.
const ROOT_NAME = nFunctions + strings.length;
const nameOf = code => code >= 0 ? code : nFunctions - 1 - code;
const nameText = name => name === ROOT_NAME ? "all" : name < nFunctions ? string(profile.functions[4 * name]) : strings[name - nFunctions];
const nameDso = name => name < nFunctions ? string(profile.functions[4 * name + 1]) : "";
const nameFile = name => name < nFunctions ? string(profile.functions[4 * name + 2]) : "";
const nameKind = name => name === ROOT_NAME ? "root" : name < nFunctions ? KINDS[profile.functions[4 * name + 3]] : "comm";
// The place of each name in the order of siblings
const nameRanks = (() => {
  const names = Array.from({ length: ROOT_NAME + 1 }, (_, name) => name);
  const texts = names.map(nameText);
  names.sort((a, b) => texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : a - b);
  const ranks = new Uint32Array(names.length);
  names.forEach((name, rank) => { ranks[name] = rank; });
  return ranks;
})();

// Sums of the ends of stacks, of the tasks for which isChosen is not 0; of values[value], and of the older profile.
function sumEnds(value, isChosen) {
  const now = new Float64Array(profile.parents.length), old = new Float64Array(profile.parents.length);
  for (let i = 0; i < profile.ends.length; i++) {
    if (!isChosen[profile.stackTasks[i]])
      continue;
    now[profile.ends[i]] += profile.sums[i * nValues + value];
    if (profile.isDifference)
      old[profile.ends[i]] += profile.sums[i * nValues + profile.values.length + value];
  }
  return { now, old };
}

// From the comm inwards: the tree as it was written.
function calleesTree(sums) {
  const names = Int32Array.from(profile.names, nameOf);
  names[0] = ROOT_NAME;
  return { parents: Int32Array.from(profile.parents), names, now: sums.now.slice(), old: sums.old.slice(), selfNow: sums.now };
}

// From what ran outwards: each stack reversed, its comm last.
function callersTree(sums) {
  const parents = [0], names = [ROOT_NAME], now = [0], old = [0], selfNow = [0], found = new Map();
  for (let end = 1; end < profile.parents.length; end++) {
    if (sums.now[end] === 0 && sums.old[end] === 0)
      continue;
    let node = 0;
    for (let at = end; at !== 0; at = profile.parents[at]) {
      const name = nameOf(profile.names[at]), key = node * (ROOT_NAME + 1) + name;
      let child = found.get(key);
      if (child === undefined) {
        child = parents.length;
        found.set(key, child);
        parents.push(node);
        names.push(name);
        now.push(0);
        old.push(0);
        selfNow.push(0);
      }
      if (node === 0)
        selfNow[child] += sums.now[end];
      node = child;
    }
    now[node] += sums.now[end];
    old[node] += sums.old[end];
  }
  return { parents, names, now, old, selfNow };
}

// Totals, and where each node lies: rows[depth] has the nodes from left to right, x in units of the value that is the width.
function layOut(tree, widthIsOld) {
  const n = tree.parents.length, { parents, names, now, old } = tree;
  for (let i = n - 1; i > 0; i--) { // a parent is before its children
    now[parents[i]] += now[i];
    old[parents[i]] += old[i];
  }
  const width = widthIsOld ? old : now, begins = new Uint32Array(n + 2);
  for (let i = 1; i < n; i++)
    if (width[i] > 0)
      begins[parents[i] + 2]++;
  for (let i = 2; i < n + 2; i++)
    begins[i] += begins[i - 1];
  const children = new Uint32Array(begins[n + 1]), ranks = Uint32Array.from(names, name => nameRanks[name]);
  for (let i = 1; i < n; i++)
    if (width[i] > 0)
      children[begins[parents[i] + 1]++] = i;
  const x = new Float64Array(n), depths = new Uint32Array(n), rows = [];
  for (let row = [0]; row.length > 0;) {
    const next = [];
    for (const node of row) {
      let at = x[node];
      for (const child of children.subarray(begins[node], begins[node + 1]).sort((a, b) => ranks[a] - ranks[b])) {
        x[child] = at;
        at += width[child];
        depths[child] = rows.length + 1;
        next.push(child);
      }
    }
    rows.push(row);
    row = next;
  }
  return { ...tree, width, x, depths, rows };
}
