/**
 * The attention of one head, large: tokens with lines from the selected one, and the map under them.
 *
 * Pointing previews, a click pins, Escape lets go. Long inputs are shown in blocks, and a click on a block zooms in.
 * @module
 */
import { asSigned, asWeights, largestOf, paintLarge } from "./canvas.js";
import { csv, share, token } from "./format.js";
import { fill, find, h, s } from "./dom.js";
import { blocks, every, grid, merged, part, without } from "./layout.js";
import { css } from "./scales.js";
import { drawLinks } from "./links.js";
import { drawPatches } from "./patches.js";

const MOST = 128; // rows and columns that are drawn; longer maps are drawn in blocks
const WINDOW = 64; // of a zoomed map
const [LEFT, TOP] = [112, 70]; // room for the labels

/** @typedef {import("./workbench.js").Workbench} Workbench */

/** Which part of a long map is zoomed in to; null for all of it. @type {{ top: number, left: number } | null} */
let zoomed = null;

/** @type {import("./stage.js").View} */
export const attentionView = {
  name: "attention",
  title: "Attention",
  has: (bench) => Object.keys(bench.facts.kinds).length > 0,
  changes: ["kind", "layer", "head", "words", "plain", "sqrt"],
  draw(bench, box) {
    const attention = bench.attention;
    if (!attention) return;
    const whole = shownGrid(bench, attention);
    if (!whole) {
      fill(box, h("p", { class: "quiet" }, "fetching all weights of this attention …"));
      bench.working(() => bench.fetchWeights(attention)).then(() => bench.weights(attention, 0) && bench.state.tell(new Set(["view"])));
      return;
    }
    const view = zoomed ? part(whole, zoomed.top, zoomed.left, WINDOW, WINDOW) : blocks(whole, MOST);
    const context = h("div", { class: "context" });
    const map = h("div", { class: "map-frame" });
    const body = bench.trace?.arrays.image ? h("div", { class: "with-photo" }, context, map) : [context, map];
    fill(box, heading(bench, attention), body, footer(bench, attention, whole, view));
    if (bench.trace?.arrays.image) drawPatches(bench, attention, context);
    else drawLinks(bench, attention, context);
    drawMap(bench, attention, view, map);
    fitted.disconnect();
    let room = roomOf(map);
    fitted = new ResizeObserver(() => {
      if (!map.isConnected || roomOf(map) === room) return;
      room = roomOf(map);
      drawMap(bench, attention, view, map);
      for (const listener of bench.hoverListeners) listener();
    });
    fitted.observe(find("stage"));
  },
};

/** Draws the map anew when the stage changes its size. */
let fitted = new ResizeObserver(() => {});

/** @param {HTMLElement} frame */
function roomOf(frame) {
  const stage = find("stage");
  const above = frame.getBoundingClientRect().top - stage.getBoundingClientRect().top + stage.scrollTop;
  return `${stage.clientWidth} ${stage.clientHeight - above}`;
}

/**
 * The weights of the selected head as the tools want them: without special tokens, by words.
 * @param {Workbench} bench
 * @param {import("./workbench.js").Attention} attention
 */
export function shownGrid(bench, attention) {
  const weights = bench.weights(attention, bench.selection.head);
  if (!weights) return null;
  let found = grid(weights.data, attention.row_labels.length, attention.column_labels.length);
  const rows = positionsOf(bench, attention, "row");
  const columns = positionsOf(bench, attention, "column");
  if (bench.selection.plain) found = without(found, (at) => !rows.special[at], (at) => !columns.special[at]);
  if (bench.selection.words && rows.words.length && columns.words.length) found = merged(found, rows.words, columns.words);
  return found;
}

/**
 * Which word each row or column belongs to, and which are special tokens.
 * @param {Workbench} bench
 * @param {any} attention
 * @param {"row" | "column"} axis
 * @returns {{ words: (number | null)[], special: boolean[] }}
 */
function positionsOf(bench, attention, axis) {
  const words = attention[`${axis}_words`] ?? [];
  const labels = attention[`${axis}_labels`];
  return { words, special: words.length ? words.map((/** @type {number | null} */ own) => own === null) : labels.map(() => false) };
}

/** @param {Workbench} bench @param {any} attention */
function heading(bench, attention) {
  const own = attention.heads[bench.selection.head] ?? {};
  const name = `${attention.path}:${bench.selection.head}`;
  const isCut = bench.selection.cuts.includes(name);
  return h(
    "div",
    { class: "heading" },
    h("h2", {}, `Layer ${bench.selection.layer}, head ${bench.selection.head}`),
    own.label ? h("span", { class: "chip", title: labelTitle(own) }, own.label) : "",
    own.entropy !== undefined && own.entropy !== null ? h("span", { class: "quiet" }, `entropy ${own.entropy.toFixed(2)}`) : "",
    h("code", { class: "quiet path" }, attention.path),
    bench.source.isLive && bench.selection.step < 0
      ? h("button", { type: "button", class: isCut ? "danger" : "", title: "Key a", onclick: () => cut(bench, name) }, isCut ? "Put this head back" : "Cut this head")
      : "",
  );
}

/** Cut a head, or put it back. @param {Workbench} bench @param {string} name */
export function cut(bench, name) {
  const cuts = bench.selection.cuts;
  bench.state.set({ cuts: cuts.includes(name) ? cuts.filter((own) => own !== name) : [...cuts, name] });
}

/** @param {any} own */
function labelTitle(own) {
  return Object.entries(own.numbers ?? {})
    .map(([name, value]) => `${name} ${typeof value === "number" ? share(value) : value}`)
    .join(", ");
}

/**
 * The labels of rows or columns, of words or blocks where several positions are one.
 * @param {string[]} labels
 * @param {number[][]} of
 */
function axisLabels(labels, of) {
  return of.map((positions) => {
    const text = positions.map((at) => labels[at] ?? "").join("");
    return positions.length > 1 && positions.length > 6 ? `${token(labels[positions[0]] ?? "", 8)} …` : token(text, 18);
  });
}

/**
 * @param {Workbench} bench
 * @param {any} attention
 * @param {import("./layout.js").Grid} view
 * @param {HTMLElement} frame
 */
function drawMap(bench, attention, view, frame) {
  const size = cellSize(view, frame);
  const [width, height] = [view.columns * size, view.rows * size];
  const canvas = h("canvas", { class: "large", style: { left: `${LEFT}px`, top: `${TOP}px` } });
  paintLarge(canvas, view, size, asWeights(bench.scales, bench.selection.sqrt), bench.isDark);
  const cursor = h("div", { class: "cursor", id: "cell", role: "gridcell" });
  const pin = h("div", { class: "cursor pin", "aria-hidden": "true" });
  const cells = h(
    "div",
    {
      class: "cells",
      role: "grid",
      tabindex: "0",
      id: "grid",
      "aria-label": "Attention weights: rows attend, columns are attended to",
      "aria-rowcount": view.rows,
      "aria-colcount": view.columns,
      "aria-activedescendant": "cell",
      style: { left: `${LEFT}px`, top: `${TOP}px`, width: `${width}px`, height: `${height}px` },
    },
    h("div", { role: "row" }, cursor),
    pin,
  );
  const labels = labelsOf(attention, view, size);
  frame.style.width = `${LEFT + width + 12}px`;
  frame.style.height = `${TOP + height + 6}px`;
  fill(frame, labels, canvas, cells);

  const place = (/** @type {HTMLElement} */ mark, /** @type {{ query: number, key: number }} */ cell) => {
    const row = view.rowOf.findIndex((own) => own.includes(cell.query));
    const column = view.columnOf.findIndex((own) => own.includes(cell.key));
    mark.hidden = row < 0 || column < 0;
    mark.style.transform = `translate(${column * size}px, ${row * size}px)`;
    mark.style.width = mark.style.height = `${size - (size >= 8 ? 1 : 0)}px`;
    return { row, column };
  };
  const show = () => {
    const { row, column } = place(cursor, bench.shown);
    place(pin, bench.selection);
    cursor.setAttribute("aria-rowindex", String(row + 1));
    cursor.setAttribute("aria-colindex", String(column + 1));
    cursor.setAttribute("aria-label", bench.sentence());
    for (const text of labels.querySelectorAll("text")) {
      text.toggleAttribute("data-on", (text.dataset.axis === "row" && Number(text.dataset.at) === row) || (text.dataset.axis === "column" && Number(text.dataset.at) === column));
    }
  };
  const cellAt = (/** @type {PointerEvent} */ event) => {
    const bounds = cells.getBoundingClientRect();
    const row = Math.floor((event.clientY - bounds.top) / size);
    const column = Math.floor((event.clientX - bounds.left) / size);
    if (row < 0 || column < 0 || row >= view.rows || column >= view.columns) return null;
    return { query: view.rowOf[row][0], key: view.columnOf[column][0], row, column };
  };
  cells.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    const cell = cellAt(event);
    bench.point(cell && { query: cell.query, key: cell.key });
  });
  cells.addEventListener("pointerleave", () => bench.point(null));
  cells.addEventListener("click", (/** @type {PointerEvent} */ event) => {
    const cell = cellAt(event);
    if (!cell) return;
    if ("block" in view && Number(view.block) > 1) zoom(bench, cell.query, cell.key);
    bench.state.set({ query: cell.query, key: cell.key });
  });
  bench.hoverListeners = bench.hoverListeners.filter((own) => Reflect.get(own, "view") !== "map");
  bench.hoverListeners.push(Object.assign(show, { view: "map" }));
  shows = show;
  show();
}

/**
 * How large a cell can be so that the whole map is seen; on a narrow screen, so that it is as wide as that.
 * @param {import("./layout.js").Grid} view
 * @param {HTMLElement} frame
 */
function cellSize(view, frame) {
  const [width, height] = roomOf(frame).split(" ").map(Number);
  const wide = width - LEFT - 50 - (frame.parentElement?.classList.contains("with-photo") ? 280 : 0);
  const high = matchMedia("(min-width: 901px)").matches ? height - TOP - 96 : 460;
  return Math.max(4, Math.min(34, Math.floor(wide / Math.max(1, view.columns)), Math.floor(Math.max(170, high) / Math.max(1, view.rows))));
}

/** Shows the selected cell on the map that is drawn. */
let shows = () => {};

/** Follow the selection without drawing the map anew. @param {Workbench} bench */
export function followSelection(bench) {
  bench.state.listen((_, changed) => {
    if (changed.has("query") || changed.has("key")) {
      shows();
      for (const listener of bench.hoverListeners) listener();
    }
    if (changed.has("trace") || changed.has("kind")) zoomed = null;
  });
}

/** Zoom in around a cell. @param {Workbench} bench @param {number} query @param {number} key */
function zoom(bench, query, key) {
  zoomed = { top: Math.max(0, query - WINDOW / 2), left: Math.max(0, key - WINDOW / 2) };
  bench.state.tell(new Set(["view"]));
}

/**
 * Tokens at the rows and columns of a map.
 * @param {any} attention
 * @param {import("./layout.js").Grid} view
 * @param {number} size
 */
function labelsOf(attention, view, size) {
  const font = Math.max(9, Math.min(13, size));
  const [everyRow, everyColumn] = [every(view.rows, size, font + 2), every(view.columns, size, font + 2)];
  /** @type {SVGElement[]} */
  const texts = [];
  axisLabels(attention.row_labels, view.rowOf).forEach((label, at) => {
    if (at % everyRow) return;
    texts.push(s("text", { x: LEFT - 8, y: TOP + at * size + size / 2, "text-anchor": "end", "dominant-baseline": "central", "font-size": font, "data-axis": "row", "data-at": at }, label));
  });
  axisLabels(attention.column_labels, view.columnOf).forEach((label, at) => {
    if (at % everyColumn) return;
    const x = LEFT + at * size + size / 2;
    texts.push(s("text", { transform: `translate(${x}, ${TOP - 8}) rotate(-45)`, "font-size": font, "dominant-baseline": "central", "data-axis": "column", "data-at": at }, label));
  });
  return s("svg", { class: "axes", width: LEFT + view.columns * size + 90, height: TOP + view.rows * size + 4, "aria-hidden": "true" }, texts);
}

/**
 * @param {Workbench} bench
 * @param {any} attention
 * @param {import("./layout.js").Grid} whole
 * @param {any} view
 */
function footer(bench, attention, whole, view) {
  const notes = [];
  if (bench.selection.words) notes.push("subwords merged: rows are means, columns sums");
  if (bench.selection.plain) notes.push("special tokens hidden, rows made to sum to 1 again");
  if (view.block > 1) notes.push(`in blocks of ${view.block}, the largest weight of each; click one to zoom in`);
  const sheet = h("div", { class: "sheet-box" });
  return h(
    "div",
    { class: "footer" },
    legend(bench),
    h("p", { class: "quiet" }, notes.length ? `${notes.join("; ")}. ` : "", "Attention shows routing, not cause: cut a head to test cause."),
    h(
      "div",
      { class: "actions" },
      zoomed ? h("button", { type: "button", onclick: () => ((zoomed = null), bench.state.tell(new Set(["view"]))) }, "Whole map") : "",
      h("button", { type: "button", onclick: () => fill(sheet, sheet.firstChild ? "" : mapTable(attention, view)) }, "As a table"),
      h("button", { type: "button", onclick: () => navigator.clipboard.writeText(csv(mapRows(attention, whole))) }, "Copy as CSV"),
      bench.other ? h("button", { type: "button", onclick: () => showDifference(bench, attention, sheet) }, "Difference to the intact model") : "",
    ),
    sheet,
  );
}

/** @param {Workbench} bench */
function legend(bench) {
  const ramp = bench.scales.weight;
  const how = asWeights(bench.scales, bench.selection.sqrt);
  const stops = Array.from({ length: 11 }, (_, at) => css(ramp, how.place(at / 10)));
  return h(
    "div",
    { class: "legend", "aria-hidden": "true" },
    h("span", {}, "0"),
    h("span", { class: "bar", style: { background: `linear-gradient(to right, ${stops.join(", ")})` } }),
    h("span", {}, `1${bench.selection.sqrt ? " (√)" : ""}`),
    h("span", { class: "hatched" }),
    h("span", {}, "masked"),
  );
}

/**
 * @param {any} attention
 * @param {import("./layout.js").Grid} view
 * @returns {(string | number)[][]}
 */
function mapRows(attention, view) {
  const rows = axisLabels(attention.row_labels, view.rowOf);
  const columns = axisLabels(attention.column_labels, view.columnOf);
  return [["", ...columns], ...rows.map((label, y) => [label, ...Array.from(view.values.subarray(y * view.columns, (y + 1) * view.columns), (own) => (Number.isNaN(own) ? "masked" : Number(own.toFixed(4))))])];
}

/** @param {any} attention @param {import("./layout.js").Grid} view */
function mapTable(attention, view) {
  const small = view.rows * view.columns > 1600 ? part(view, 0, 0, 40, 40) : view;
  const [header, ...rows] = mapRows(attention, small);
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Attention weights as a table" },
    small !== view ? h("p", { class: "quiet" }, `The first ${small.rows} rows and ${small.columns} columns; the CSV has all.`) : "",
    h("table", { id: "map-table" }, h("thead", {}, h("tr", {}, header.map((label) => h("th", { scope: "col" }, label)))), h("tbody", {}, rows.map(([label, ...cells]) => h("tr", {}, h("th", { scope: "row" }, label), cells.map((cell) => h("td", { class: "number" }, typeof cell === "number" ? share(cell) : cell)))))),
  );
}

/** @param {Workbench} bench @param {any} attention @param {HTMLElement} sheet */
async function showDifference(bench, attention, sheet) {
  const found = await bench.working(() => bench.difference());
  const array = found?.arrays[attention.array];
  if (!array) return;
  const [, rows, columns] = array.shape;
  const head = bench.selection.head;
  const values = array.data.subarray(head * rows * columns, (head + 1) * rows * columns);
  const canvas = h("canvas", { class: "still", role: "img", "aria-label": "Difference of the weights" });
  const largest = largestOf(values);
  paintLarge(canvas, grid(values, rows, columns), Math.max(3, Math.min(20, Math.floor(460 / Math.max(rows, columns)))), asSigned(bench.scales, largest), bench.isDark);
  fill(sheet, h("p", {}, `Weights now minus those of the intact model; the largest change is ${share(largest)}.`), canvas);
}
