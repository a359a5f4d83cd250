"use strict";

// A table that is sorted by the buttons in its head and searched as one types.
//
// columns: {title, value(row), cell(row), number, wraps, wide}; value is what is sorted by, null comes last.
// A phone has no room for a wide one.
// rows: in the order that is theirs where values are equal. text(row): what is searched.
// minor(row): whether it is folded until it is asked for; rest(rows): what is said of those that are not shown.

const kind = (column) => ["number", "wraps", "wide"].filter((each) => column[each]).join(" ") || null;
const COLLATOR = new Intl.Collator("en", { numeric: true });

class Table {
  constructor({ label, noun, columns, rows, text, open, minor = () => false, rest = () => null, most = 1000,
    sorted = null, tools = [] }) {
    Object.assign(this, { label, noun, columns, rows, text, open, minor, rest, most });
    this.made = new Map();
    this.words = new Map(rows.map((row) => [row, text(row).toLowerCase()]));
    this.also = () => true;
    this.status = h("p", { class: "status", role: "status" });
    this.search = h("input", {
      type: "search", placeholder: `Search ${noun}s`, "aria-label": `Search ${noun}s`,
      autocomplete: "off", spellcheck: "false", oninput: () => this.draw(),
    });
    this.heads = columns.map((column, number) => h("th",
      { scope: "col", class: kind(column) },
      h("button", { type: "button", onclick: () => this.sort(number) },
        column.title, h("span", { class: "arrow", "aria-hidden": "true" }))));
    this.body = h("tbody");
    this.more = h("button", { type: "button", class: "more", onclick: () => this.showAll() });
    this.element = h("div", { class: "table" },
      h("div", { class: "tools" }, this.search, tools, this.status),
      h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" },
        h("table", {}, h("caption", { class: "unseen" }, label),
          h("thead", {}, h("tr", {}, this.heads)), this.body)),
      this.more);
    if (sorted) this.sort(...sorted);
    else this.draw();
  }

  sort(number, direction) {
    const { value, number: numeric } = this.columns[number];
    const head = this.heads[number];
    const before = head.getAttribute("aria-sort");
    const first = numeric ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const wanted = direction ?? (before === first ? other : first);
    for (const each of this.heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", wanted);
    const sign = wanted === "ascending" ? 1 : -1;
    this.order = this.rows.map((row) => [value(row), row]);
    this.order.sort(([a], [b]) => {
      if (a == null || b == null) return (a == null) - (b == null);
      return sign * (typeof a === "number" ? a - b : COLLATOR.compare(a, b));
    });
    this.order = this.order.map(([, row]) => row);
    this.draw();
  }

  // What is left by the search and by a filter from outside, in the order of the table.
  found() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (this.order ?? this.rows).filter((row) =>
      this.also(row) && words.every((word) => this.words.get(row).includes(word)));
  }

  draw() {
    const found = this.found();
    const major = this.search.value || this.most === Infinity ? found : found.filter((row) => !this.minor(row));
    const visible = new Set((major.length ? major : found).slice(0, this.most));
    this.body.replaceChildren(...[...visible].map((row) => this.line(row)));
    const [all, noun] = [this.rows.length, this.rows.length === 1 ? this.noun : `${this.noun}s`];
    this.status.textContent =
      found.length === all ? `${count(all)} ${noun}` : `${count(found.length)} of ${count(all)} ${noun}`;
    this.more.hidden = visible.size === found.length;
    this.more.textContent = this.rest(found.filter((row) => !visible.has(row))) ?? `Show all ${count(found.length)}`;
  }

  showAll() {
    const before = new Set(this.body.children);
    this.most = Infinity;
    this.draw();
    const line = [...this.body.children].find((each) => !before.has(each));  // the button is gone: focus goes on
    line.tabIndex = -1;
    line.focus();
  }

  line(row) {
    if (!this.made.has(row)) {
      const cells = this.columns.map((column, number) => h(number ? "td" : "th",
        { class: kind(column), scope: number ? null : "row" }, column.cell(row)));
      this.made.set(row, h("tr", { class: this.open ? "opens" : null,
        onclick: this.open && ((event) => {
          if (!event.target.closest("a") && !String(window.getSelection())) this.open(row);
        }) }, cells));
    }
    return this.made.get(row);
  }
}
