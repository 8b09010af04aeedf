/**
 * A map as a table and as CSV, and the legend of its colours.
 * @module
 */
import { css } from "./scales.js";
import { csv, share } from "./format.js";
import { fill, h } from "./dom.js";
import { part } from "./layout.js";
import { axisLabels } from "./map.js";

const [MOST_CELLS, SIDE] = [1600, 40]; // of a table: cells, else so many rows and columns

/** @typedef {{ rows: string[], columns: string[] }} Labels */

/**
 * Buttons for the table and the CSV, and where the table opens.
 * @param {Labels} labels
 * @param {import("./layout.js").Grid} view  what is drawn
 * @param {import("./layout.js").Grid} whole  all of it
 */
export function tableTools(labels, view, whole) {
  const sheet = h("div", { class: "sheet-box" });
  const buttons = [
    h("button", { type: "button", onclick: () => fill(sheet, sheet.firstChild ? "" : mapTable(labels, view)) }, "As a table"),
    h("button", { type: "button", onclick: () => navigator.clipboard.writeText(csv(mapRows(labels, whole))) }, "Copy as CSV"),
  ];
  return { buttons, sheet };
}

/**
 * @param {Labels} labels
 * @param {import("./layout.js").Grid} view
 * @returns {(string | number)[][]}
 */
function mapRows(labels, view) {
  const areBlocks = (view.block ?? 1) > 1;
  const rows = axisLabels(labels.rows, view.rowOf, areBlocks);
  const columns = axisLabels(labels.columns, view.columnOf, areBlocks);
  const cells = (/** @type {number} */ y) => Array.from(view.values.subarray(y * view.columns, (y + 1) * view.columns), (own) => (Number.isNaN(own) ? "masked" : Number(own.toFixed(4))));
  return [["", ...columns], ...rows.map((label, y) => [label, ...cells(y)])];
}

/** @param {Labels} labels @param {import("./layout.js").Grid} view */
function mapTable(labels, view) {
  const small = view.rows * view.columns > MOST_CELLS ? part(view, 0, 0, SIDE, SIDE) : view;
  const [header, ...rows] = mapRows(labels, small);
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": "The map as a table" },
    small !== view ? h("p", { class: "quiet" }, `The first ${small.rows} rows and ${small.columns} columns; the CSV has all.`) : "",
    h("table", { id: "map-table" }, h("thead", {}, h("tr", {}, header.map((label) => h("th", { scope: "col" }, label)))), h("tbody", {}, rows.map(([label, ...cells]) => h("tr", {}, h("th", { scope: "row" }, label), cells.map((cell) => h("td", { class: "number" }, typeof cell === "number" ? share(cell) : cell)))))),
  );
}

/**
 * What the colours of weights mean.
 * @param {import("./scales.js").Scales} scales
 * @param {import("./canvas.js").Paint} how
 * @param {{ sqrt: boolean, masked: boolean }} said
 */
export function legend(scales, how, { sqrt, masked }) {
  const stops = Array.from({ length: 11 }, (_, at) => css(scales.weight, how.place(at / 10)));
  return h(
    "div",
    { class: "legend", "aria-hidden": "true" },
    h("span", {}, "0"),
    h("span", { class: "bar", style: { background: `linear-gradient(to right, ${stops.join(", ")})` } }),
    h("span", {}, `1${sqrt ? " (√)" : ""}`),
    masked ? [h("span", { class: "hatched" }), h("span", {}, "masked")] : "",
  );
}
