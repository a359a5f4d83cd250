"use strict";

// Flame graphs, of one tree or of the change between two; the root is on top.
//
// A tree comes as a flat list in preorder, four numbers a call: depth, number of the name, self, calls.
// Frames are elements, since these can have focus, names and colours of the system.

const BEFORE = 0;
const NOW = 1;
const NARROWEST = 0.0008;
const NARROWEST_TEXT = 28;
const MOST_FRAMES = 4000;
const ROW = 24;

// The union of both trees; calls of one name from one place are one node. Parents come first.
function unite(names, trees) {
  const make = (name, parent) => ({
    name, parent, level: parent ? parent.level + 1 : 0, children: new Map(),
    self: [0, 0], calls: [0, 0], total: [0, 0], own: 0, width: 0, x: 0,
  });
  const root = make("all", null);
  const nodes = [root];
  for (const side of [NOW, BEFORE]) {  // what is gone stands behind what is there
    const path = [root];
    const flat = trees[side] ?? [];
    for (let at = 0; at < flat.length; at += 4) {
      path.length = Math.min(flat[at] + 1, path.length);
      const parent = path.at(-1);
      const name = names[flat[at + 1]];
      let node = parent.children.get(name);
      if (!node) {
        node = make(name, parent);
        parent.children.set(name, node);
        nodes.push(node);
      }
      node.self[side] += flat[at + 2];
      node.calls[side] += flat[at + 3];
      path.push(node);
    }
  }
  return nodes;
}

// Sums, then places between 0 and the width of the root. `own` is what a node itself is wide.
function measure(nodes, own) {
  for (const node of nodes) {
    node.own = node.width = Math.max(0, own(node));
    node.total = [...node.self];
  }
  for (const { parent, total, width } of [...nodes].reverse()) {
    if (!parent) continue;
    parent.total[BEFORE] += total[BEFORE];
    parent.total[NOW] += total[NOW];
    parent.width += width;
  }
  for (const node of nodes) {
    let x = node.x;
    for (const child of node.children.values()) {
      child.x = x;
      x += child.width;
    }
  }
}

class FlameGraph {
  constructor({ label, unit, names, before, now }) {
    this.unit = unit;
    this.differs = Boolean(before);
    this.nodes = unite(names, [before, now]);
    this.root = this.nodes[0];
    measure(this.nodes, this.differs ? ({ self }) => Math.max(...self) : ({ self }) => self[NOW]);
    this.zoomed = this.root;
    this.past = [];
    this.hits = new Set();
    this.frames = new Map();
    this.by = "self";
    this.status = h("p", { class: "status", role: "status" });
    this.note = h("p", { class: "quiet" });
    this.tree = h("div", { class: "frames", role: "tree", "aria-label": label });
    this.listen();
    this.element = h("div", { class: "flame" }, this.tools(label), this.legend(),
      h("div", { class: "stage" }, this.tree), this.note);
    this.grade();
    this.draw();
  }

  tools(label) {
    this.back = h("button", { type: "button", onclick: () => this.zoomBack() }, "Back");
    this.whole = h("button", { type: "button", onclick: () => this.zoom(this.root) }, "Whole tree");
    this.search = h("input", {
      type: "search", placeholder: "Search functions", "aria-label": `Search in: ${label}`,
      autocomplete: "off", spellcheck: "false", oninput: () => this.find(),
      onkeydown: (event) => { if (event.key === "Enter") this.focusHit(); },
    });
    const by = this.differs && h("label", {}, "Colour by ",
      h("select", { onchange: (event) => { this.by = event.target.value; this.grade(); this.draw(); } },
        h("option", { value: "self" }, "self"), h("option", { value: "total" }, "with callees")));
    return h("div", { class: "tools" }, this.back, this.whole, this.search, by || null, this.status);
  }

  legend() {
    if (!this.differs) return null;
    return h("p", { class: "legend quiet" }, h("span", {}, "\u25bc less"),
      h("span", { class: "scale", "aria-hidden": "true" }), h("span", {}, "more \u25b2"),
      h("span", {}, "Width: the larger of before and now."));
  }

  // How far each node is from neutral, from -1 to 1; the root of it, since most changes are small.
  grade() {
    const change = (node) => node[this.by][NOW] - node[this.by][BEFORE];
    const most = this.nodes.slice(1).reduce((top, node) => Math.max(top, Math.abs(change(node))), 1e-9);
    for (const node of this.nodes) {
      const part = node === this.root ? 0 : change(node) / most;
      node.grade = Math.abs(part) < 0.001 ? 0 : Math.sign(part) * Math.sqrt(Math.abs(part));
    }
  }

  words(node) {
    const [before, now] = [node.total[BEFORE], node.total[NOW]];
    const part = `${share(this.root.total[NOW] ? now / this.root.total[NOW] : 0)} of all`;
    const name = node.parent ? shown(node.name) : "all";
    const hit = this.hits.has(node) ? ["found"] : [];
    if (!this.differs) {
      return [name, `${count(now)} ${this.unit}, ${part}`, `self ${count(node.self[NOW])} ${this.unit}`,
        ...(node.parent ? [`calls ${count(node.calls[NOW])}`] : []), ...hit];
    }
    const pair = ([a, b]) => `${count(a)} ${ARROW} ${count(b)}`;
    const both = (values) => `${pair(values)} ${this.unit} (${growth(...values)})`;
    return [name, `with callees ${both([before, now])}`, `self ${both(node.self)}`,
      ...(node.parent ? [`calls ${pair(node.calls)}`] : []), `now ${part}`, ...hit];
  }

  // Ancestors of the zoomed node, and what is below it and wide enough to be seen.
  visible() {
    const wanted = [];
    for (let node = this.zoomed.parent; node; node = node.parent) wanted.unshift(node);
    const least = this.zoomed.width * NARROWEST;
    this.left = 0;
    let row = [this.zoomed];
    while (row.length) {  // row by row: what does not fit is at the bottom
      const room = MOST_FRAMES - wanted.length;
      if (row.length > room) this.left += row.length - room;
      wanted.push(...row.slice(0, room));
      const below = [];
      for (const node of row.slice(0, room)) {
        for (const child of node.children.values()) {
          if (child.width > 0 && child.width >= least) below.push(child);
          else this.left += 1;
        }
      }
      row = below;
    }
    return wanted;
  }

  draw(focus = null) {
    const had = this.tree.contains(document.activeElement);
    const wanted = this.visible();
    this.rows = [];
    this.frames = new Map();
    this.byElement = new Map();
    for (const node of wanted) {
      const frame = this.frame(node);
      this.frames.set(node, frame);
      this.byElement.set(frame, node);
      (this.rows[node.level] ??= []).push(node);
    }
    for (const row of this.rows) {
      row.forEach((node, number) => {
        const frame = this.frames.get(node);
        frame.setAttribute("aria-posinset", number + 1);
        frame.setAttribute("aria-setsize", row.length);
      });
    }
    this.tree.replaceChildren(...this.frames.values());
    this.tree.style.height = `${this.rows.length * ROW}px`;
    this.back.setAttribute("aria-disabled", String(!this.past.length));
    this.whole.setAttribute("aria-disabled", String(this.zoomed === this.root));
    this.note.textContent = !this.root.width ? `No ${this.unit} were counted.`
      : this.left ? `${count(this.left)} frames are too narrow to be drawn here: zoom in to see them.` : "";
    const target = this.frames.has(focus) ? focus : this.zoomed;
    this.frames.get(target).tabIndex = 0;
    if (had || focus) this.frames.get(target).focus();
  }

  frame(node) {
    const inside = node.level >= this.zoomed.level;
    const scale = this.zoomed.width || 1;
    const grade = this.differs ? node.grade : null;
    const mark = !grade ? "" : grade > 0 ? "\u25b2 " : "\u25bc ";
    const legible = !inside || (node.width / scale) * (this.tree.clientWidth || 1200) >= NARROWEST_TEXT;
    const kinds = ["frame", !inside && "above", this.hits.has(node) && "hit",
      grade > 0 && "up", grade < 0 && "down", grade === 0 && "same"];
    const frame = h("div", {
      class: kinds.filter(Boolean).join(" "), role: "treeitem", tabindex: "-1",
      "aria-level": node.level + 1, "aria-label": this.words(node).join(", "),
      "aria-current": node === this.zoomed ? "true" : null,
    }, h("span", {}, legible ? mark + (node.parent ? shown(node.name) : "all") : ""));
    frame.style.top = `${node.level * ROW}px`;
    frame.style.left = inside ? `${(100 * (node.x - this.zoomed.x)) / scale}%` : "0";
    frame.style.width = inside && this.zoomed.width ? `${(100 * node.width) / scale}%` : "100%";
    if (grade) frame.style.setProperty("--grade", `${Math.round(100 * Math.abs(grade))}%`);
    if (grade === null) frame.style.setProperty("--hue", 18 + (hash(node.name) % 40));
    return frame;
  }

  zoom(node) {
    if (node === this.zoomed) return;
    this.past.push(this.zoomed);
    this.zoomed = node;
    this.draw(this.tree.contains(document.activeElement) ? node : null);
  }

  zoomBack() {
    if (!this.past.length) return;
    const left = this.zoomed;
    this.zoomed = this.past.pop();
    this.draw(this.tree.contains(document.activeElement) ? left : null);
  }

  // Highlights, and how much of all the found frames are; one within another is not counted twice.
  find() {
    const wanted = this.search.value.trim().toLowerCase();
    const found = wanted ? this.nodes.slice(1).filter((node) => node.name.toLowerCase().includes(wanted)) : [];
    this.hits = new Set(found);
    const within = new Set();
    let sum = 0;
    for (const node of this.nodes) {  // parents come first
      if (within.has(node.parent) || this.hits.has(node)) {
        if (!within.has(node.parent)) sum += node.total[NOW];
        within.add(node);
      }
    }
    const functions = new Set(found.map((node) => node.name)).size;
    this.tree.classList.toggle("searching", Boolean(wanted));
    this.status.textContent = !wanted ? "" : `${share(this.root.total[NOW] ? sum / this.root.total[NOW] : 0)}`
      + ` of the ${this.unit} matched, ${count(functions)} function${functions === 1 ? "" : "s"}`;
    for (const [node, frame] of this.frames) {
      frame.classList.toggle("hit", this.hits.has(node));
      frame.setAttribute("aria-label", this.words(node).join(", "));
    }
  }

  focusHit() {
    const found = [...this.frames.keys()].filter((node) => this.hits.has(node));
    if (found.length) this.focus(found.reduce((a, b) => (b.width > a.width ? b : a)));
  }

  focus(node) {
    const frame = this.frames.get(node);
    if (!frame) return;
    for (const each of this.frames.values()) each.tabIndex = -1;
    frame.tabIndex = 0;
    frame.focus();
    frame.scrollIntoView({ block: "nearest" });
  }

  listen() {
    const nodeAt = (event) => this.byElement.get(event.target.closest(".frame"));
    this.tree.addEventListener("click", (event) => {
      const node = nodeAt(event);
      if (node) this.zoom(node);
    });
    this.tree.addEventListener("mousemove", (event) => {
      const node = nodeAt(event);
      if (node) tip.show(this.words(node), event.clientX, event.clientY);
    });
    this.tree.addEventListener("mouseleave", tip.hide);
    this.tree.addEventListener("focusout", tip.hide);
    this.tree.addEventListener("focusin", (event) => {
      const node = nodeAt(event);
      if (!node || !event.target.matches(":focus-visible")) return;
      tip.showFor(event.target, this.words(node));
    });
    this.tree.addEventListener("keydown", (event) => {
      const node = nodeAt(event);
      if (!node || event.ctrlKey || event.altKey || event.metaKey) return;
      const row = this.rows[node.level];
      const at = row.indexOf(node);
      const below = [...node.children.values()].find((child) => this.frames.has(child));
      const moves = {
        ArrowUp: () => this.focus(node.parent), ArrowDown: () => this.focus(below),
        ArrowLeft: () => this.focus(row[at - 1]), ArrowRight: () => this.focus(row[at + 1]),
        Home: () => this.focus(row[0]), End: () => this.focus(row.at(-1)),
        Enter: () => this.zoom(node), " ": () => this.zoom(node),
        Escape: () => { tip.hide(); this.zoomBack(); }, Backspace: () => this.zoomBack(),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
  }
}

function hash(text) {
  let found = 7;
  for (let at = 0; at < text.length; at += 1) found = (found * 31 + text.charCodeAt(at)) >>> 0;
  return found;
}
