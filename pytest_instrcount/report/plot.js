"use strict";

// What earlier commits and this run counted, as a line with a point for each, and as a table.

// The axis spans so much of the highest count at least: a little noise shall look little.
const LEAST_SPAN = 0.02;

function historyPlot(points) {
  const counts = points.map((point) => point.ir);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const margin = Math.max(0, (LEAST_SPAN * most - (most - least)) / 2);
  const [low, high] = [Math.round(least - margin), Math.round(most + margin)];
  const x = (number) => 2 + (96 * number) / (points.length - 1);
  const y = (ir) => (low === high ? 50 : 8 + (84 * (high - ir)) / (high - low));
  const places = points.map((point, number) => `${x(number)} ${y(point.ir)}`);
  const commit = (point) => shown(point.commit).slice(0, 10);
  const words = (point) => [`${count(point.ir)} Ir`, shown(point.date).slice(0, 10),
    point.commit ? `commit ${commit(point)}` : "this run"];
  const commits = points.filter((point) => point.commit).length;
  const said = `${count(counts[0])} ${ARROW} ${count(counts.at(-1))} Ir in ${commits} commit${commits === 1 ? "" : "s"}`
    + `${commits < points.length ? " and this run" : ""}`;
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
      h("span", {}, shown(points.at(-1).date).slice(0, 10))),
    h("p", { class: "quiet" }, said, "; the axis does not begin at 0."),
    h("details", {}, h("summary", {}, "As a table"),
      h("table", {}, h("thead", {}, h("tr", {}, ["commit", "date", "Ir", "delta"].map((title, number) =>
        h("th", { scope: "col", class: number > 1 ? "number" : null }, title)))),
      h("tbody", {}, points.map((point, number) => h("tr", {},
        h("th", { scope: "row" }, point.commit ? h("code", {}, commit(point)) : "this run"),
        h("td", { title: shown(point.date) }, shown(point.date).slice(0, 16).replace("T", " ")), h("td", { class: "number" }, count(point.ir)),
        h("td", { class: "number" }, number ? growth(counts[number - 1], point.ir) : NOTHING)))))));
}
