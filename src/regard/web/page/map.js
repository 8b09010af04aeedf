/**
 * A map of numbers with tokens at its rows and columns: drawn on a canvas, pointed at and pinned by a pointer, an ARIA grid
 * with one tab stop. What it shows, and what a click does, is its view's.
 * @module
 */
import { paintLarge } from "./canvas.js";
import { token } from "./format.js";
import { fill, find, h, s } from "./dom.js";
import { every } from "./layout.js";

export const [LEFT, TOP] = [112, 70]; // room for the labels

/** @typedef {{ query: number, key: number }} Cell */
/** @typedef {import("./layout.js").Grid} Grid */

/**
 * What a map is of.
 *
 * view          its cells; where they are blocks, `largest` says which cell of `whole` each shows
 * rows, columns their labels, by position
 * how           colours; asked for anew when they change
 * shown, pinned the cell that is shown, and the one that stays
 * point, pick   the pointer is on a cell, or nowhere; a cell was clicked
 * sentence      the shown cell in words
 *
 * @typedef {object} MapOf
 * @property {Grid} view
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {string} label
 * @property {() => import("./canvas.js").Paint} how
 * @property {() => boolean} isDark
 * @property {() => Cell} shown
 * @property {() => Cell} pinned
 * @property {(cell: Cell | null) => void} point
 * @property {(cell: Cell) => void} pick
 * @property {() => string} sentence
 */

/**
 * Draw a map into its frame; returns what marks the shown cell anew, and what colours all anew.
 * @param {HTMLElement} frame
 * @param {MapOf} map
 */
export function drawMap(frame, map) {
  const { view } = map;
  const size = cellSize(view, frame);
  const [width, height] = [view.columns * size, view.rows * size];
  const canvas = h("canvas", { class: "large", style: { left: `${LEFT}px`, top: `${TOP}px` } });
  const cursor = h("div", { class: "cursor", id: "cell", role: "gridcell" });
  const pin = h("div", { class: "cursor pin", "aria-hidden": "true" });
  const cells = h(
    "div",
    {
      class: "cells",
      role: "grid",
      tabindex: "0",
      id: "grid",
      "aria-label": map.label,
      "aria-rowcount": view.rows,
      "aria-colcount": view.columns,
      "aria-activedescendant": "cell",
      style: { left: `${LEFT}px`, top: `${TOP}px`, width: `${width}px`, height: `${height}px` },
    },
    h("div", { role: "row" }, cursor),
    pin,
  );
  const labels = labelsOf(map, size);
  frame.style.width = `${LEFT + width + 12}px`;
  frame.style.height = `${TOP + height + 6}px`;
  fill(frame, labels, canvas, cells);

  const place = (/** @type {HTMLElement} */ mark, /** @type {Cell} */ cell) => {
    const row = view.rowOf.findIndex((own) => own.includes(cell.query));
    const column = view.columnOf.findIndex((own) => own.includes(cell.key));
    mark.hidden = row < 0 || column < 0;
    mark.style.transform = `translate(${column * size}px, ${row * size}px)`;
    mark.style.width = mark.style.height = `${size - (size >= 8 ? 1 : 0)}px`;
    return { row, column };
  };
  const show = () => {
    const { row, column } = place(cursor, map.shown());
    place(pin, map.pinned());
    cursor.setAttribute("aria-rowindex", String(row + 1));
    cursor.setAttribute("aria-colindex", String(column + 1));
    cursor.setAttribute("aria-label", map.sentence());
    for (const text of labels.querySelectorAll("text")) {
      text.toggleAttribute("data-on", (text.dataset.axis === "row" && Number(text.dataset.at) === row) || (text.dataset.axis === "column" && Number(text.dataset.at) === column));
    }
  };
  const cellAt = (/** @type {PointerEvent} */ event) => {
    const bounds = cells.getBoundingClientRect();
    const row = Math.floor((event.clientY - bounds.top) / size);
    const column = Math.floor((event.clientX - bounds.left) / size);
    if (row < 0 || column < 0 || row >= view.rows || column >= view.columns) return null;
    return cellOf(view, row, column);
  };
  cells.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => map.point(cellAt(event)));
  cells.addEventListener("pointerleave", () => map.point(null));
  cells.addEventListener("click", (/** @type {PointerEvent} */ event) => {
    const cell = cellAt(event);
    if (cell) map.pick(cell);
  });
  const repaint = () => paintLarge(canvas, view, size, map.how(), map.isDark());
  repaint();
  show();
  return { show, repaint };
}

/**
 * The position that a cell of the map stands for: of a block, where its largest weight is.
 * @param {Grid} view
 * @param {number} row
 * @param {number} column
 */
function cellOf(view, row, column) {
  const [query, key] = view.largest ? view.largest[row * view.columns + column] : [view.rowOf[row][0], view.columnOf[column][0]];
  return { query, key };
}

/** How much room a map has, as text that tells whether it changed. @param {HTMLElement} frame */
export function roomOf(frame) {
  const stage = find("stage");
  const above = frame.getBoundingClientRect().top - stage.getBoundingClientRect().top + stage.scrollTop;
  return `${stage.clientWidth} ${Math.round(stage.clientHeight - above)}`;
}

/**
 * How large a cell can be so that the whole map is seen; on a narrow screen, so that it is as wide as that.
 * @param {Grid} view
 * @param {HTMLElement} frame
 */
function cellSize(view, frame) {
  const [width, height] = roomOf(frame).split(" ").map(Number);
  const wide = width - LEFT - 50 - (frame.parentElement?.classList.contains("with-photo") ? 280 : 0);
  const high = matchMedia("(min-width: 901px)").matches ? height - TOP - 96 : 460;
  const size = Math.min(34, wide / Math.max(1, view.columns), Math.max(220, high) / Math.max(1, view.rows));
  return size >= 4 ? Math.floor(size) : Math.max(2, size);
}

/**
 * Tokens at the rows and columns of a map.
 * @param {MapOf} map
 * @param {number} size
 */
function labelsOf({ view, rows, columns }, size) {
  const font = Math.max(9, Math.min(13, size));
  const areBlocks = view.block !== undefined && view.block > 1;
  const [everyRow, everyColumn] = [every(view.rows, size, font + 2), every(view.columns, size, font + 2)];
  /** @type {SVGElement[]} */
  const texts = [];
  axisLabels(rows, view.rowOf, areBlocks).forEach((label, at) => {
    if (at % everyRow) return;
    texts.push(s("text", { x: LEFT - 8, y: TOP + at * size + size / 2, "text-anchor": "end", "dominant-baseline": "central", "font-size": font, "data-axis": "row", "data-at": at }, label));
  });
  axisLabels(columns, view.columnOf, areBlocks).forEach((label, at) => {
    if (at % everyColumn) return;
    const x = LEFT + at * size + size / 2;
    texts.push(s("text", { transform: `translate(${x}, ${TOP - 8}) rotate(-45)`, "font-size": font, "dominant-baseline": "central", "data-axis": "column", "data-at": at }, label));
  });
  return s("svg", { class: "axes", width: LEFT + view.columns * size + 90, height: TOP + view.rows * size + 4, "aria-hidden": "true" }, texts);
}

/**
 * The labels of rows or columns: the text of a word whose tokens are merged; of a block, its first token.
 * @param {string[]} labels
 * @param {number[][]} of
 * @param {boolean} areBlocks
 */
export function axisLabels(labels, of, areBlocks) {
  return of.map((positions) => {
    if (areBlocks) return `${token(labels[positions[0]] ?? "", 10)} …`;
    return token(positions.map((at) => labels[at] ?? "").join(""), 14);
  });
}
