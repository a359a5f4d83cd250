"use strict";

// The page: all tests, or one of them, by the fragment of the address.

const RUN = JSON.parse(document.getElementById("run").textContent);
const WORST_FIRST = ["regressed", "failed", "nondeterministic", "uncounted", "incomparable", "new",
  "stale", "improved", "unchanged"];
const KINDS = [...WORST_FIRST, "over-budget", "kept"];
const PREFIX = "#test=";
const MOST_CAUSES = 20;
const MOST_CALLERS = 3;
const LEAST_SHARE = 0.01;
const TYPED = /^(accept|fix): (?=pytest )/;
const overview = document.getElementById("overview");
const details = document.getElementById("details");

// A surrogate without its other half cannot be in an address.
const fragment = (test) => PREFIX + encodeURIComponent(test.nodeid.replace(/\p{Cs}/gu, "\ufffd"));
const BY_FRAGMENT = new Map([...RUN.tests].reverse().map((test) => [fragment(test), test]));

function badge(verdict) {
  const kind = KINDS.includes(verdict) ? verdict : "other";
  return h("span", { class: `badge ${kind}` }, shown(verdict));
}

function detects(fraction) {
  return fraction == null ? NOTHING : `\u2265 ${share(fraction)}`;
}

// ---- all tests

const links = new Map();
let tests = null;
let left = null;

function severity(test) {
  const place = WORST_FIRST.indexOf(test.verdict);
  return place < 0 ? WORST_FIRST.length : place;
}

function named(test) {
  return h("a", { href: fragment(test), class: "name" }, shown(test.nodeid));
}

function testLink(test) {
  const link = named(test);
  links.set(test, link);
  return link;
}

function drawOverview() {
  const rows = [...RUN.tests].sort((a, b) =>
    severity(a) - severity(b) || Math.abs(b.delta ?? 0) - Math.abs(a.delta ?? 0));
  const verdicts = new Map();
  for (const { verdict } of rows) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  const choice = h("select", { "aria-label": "Verdict", onchange: () => tests.draw() },
    h("option", { value: "" }, "all verdicts"),
    [...verdicts].map(([verdict, number]) =>
      h("option", { value: verdict }, `${shown(verdict)} (${number})`)));
  tests = new Table({
    label: "Tests", noun: "test", rows, tools: [choice], sorted: [1, "ascending"], most: 2000,
    text: (test) => `${test.nodeid} ${shown(test.nodeid)} ${test.verdict}`,
    open: (test) => { location.hash = fragment(test); },
    columns: [
      { title: "test", value: (test) => test.nodeid, cell: testLink },
      { title: "verdict", value: severity, cell: (test) => badge(test.verdict) },
      { title: "baseline Ir", number: true, wide: true, value: (test) => test.baseline_ir, cell: (test) => count(test.baseline_ir) },
      { title: "now", number: true, wide: true, value: (test) => test.ir, cell: (test) => count(test.ir) },
      { title: "delta", number: true, value: (test) => test.delta, cell: (test) => percent(test.delta) },
      { title: "limit", number: true, wide: true, wraps: true, value: (test) => test.limit, cell: (test) => shown(test.limit) },
      { title: "detects", number: true, wide: true, value: (test) => test.detects, cell: (test) => detects(test.detects) },
    ],
  });
  tests.also = (test) => !choice.value || test.verdict === choice.value;
  fill(overview, {}, [
    h("h1", { tabindex: "-1" }, "Overview"),
    h("p", { class: "totals" }, [...verdicts].map(([verdict, number]) =>
      h("span", {}, `${count(number)} `, badge(verdict)))),
    RUN.notes.length ? h("ul", { class: "notes" }, RUN.notes.map((note) => h("li", {}, shown(note)))) : null,
    command("To accept", RUN.accept),
    causes(rows),
    RUN.tests.length || !RUN.calls.length ? tests.element : null,
    calls(),
    budgets(),
    environment(),
  ]);
}

// Tests that changed for the same reason: the reason once, the tests that it moved most first.
function causes(rows) {
  const found = new Map();
  for (const test of rows.filter(({ cause, delta }) => cause && delta != null)) {
    const key = [test.cause[0], test.cause[2]].join("\0");
    found.set(key, [...found.get(key) ?? [], test]);
  }
  if (!found.size) return null;
  // in the words that are true of all
  const what = (group) => (new Set(group.map(({ cause }) => cause[1])).size > 1 ? group[0].cause[2] : group[0].cause[1]);
  const range = (group) => [...new Set([group[0], group.at(-1)].map(({ delta }) => percent(delta)))].join(" to ");
  return [h("h2", {}, "Causes"), h("ul", { class: "causes" }, [...found.values()].slice(0, MOST_CAUSES).map((group) =>
    h("li", {}, h("strong", {}, range(group)), " ", h("span", { class: "name" }, shown(group[0].cause[0])), ` ${shown(what(group))}`,
      h("span", { class: "place" }, named(group[0])), others(group.slice(1))))),
  h("h2", {}, "Tests")];
}

function others(group) {
  if (!group.length) return null;
  return h("details", { class: "place" }, h("summary", {}, `and ${count(group.length)} more`),
    h("ul", {}, group.map((test) => h("li", {}, named(test)))));
}

// A line to type, whole at any width.
function command(title, text) {
  if (!text) return null;
  const button = h("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } }, "Copy");
  return h("p", { class: "command" }, `${title}: `, h("code", {}, shown(text)), " ", navigator.clipboard ? button : null);
}

// What markers say a test may cost at all; those that are not kept come first.
function budgets() {
  if (!RUN.budgets.length) return null;
  const test = ({ nodeid }) => BY_FRAGMENT.get(fragment({ nodeid }));
  const kept = ({ verdict }) => Number(verdict === "kept");
  return [h("h2", {}, "Budgets"), new Table({
    label: "Budgets", noun: "budget", sorted: [2, "ascending"], rows: RUN.budgets,
    text: (row) => `${row.nodeid} ${shown(row.nodeid)} ${row.budget} ${row.verdict}`,
    columns: [
      { title: "test", value: (row) => row.nodeid, cell: (row) => (test(row)
        ? named(row) : h("span", { class: "name" }, shown(row.nodeid))) },
      { title: "budget", value: (row) => row.budget, cell: (row) => shown(row.budget) },
      { title: "verdict", value: kept, cell: (row) => badge(row.verdict) },
      { title: "now", cell: (row) => shown(row.now), value: (row) => row.now, number: true },
      { title: "allowed", cell: (row) => shown(row.allowed), value: (row) => row.allowed, number: true },
    ],
  }).element];
}

// How often traced tests call what; those that failed come first, with the text of the failure.
function calls() {
  if (!RUN.calls.length) return null;
  const name = (row) => h("span", { class: "name" }, shown(row.nodeid));
  return [h("h2", {}, "Calls"), new Table({
    label: "Calls", noun: "traced test", sorted: [1, "ascending"], rows: RUN.calls,
    text: (row) => `${row.nodeid} ${shown(row.nodeid)} ${row.verdict}`,
    columns: [
      { title: "test", value: (row) => row.nodeid, cell: name },
      { title: "verdict", value: ({ verdict }) => Number(verdict === "unchanged"), cell: (row) => badge(row.verdict) },
      { title: "before", value: (row) => row.before, cell: (row) => count(row.before), number: true },
      { title: "now", value: (row) => row.now, cell: (row) => count(row.now), number: true },
      { title: "limit", value: (row) => row.limit, cell: (row) => shown(row.limit), number: true, wide: true },
    ],
  }).element, ...RUN.calls.filter(({ why }) => why).slice(0, MOST_CAUSES).map((row) =>
    terminal(row.why.split("\n")))];
}

// Lines as a terminal has them.
function terminal(lines) {
  return h("pre", { class: "why", tabindex: "0" }, lines.map(shown).join("\n"));
}

function budgetsOf({ nodeid }) {
  const rows = RUN.budgets.filter((row) => row.nodeid === nodeid);
  if (!rows.length) return [];
  return [h("h2", {}, "Budgets"), ...rows.map((row) => h("div", {},
    h("p", {}, badge(row.verdict), ` ${shown(row.budget)}: ${shown(row.now)}, allowed ${shown(row.allowed)}`),
    row.why ? terminal(row.why.split("\n")) : null))];
}

// The facts of this run, and of each what baselines have instead.
function environment() {
  const others = new Map();
  for (const test of RUN.tests) {
    for (const [fact, before] of test.differences ?? []) {
      const values = others.get(fact) ?? others.set(fact, new Map()).get(fact);
      values.set(before, (values.get(before) ?? 0) + 1);
    }
  }
  const facts = new Map(Object.entries(RUN.environment));
  for (const fact of others.keys()) if (!facts.has(fact)) facts.set(fact, null);
  const rows = [...facts].sort(([a], [b]) => others.has(b) - others.has(a));
  const instead = (fact) => [...others.get(fact) ?? []].map(([value, number]) =>
    h("div", {}, h("code", {}, shown(value)), ` in ${count(number)} test${number === 1 ? "" : "s"}`));
  return h("details", { class: "environment", open: others.size > 0 },
    h("summary", {}, `Environment: ${others.size ? `${others.size} of ${facts.size} facts differ from those of baselines`
      : "no fact differs from those of the baselines"}`),
    h("div", { class: "scroll", role: "region", "aria-label": "Environment", tabindex: "0" }, h("table", {},
      h("thead", {}, h("tr", {}, ["fact", "this run", ...(others.size ? ["baselines that differ"] : [])].map((title) =>
        h("th", { scope: "col" }, title)))),
      h("tbody", {}, rows.map(([fact, value]) => h("tr", { class: others.has(fact) ? "differs" : null },
        h("th", { scope: "row" }, shown(fact)),
        h("td", {}, value == null ? NOTHING : h("code", {}, shown(value))),
        others.size ? h("td", {}, others.has(fact) ? instead(fact) : NOTHING) : null))))));
}

// ---- one test

function drawDetails(test) {
  const more = JSON.parse(document.getElementById(`test-${RUN.tests.indexOf(test)}`).textContent);
  const order = tests.found();
  const at = order.indexOf(test);
  const step = (title, other) => other && h("a", { href: fragment(other) }, title);
  details.replaceChildren(
    h("nav", { "aria-label": "Tests" }, h("a", { href: "#" }, "All tests"),
      step("Previous", at < 0 ? null : order[at - 1]) ?? null, step("Next", at < 0 ? null : order[at + 1]) ?? null),
    h("h1", { tabindex: "-1", class: "name" }, shown(test.nodeid)),
    ...failure(more),
    ...flames(more.python),
    h("div", { class: "columns" },
      h("section", {}, numbers(test, more), differences("Environment", test.differences),
        differences("Packages changed", more.packages), added(more.work), budgetsOf(test)),
      h("section", {}, history(more.history))),
    ...pythonParts(more.python, more.no_python),
    ...(more.functions.length ? [h("h2", {}, "C functions"), functions("C functions", more.functions, "Ir"),
      leftOut(more.functions_left)] : []));
}

// The sentence, then what a terminal says: the source, the causes, the command.
function failure({ why, reason }) {
  const [sentence, ...lines] = (why ?? []).map((line) => line.replace(/^ {2}/, ""));
  if (!sentence) return reason ? [h("p", { class: "reason" }, shown(reason))] : [];
  const typed = lines.find((line) => TYPED.test(line));
  const rest = lines.filter((line) => line !== typed);
  return [h("p", { class: "sentence" }, shown(sentence)),
    rest.join("\n") ? terminal(rest) : "",
    command(`To ${typed?.match(TYPED)[1]}`, typed?.replace(TYPED, "")) ?? ""];
}

// One point is no history.
function history(points) {
  if (points.length < 2) return [];
  return [h("h2", {}, "History"), historyPlot(points.map(([commit, ir]) =>
    ({ commit: RUN.commits[commit][0], date: RUN.commits[commit][1], ir })))];
}

// One graph: the change, what was before, or what is now.
function flames(python) {
  if (!python?.new) return [];
  const { names, old: before, new: now } = python;
  const unit = unitOf(python);
  const views = { ...(before ? { difference: { before, now }, before: { now: before } } : {}), now: { now } };
  const stage = h("div", {});
  const draw = (view) => stage.replaceChildren(new FlameGraph(
    { label: view === "difference" ? "Differential flame graph" : "Flame graph", unit, names, ...views[view] }).element);
  const choice = h("select", { "aria-label": "Tree", onchange: () => draw(choice.value) },
    Object.keys(views).map((view) => h("option", { value: view }, view)));
  draw(Object.keys(views)[0]);
  return [h("h2", {}, "Flame graph"), before ? h("p", { class: "tools" }, "Show ", choice) : "", stage,
    h("p", { class: "quiet" }, "Click or Enter zooms in, Escape goes back, the arrow keys walk through the frames.")];
}

function unitOf(python) {
  return shown(python.unit).slice(0, 12);
}

// What is not listed.
function leftOut(number) {
  return number ? h("p", { class: "quiet" }, `${count(number)} more that changed less are left out.`) : "";
}

function added(work) {
  if (!work.length) return [];
  return [h("h2", {}, "Calls added"), h("ul", { class: "changed" }, work.map(([kind, before, now]) =>
    h("li", {}, `${shown(kind)}: ${count(before)} ${ARROW} ${count(now)}`)))];
}

function numbers(test, { spread, raw, layouts }) {
  const middle = test.baseline_ir || test.ir;
  const wide = spread && middle ? ` (${share((spread[1] - spread[0]) / middle)})` : "";
  const pairs = [
    ["Verdict", badge(test.verdict)],
    ["Baseline", `${count(test.baseline_ir)} Ir`],
    ["Now", `${count(test.ir)} Ir`],
    ["Delta", percent(test.delta)],
    ...(raw ? [["Usual layout", `${count(raw[0])} ${ARROW} ${count(raw[1])} Ir`]] : []),
    ["Limit", shown(test.limit)],
    ["Detects", detects(test.detects)],
    ["Noise spread", spread ? `${count(spread[0])} to ${count(spread[1])} Ir${wide}${layouts > 1 ? `, ${layouts} layouts` : ""}` : NOTHING],
  ];
  return h("dl", { class: "numbers" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function differences(title, changed) {
  if (!changed?.length) return [];
  return [h("h2", {}, title), h("ul", { class: "changed" }, changed.map(([name, before, now]) => h("li", {},
    `${shown(name)}: `, h("code", {}, shown(before)), ` ${ARROW} `, h("code", {}, shown(now)))))];
}

// Those that changed most of a change first. Without a share, which only what moved has: by their growth;
// "self_delta" is of Python functions alone. callers: name -> what calls it more or less often.
function functions(label, rows, unit, callers = new Map()) {
  if (!rows?.length) return h("p", { class: "quiet" }, "Nothing differs from the baseline.");
  const called = (row) => (row.calls_before == null || row.calls_after == null
    ? null : row.calls_after - row.calls_before);
  const parts = rows[0].share != null;
  const doing = !parts && rows[0].self_delta != null;
  const first = (row) => (parts ? row.share : Math.abs(row.self_delta ?? row.self ?? 0));
  const amount = (title, value, more) => ({ title, number: true, value, cell: (row) => signed(value(row)), ...more });
  return new Table({
    label, noun: "function", most: 50, sorted: null,
    rows: [...rows].sort((a, b) => first(b) - first(a)),
    minor: (row) => parts && Math.abs(row.share) < LEAST_SHARE,
    rest: (left) => (parts ? `${count(left.length)} more, together ${share(sum(left))}` : null),
    text: (row) => `${row.name} ${shown(row.name)} ${row.file ?? ""}`,
    columns: [
      { title: "function", value: (row) => row.name, cell: (row) => [
        h("span", { class: "name" }, shown(row.name)),
        row.file ? h("span", { class: "place" }, shown(row.file) + (row.line == null ? "" : `:${row.line}`)) : null,
        ...(callers.get(row.file ? `${row.name} (${row.file})` : row.name) ?? []).map((line) => h("span", { class: "place" }, line)),
      ] },
      ...(parts ? [amount("of the change", (row) => row.share, { cell: (row) => share(row.share) })] : []),
      ...(doing ? [amount(`self delta, ${unit}`, (row) => row.self_delta)] : []),
      amount(`self, ${unit}`, (row) => row.self, { wide: parts || doing }),
      amount(`with callees, ${unit}`, (row) => row.inclusive, { wide: true }),
      { title: "calls", number: true, value: called, cell: (row) => h("span",
        { class: called(row) ? "differs" : null }, `${count(row.calls_before)} ${ARROW} ${count(row.calls_after)}`) },
    ],
  }).element;
}

const sum = (rows) => rows.reduce((whole, row) => whole + row.share, 0);

// Name of a function -> lines that say who calls it more or less often, the largest difference first.
function callersOf({ names, old: before, new: now }) {
  const found = new Map();
  for (const { name, parent, calls } of before ? unite(names, [before, now]) : []) {
    if (!parent?.parent) continue;
    const all = found.get(name) ?? found.set(name, new Map()).get(name);
    const [old, recent] = all.get(parent.name) ?? [0, 0];
    all.set(parent.name, [old + calls[BEFORE], recent + calls[NOW]]);
  }
  const lines = ([name, all]) => [name, [...all].filter(([, [old, recent]]) => old !== recent)
    .sort(([, a], [, b]) => Math.abs(b[NOW] - b[BEFORE]) - Math.abs(a[NOW] - a[BEFORE])).slice(0, MOST_CALLERS)
    .map(([caller, [old, recent]]) => `called by ${shown(caller)} ${count(old)} ${ARROW} ${count(recent)} times`)];
  return new Map([...found].map(lines));
}

const HOW = {
  trampolines: "Counted by Callgrind, which saw each Python function as a function of its own.",
  tracer: "From a trace of the calls beside the count.",
};

// What each function costs, wherever it was called; of a recursion the outermost activation.
function costs(names, flat) {
  const found = new Map();
  const path = [];
  for (let at = 0; at < flat.length; at += 4) {
    path.length = Math.min(flat[at], path.length);
    const name = names[flat[at + 1]];
    path.push(name);
    if (!found.has(name)) found.set(name, { name, self: 0, inclusive: 0, calls: 0 });
    const row = found.get(name);
    row.self += flat[at + 2];
    row.calls += flat[at + 3];
    for (const each of new Set(path)) found.get(each).inclusive += flat[at + 2];
  }
  return [...found.values()].sort((a, b) => b.self - a.self);
}

function costTable(names, flat, unit) {
  const amount = (title, value) => ({ title, number: true, value, cell: (row) => count(value(row)) });
  return new Table({
    label: "Python functions", noun: "function", most: 10, sorted: null, rows: costs(names, flat),
    text: (row) => `${row.name} ${shown(row.name)}`,
    columns: [
      { title: "function", value: (row) => row.name, cell: (row) => h("span", { class: "name" }, shown(row.name)) },
      amount(`self, ${unit}`, (row) => row.self),
      { ...amount(`with callees, ${unit}`, (row) => row.inclusive), wide: true },
      amount("calls", (row) => row.calls),
    ],
  }).element;
}

function pythonParts(python, why) {
  if (!python) {
    return [h("h2", {}, "Python functions"), h("p", { class: "quiet" },
      shown(why || "The calls of this test's Python functions were not recorded."))];
  }
  const { how, names, old: before, new: now } = python;
  const unit = unitOf(python);
  const parts = [h("h2", {}, "Python functions"),
    python.from_baseline ? h("p", {}, "From the baseline: what is not regressed is not measured by Python function again.") : "",
    h("p", { class: "quiet" }, `${HOW[how] ?? shown(how)} The unit is ${unit === "Ir" ? "instructions (Ir)" : unit}, per call of the test.`,
      python.functions?.[0]?.share == null ? "" : " A share is what a function's own code and the calls that it makes more often added."),
    now && !before && !python.functions?.length ? costTable(names, now, unit)
      : functions("Python functions", python.functions, unit, callersOf(python)),
    leftOut(python.functions_left)];
  if (!before && !python.from_baseline) {
    parts.push(h("p", { class: "quiet" }, "The baseline has no tree to compare with."));
  }
  return parts;
}

// ---- which of both

function route() {
  const test = BY_FRAGMENT.get(location.hash)
    ?? [...BY_FRAGMENT].find(([key]) => decoded(key) === decoded(location.hash))?.[1];
  tip.hide();
  if (test) {
    if (!overview.hidden) left = { test, y: window.scrollY };
    drawDetails(test);
  }
  overview.hidden = Boolean(test);
  details.hidden = !test;
  document.title = test ? `${shown(test.nodeid)} \u2013 ${shown(RUN.title)}` : shown(RUN.title);
  if (test) {
    window.scrollTo(0, 0);
    details.querySelector("h1").focus({ preventScroll: true });
  } else {
    details.replaceChildren();
    if (left) {
      links.get(left.test)?.focus({ preventScroll: true });
      window.scrollTo(0, left.y);
    }
    left = null;
  }
}

// Others escape other characters in an address.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// ---- light and dark

const wish = window.matchMedia("(prefers-color-scheme: dark)");
const toggle = document.getElementById("theme");
let theme = null;

function paint() {
  const dark = theme ? theme === "dark" : wish.matches;
  if (theme) document.documentElement.dataset.theme = theme;
  toggle.setAttribute("aria-pressed", String(dark));
}

try {  // a page from disk may have no store
  theme = { dark: "dark", light: "light" }[localStorage.getItem("instrcount-theme")] ?? null;
} catch { /* it asks the system */ }
toggle.addEventListener("click", () => {
  theme = toggle.getAttribute("aria-pressed") === "true" ? "light" : "dark";
  paint();
  try {
    localStorage.setItem("instrcount-theme", theme);
  } catch { /* for this visit */ }
});
wish.addEventListener("change", paint);
paint();

document.getElementById("home").textContent = shown(RUN.title);
document.getElementById("made").textContent = RUN.created ? `made ${shown(RUN.created)}` : "";
window.addEventListener("scroll", tip.scrolled, { passive: true, capture: true });
window.addEventListener("hashchange", route);
drawOverview();
route();
