/**
 * The attention of one head, large: tokens with lines from the selected one, and the map under them.
 *
 * Pointing previews, a click pins, Escape lets go. Long inputs are shown in blocks; a click on one zooms in, and what is
 * zoomed in to follows the selected cell.
 * @module
 */
import { asSigned, asWeights, largestOf, paintLarge } from "./canvas.js";
import { share } from "./format.js";
import { fill, find, h } from "./dom.js";
import { blocks, fromBlocks, grid, merged, part, windowAround, without } from "./layout.js";
import { drawLinks } from "./links.js";
import { drawMap, roomOf } from "./map.js";
import { legend, tableTools } from "./map_table.js";
import { drawPatches } from "./patches.js";

const MOST = 128; // rows and columns that are drawn; longer maps are drawn in blocks
const FAINT = 0.1; // a map without any larger weight looks empty
const WINDOW = 64; // rows and columns of what is zoomed in to

/** @typedef {import("./workbench.js").Workbench} Workbench */
/** @typedef {import("./workbench.js").Attention} Attention */

/** What is drawn at the moment: how to follow the selection, and to colour it anew. */
let drawn = { show: () => {}, repaint: () => {} };

/** Draws the map anew when the stage changes its size. */
let fitted = new ResizeObserver(() => {});

/** @type {import("./stage.js").View} */
export const attentionView = {
  name: "attention",
  title: "Attention",
  has: (bench) => Object.keys(bench.facts.kinds).length > 0,
  changes: ["kind", "layer", "head", "words", "plain", "part"],
  draw(bench, box) {
    const attention = bench.attention;
    if (!attention) return;
    const isWhole = bench.weights(attention, bench.selection.head) !== null;
    const whole = isWhole ? shownGrid(bench, attention) : blockGrid(bench, attention);
    if (!whole) return;
    if (!isWhole) bench.working(() => bench.fetchWeights(attention)).then(() => bench.weights(attention, 0) && bench.state.tell(new Set(["view"])));
    const from = isWhole && isLong(whole) && bench.selection.part.length ? bench.selection.part : null;
    const view = from ? part(whole, from[0], from[1], WINDOW, WINDOW) : blocks(whole, MOST);
    const context = h("div", { class: "context" });
    const frame = h("div", { class: "map-frame" });
    const body = bench.trace?.arrays.image ? h("div", { class: "with-photo" }, context, frame) : [context, frame];
    fill(box, heading(bench, attention), body, footer(bench, attention, { whole, view, isWhole, from }));
    if (bench.trace?.arrays.image) drawPatches(bench, attention, context);
    else drawLinks(bench, attention, context);
    const draw = () => {
      drawn = drawMap(frame, {
        view,
        rows: attention.row_labels,
        columns: attention.column_labels,
        label: "Attention weights: rows attend, columns are attended to",
        how: () => asWeights(bench.scales, bench.selection.sqrt),
        isDark: () => bench.isDark,
        shown: () => bench.shown,
        pinned: () => bench.selection,
        point: (cell) => bench.point(cell),
        pick: ({ query, key }) => bench.state.set({ query, key, ...(isWhole && isLong(whole) && !from ? { part: around(whole, query, key) } : {}) }),
        sentence: () => bench.sentence(),
      });
    };
    draw();
    bench.followHover("map", () => drawn.show());
    fitted.disconnect();
    let room = roomOf(frame);
    fitted = new ResizeObserver(() => {
      if (!frame.isConnected || roomOf(frame) === room) return;
      room = roomOf(frame);
      draw();
      for (const listener of bench.hoverListeners.values()) listener();
    });
    fitted.observe(find("stage"));
  },
};

/** Whether a map is too long to be drawn cell by cell. @param {import("./layout.js").Grid} whole */
function isLong(whole) {
  return Math.max(whole.rows, whole.columns) > MOST;
}

/**
 * The first row and column of a part that has a cell in its middle.
 * @param {import("./layout.js").Grid} whole
 * @param {number} query
 * @param {number} key
 */
function around(whole, query, key) {
  const row = whole.rowOf.findIndex((own) => own.includes(query));
  const column = whole.columnOf.findIndex((own) => own.includes(key));
  return [windowAround(row, whole.rows, WINDOW), windowAround(column, whole.columns, WINDOW)];
}

/** Follow the selection without drawing the map anew, unless what is zoomed in to has to move. @param {Workbench} bench */
export function followSelection(bench) {
  bench.state.listen((selection, changed) => {
    if (changed.has("query") || changed.has("key")) {
      keepInPart(bench);
      drawn.show();
      for (const listener of bench.hoverListeners.values()) listener();
    }
    if (changed.has("sqrt") && selection.view === "attention") {
      drawn.repaint();
      const old = find("view").querySelector(".legend");
      old?.replaceWith(weightsLegend(bench));
    }
    if ((changed.has("text") || changed.has("kind")) && selection.part.length) bench.state.set({ part: [] });
  });
}

/** Move what is zoomed in to, if the selected cell has left it. @param {Workbench} bench */
function keepInPart(bench) {
  const { part: own, query, key, view } = bench.selection;
  const attention = bench.attention;
  if (!own.length || !attention || view !== "attention") return;
  const whole = shownGrid(bench, attention);
  if (!whole) return;
  const seen = part(whole, own[0], own[1], WINDOW, WINDOW);
  const isSeen = (/** @type {number[][]} */ of, /** @type {number} */ at) => of.some((positions) => positions.includes(at));
  if (!isSeen(seen.rowOf, query) || !isSeen(seen.columnOf, key)) bench.state.set({ part: around(whole, query, key) });
}

/** Zoom in to the selected cell of a long map, or out again. @param {Workbench} bench */
export function zoom(bench) {
  const { query, key } = bench.selection;
  const whole = bench.attention && shownGrid(bench, bench.attention);
  if (whole && isLong(whole)) bench.state.set({ view: "attention", part: bench.selection.part.length ? [] : around(whole, query, key) });
}

/**
 * The weights of the selected head as the tools want them: without special tokens, by words.
 * @param {Workbench} bench
 * @param {Attention} attention
 */
export function shownGrid(bench, attention) {
  const weights = bench.weights(attention, bench.selection.head);
  if (!weights) return null;
  let found = grid(weights.data, attention.row_labels.length, attention.column_labels.length);
  const rows = positionsOf(attention, "row");
  const columns = positionsOf(attention, "column");
  if (bench.selection.plain) found = without(found, (at) => !rows.special[at], (at) => !columns.special[at]);
  if (bench.selection.words && rows.words.length && columns.words.length) found = merged(found, rows.words, columns.words);
  return found;
}

/** The largest weights of blocks, until all of them have come. @param {Workbench} bench @param {Attention} attention */
function blockGrid(bench, attention) {
  const small = bench.smallMap(attention, bench.selection.head);
  return small && fromBlocks(small.data, attention.block, attention.row_labels.length, attention.column_labels.length);
}

/**
 * Which word each row or column belongs to, and which are special tokens.
 * @param {any} attention
 * @param {"row" | "column"} axis
 * @returns {{ words: (number | null)[], special: boolean[] }}
 */
function positionsOf(attention, axis) {
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
    bench.source.isLive && bench.selection.step < 0
      ? h("button", { type: "button", class: isCut ? "danger" : "", title: "Key a", onclick: () => cut(bench, name) }, isCut ? "Put this head back" : "Cut this head")
      : "",
    h("code", { class: "quiet path" }, attention.path),
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

/** @param {Workbench} bench */
function weightsLegend(bench) {
  const { sqrt } = bench.selection;
  return legend(bench.scales, asWeights(bench.scales, sqrt), { sqrt, masked: true });
}

/**
 * @param {Workbench} bench
 * @param {any} attention
 * @param {{ whole: import("./layout.js").Grid, view: any, isWhole: boolean, from: number[] | null }} map
 */
function footer(bench, attention, { whole, view, isWhole, from }) {
  const notes = [];
  if (!isWhole) notes.push("all weights are being fetched");
  if (bench.selection.words) notes.push("subwords merged: rows are means, columns sums");
  if (bench.selection.plain) notes.push("special tokens hidden, rows made to sum to 1 again");
  if (!bench.selection.sqrt && largestOf(view.values) < FAINT) notes.push(`no weight above ${FAINT}: colour by the square root tells them apart`);
  if (view.block > 1) notes.push(`${whole.rows} × ${whole.columns} in blocks of ${view.block}, the largest weight of each; click one to zoom in`);
  if (from) notes.push(`rows ${from[0]} to ${from[0] + view.rows - 1} of ${whole.rows}, columns ${from[1]} to ${from[1] + view.columns - 1} of ${whole.columns}; arrow keys move on`);
  const { buttons, sheet } = tableTools({ rows: attention.row_labels, columns: attention.column_labels }, view, whole);
  return h(
    "div",
    { class: "footer" },
    weightsLegend(bench),
    h("p", { class: "quiet" }, notes.length ? `${notes.join("; ")}. ` : "", "Attention shows routing, not cause: cut a head to test cause."),
    h(
      "div",
      { class: "actions" },
      isWhole && isLong(whole) ? h("button", { type: "button", title: "Key z", onclick: () => zoom(bench) }, from ? "Whole map" : "Zoom in to the selected cell") : "",
      buttons,
      bench.other ? h("button", { type: "button", onclick: () => showDifference(bench, attention, sheet) }, "Difference to the intact model") : "",
    ),
    sheet,
  );
}

/** @param {Workbench} bench @param {any} attention @param {HTMLElement} sheet */
async function showDifference(bench, attention, sheet) {
  const found = await bench.working(() => bench.difference());
  const array = found?.arrays[`weights:${attention.path}`];
  if (!array) return;
  const [, rows, columns] = array.shape;
  const head = bench.selection.head;
  const values = array.data.subarray(head * rows * columns, (head + 1) * rows * columns);
  const canvas = h("canvas", { class: "still", role: "img", "aria-label": "Difference of the weights" });
  const largest = largestOf(values);
  paintLarge(canvas, grid(values, rows, columns), Math.max(3, Math.min(20, Math.floor(460 / Math.max(rows, columns)))), asSigned(bench.scales, largest), bench.isDark);
  fill(sheet, h("p", {}, `Weights now minus those of the intact model; the largest change is ${share(largest)}.`), canvas);
}
