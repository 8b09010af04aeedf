/**
 * The atlas: all heads of a kind of attention as small maps, a row for each layer; a click selects.
 * @module
 */
import { asWeights, density, paintMany } from "./canvas.js";
import { fill, find, h } from "./dom.js";
import { number } from "./format.js";
import { atlasLayout, pooled } from "./layout.js";

const KIND_WORDS = { encoder: "Encoder", decoder: "Decoder", cross: "Cross", self: "Self-attention" };
const KIND_TITLES = {
  encoder: "what reads attends to itself",
  decoder: "what writes attends to itself, and to nothing that comes later: masked",
  cross: "what writes attends to what was read",
  self: "every position attends to every other that it may see",
};
export const SORTS = { layer: "layer", entropy: "entropy, sharpest first", label: "what they attend to" };

/** @typedef {{ path: string, layer: number, head: number, facts: any }} Head */

const SORTED_COLUMNS = 6; // where heads do not stand by layers

/** @param {import("./workbench.js").Workbench} bench */
export function mountAtlas(bench) {
  const panel = find("map");
  let sort = "layer";
  let repaint = () => {};
  const draw = () => {
    if (!bench.trace) return;
    const all = sorted(bench, sort);
    const most = Math.max(0, ...all.map((own) => own.head));
    panel.parentElement.toggleAttribute("data-many-heads", most >= 8);
    const box = h("div", { class: "atlas" });
    fill(panel, head(bench), box, tools(bench, sort, (own) => ((sort = own), draw())));
    repaint = drawHeads(bench, box, all, sort === "layer");
    select(bench);
  };
  bench.state.listen((_, changed) => {
    if (changed.has("trace") || changed.has("kind")) draw();
    else {
      if (changed.has("sqrt") || changed.has("theme")) repaint();
      if (["layer", "head", "cuts"].some((name) => changed.has(name))) select(bench);
    }
  });
  let width = panel.clientWidth;
  new ResizeObserver(() => {
    if (panel.clientWidth === width) return;
    width = panel.clientWidth;
    draw();
  }).observe(panel);
}

/** @param {import("./workbench.js").Workbench} bench */
function head(bench) {
  const kinds = Object.keys(bench.facts.kinds);
  if (!kinds.length) return h("p", { class: "quiet" }, "This network has no attention. Its layers are on the stage.");
  return h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": "Kind of attention" },
    kinds.map((kind, place) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          "aria-selected": String(kind === bench.selection.kind),
          title: `${Reflect.get(KIND_TITLES, kind) ?? kind} (key ${place + 1})`,
          onclick: () => bench.state.set({ ...bench.fitting({ ...bench.selection, kind, layer: bench.selection.layer }), kind }),
        },
        Reflect.get(KIND_WORDS, kind) ?? kind,
      ),
    ),
  );
}

/**
 * All heads of the selected kind in their order.
 * @param {import("./workbench.js").Workbench} bench
 * @param {string} sort
 * @returns {Head[]}
 */
function sorted(bench, sort) {
  const paths = bench.facts.kinds[bench.selection.kind] ?? [];
  const all = paths.flatMap((/** @type {string} */ path, /** @type {number} */ layer) =>
    bench.facts.attentions[path].heads.map((/** @type {any} */ facts, /** @type {number} */ place) => ({ path, layer, head: place, facts })),
  );
  if (sort === "entropy") all.sort((/** @type {Head} */ a, /** @type {Head} */ b) => (a.facts.entropy ?? 0) - (b.facts.entropy ?? 0));
  if (sort === "label") all.sort((/** @type {Head} */ a, /** @type {Head} */ b) => String(a.facts.label).localeCompare(String(b.facts.label)));
  return all;
}

/**
 * Put the heads into their box: one canvas for all maps, and a button over each. Returns what paints them anew.
 * @param {import("./workbench.js").Workbench} bench
 * @param {HTMLElement} box
 * @param {Head[]} all
 * @param {boolean} isRuled
 */
function drawHeads(bench, box, all, isRuled) {
  const cells = all.map((own, place) => (isRuled ? { row: own.layer, column: own.head } : { row: Math.floor(place / SORTED_COLUMNS), column: place % SORTED_COLUMNS }));
  const layout = atlasLayout(cells, box.clientWidth, isRuled);
  const { size, places, hasCaptions } = layout;
  box.style.width = `${layout.width}px`;
  box.style.height = `${layout.height}px`;
  const canvas = h("canvas", { "aria-hidden": "true", style: { width: `${layout.width}px`, height: `${layout.height}px` } });
  fill(box, canvas, hasCaptions ? "" : edges(cells, layout), all.map((own, place) => button(bench, own, places[place], layout)));

  const dense = density();
  canvas.width = Math.round(layout.width * dense);
  canvas.height = Math.round(layout.height * dense);
  const edge = Math.floor(size * dense);
  const values = new Float32Array(all.length * edge * edge);
  all.forEach(({ path, head: place }, number_) => {
    const map = bench.smallMap({ ...bench.facts.attentions[path], path }, place);
    if (map) pooled(map.data, map.shape[0], map.shape[1], edge, values, number_ * edge * edge);
  });
  const pixels = places.map(({ x, y }) => ({ x: Math.round(x * dense), y: Math.round(y * dense) }));
  const repaint = () => paintMany(canvas, values, edge, pixels, asWeights(bench.scales, bench.selection.sqrt));
  repaint();
  return repaint;
}

/**
 * The numbers of layers and heads at the edges.
 * @param {{ row: number, column: number }[]} cells
 * @param {ReturnType<typeof atlasLayout>} layout
 */
function edges(cells, { places, size, left, top }) {
  const found = cells.map((cell, number_) => ({ cell, place: places[number_] }));
  const firstRow = found.filter((own) => own.place.y === top);
  const firstColumn = found.filter((own) => own.place.x === left);
  const mark = (/** @type {number} */ text, /** @type {Record<string, string>} */ style, /** @type {string} */ axis) => h("span", { class: `edge ${axis}`, "aria-hidden": "true", style }, text);
  return [
    firstRow.map(({ cell, place }) => mark(cell.column, { left: `${place.x}px`, top: "0", width: `${size}px` }, "column")),
    firstColumn.map(({ cell, place }) => mark(cell.row, { left: "0", top: `${place.y}px`, "line-height": `${size}px` }, "row")),
  ];
}

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {Head} own
 * @param {{ x: number, y: number }} place
 * @param {{ size: number, hasCaptions: boolean }} layout
 */
function button(bench, { path, layer, head: number_, facts }, place, { size, hasCaptions }) {
  const label = facts.label ? `, ${facts.label}` : "";
  const entropy = facts.entropy === undefined || facts.entropy === null ? "" : `, entropy ${number(facts.entropy)}`;
  return h(
    "button",
    {
      type: "button",
      class: "thumbnail",
      tabindex: "-1",
      "data-layer": layer,
      "data-head": number_,
      "data-path": path,
      style: { left: `${place.x}px`, top: `${place.y}px`, width: `${size}px`, height: `${size}px` },
      title: `layer ${layer}, head ${number_}${label}${entropy}`,
      "aria-label": `layer ${layer}, head ${number_}${label}`,
      onclick: () => bench.state.set({ layer, head: number_, view: "attention" }),
    },
    hasCaptions ? h("span", { class: "caption" }, `${layer}.${number_}`) : "",
  );
}

/** Mark what is selected, and what is cut. @param {import("./workbench.js").Workbench} bench */
function select(bench) {
  const { layer, head: place, cuts } = bench.selection;
  for (const button of find("map").querySelectorAll(".thumbnail")) {
    const isChosen = Number(button.dataset.layer) === layer && Number(button.dataset.head) === place;
    button.toggleAttribute("data-chosen", isChosen);
    button.setAttribute("aria-pressed", String(isChosen));
    button.tabIndex = isChosen ? 0 : -1; // one tab stop; keys go on from there
    button.toggleAttribute("data-cut", cuts.includes(`${button.dataset.path}:${button.dataset.head}`) || cuts.includes(button.dataset.path));
  }
}

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {string} sort
 * @param {(sort: string) => void} onSort
 */
function tools(bench, sort, onSort) {
  const own = bench.facts.attentions[bench.attention?.path ?? ""]?.heads?.[bench.selection.head];
  if (!own) return "";
  const box = (/** @type {string} */ name, /** @type {string} */ text, /** @type {string} */ title) =>
    h("label", { title }, h("input", { type: "checkbox", ".checked": Reflect.get(bench.selection, name), onchange: (/** @type {any} */ event) => bench.state.set({ [name]: event.target.checked }) }), ` ${text}`);
  return h(
    "div",
    { class: "tools" },
    h("label", {}, "sort by ", h("select", { onchange: (/** @type {any} */ event) => onSort(event.target.value) }, Object.entries(SORTS).map(([name, text]) => h("option", { value: name, selected: name === sort }, text)))),
    box("words", "merge subwords into words", "Rows are means over a word's tokens, columns are sums"),
    box("plain", "hide special tokens", "What is left of a row is made to sum to 1 again"),
    box("sqrt", "colour by the square root", "Tells small weights apart"),
  );
}

