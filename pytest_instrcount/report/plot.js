"use strict";

// What earlier commits counted, as a line with a point for each, and as a table.

function historyPlot(points) {
  if (!points.length) return h("p", { class: "quiet" }, "git knows no earlier baseline of this test.");
  const counts = points.map((point) => point.ir);
  const [low, high] = [Math.min(...counts), Math.max(...counts)];
  const x = (number) => (points.length === 1 ? 50 : 2 + (96 * number) / (points.length - 1));
  const y = (ir) => (low === high ? 50 : 8 + (84 * (high - ir)) / (high - low));
  const places = points.map((point, number) => `${x(number)} ${y(point.ir)}`);
  const words = (point) => [`${count(point.ir)} Ir`, shown(point.date).slice(0, 10),
    `commit ${shown(point.commit).slice(0, 10)}`];
  const said = points.length === 1 ? `${count(high)} Ir in one commit`
    : `${count(counts[0])} ${ARROW} ${count(counts.at(-1))} Ir in ${points.length} commits`
      + ` (${growth(counts[0], counts.at(-1))})`;
  return h("div", { class: "plot" },
    h("div", { class: "axis", "aria-hidden": "true" },
      low === high ? [h("span", {}, count(high))] : [h("span", {}, count(high)), h("span", {}, count(low))]),
    svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": said },
      svg("path", { class: "line", d: `M${places.join("L")}` }),
      // a line of no length is a round point, however the drawing is stretched
      points.map((point, number) => svg("path", { class: "point", d: `M${places[number]}h0`,
        onmousemove: (event) => tip.show(words(point), event.clientX, event.clientY),
        onmouseleave: tip.hide }))),
    h("div", { class: "dates", "aria-hidden": "true" }, h("span", {}, shown(points[0].date).slice(0, 10)),
      points.length > 1 ? h("span", {}, shown(points.at(-1).date).slice(0, 10)) : null),
    h("p", { class: "quiet" }, said, low === high ? "." : "; the axis does not begin at 0."),
    h("details", {}, h("summary", {}, "As a table"),
      h("table", {}, h("thead", {}, h("tr", {}, ["commit", "date", "Ir", "delta"].map((title, number) =>
        h("th", { scope: "col", class: number > 1 ? "number" : null }, title)))),
      h("tbody", {}, points.map((point, number) => h("tr", {},
        h("th", { scope: "row" }, h("code", {}, shown(point.commit).slice(0, 10))),
        h("td", { title: shown(point.date) }, shown(point.date).slice(0, 16).replace("T", " ")), h("td", { class: "number" }, count(point.ir)),
        h("td", { class: "number" }, number ? growth(counts[number - 1], point.ir) : NOTHING)))))));
}
