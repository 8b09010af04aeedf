/**
 * The atlas: all heads of a kind of attention as small maps, a row for each layer; a click selects.
 * @module
 */
import { asWeights, paint } from "./canvas.js";
import { fill, find, h } from "./dom.js";
import { number } from "./format.js";

const KIND_WORDS = { encoder: "Encoder", decoder: "Decoder", cross: "Cross", self: "Self-attention" };
const KIND_TITLES = {
  encoder: "what reads attends to itself",
  decoder: "what writes attends to itself, and to nothing that comes later: masked",
  cross: "what writes attends to what was read",
  self: "every position attends to every other that it may see",
};
export const SORTS = { layer: "layer", entropy: "entropy, sharpest first", label: "what they attend to" };

/** @param {import("./workbench.js").Workbench} bench */
export function mountAtlas(bench) {
  const panel = find("map");
  let sort = "layer";
  const draw = () => {
    if (!bench.trace) return;
    fill(panel, head(bench), heads(bench, sort), tools(bench, sort, (own) => ((sort = own), draw())));
    select(bench);
  };
  bench.state.listen((_, changed) => {
    if (["trace", "kind", "sqrt", "theme"].some((name) => changed.has(name))) draw();
    else if (changed.has("layer") || changed.has("head") || changed.has("cuts")) select(bench);
  });
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
 * @param {import("./workbench.js").Workbench} bench
 * @param {string} sort
 */
function heads(bench, sort) {
  const paths = bench.facts.kinds[bench.selection.kind] ?? [];
  const all = paths.flatMap((/** @type {string} */ path, /** @type {number} */ layer) =>
    bench.facts.attentions[path].heads.map((/** @type {any} */ own, /** @type {number} */ number_) => ({ path, layer, head: number_, own })),
  );
  if (sort === "entropy") all.sort((/** @type {any} */ a, /** @type {any} */ b) => (a.own.entropy ?? 0) - (b.own.entropy ?? 0));
  if (sort === "label") all.sort((/** @type {any} */ a, /** @type {any} */ b) => String(a.own.label).localeCompare(String(b.own.label)));
  const most = Math.max(1, ...paths.map((/** @type {string} */ path) => bench.facts.attentions[path].n_heads));
  const columns = sort === "layer" ? most : Math.min(most, 6);
  const how = asWeights(bench.scales, bench.selection.sqrt);
  return h(
    "div",
    { class: `atlas${sort === "layer" ? " by-layer" : ""}`, style: { "--columns": String(columns) } },
    all.map((/** @type {any} */ one) => thumbnail(bench, one, how)),
  );
}

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {{ path: string, layer: number, head: number, own: any }} one
 * @param {import("./canvas.js").Paint} how
 */
function thumbnail(bench, { path, layer, head: place, own }, how) {
  const attention = { ...bench.facts.attentions[path], path };
  const weights = bench.smallMap(attention, place);
  const canvas = h("canvas", { "aria-hidden": "true" });
  if (weights) paint(canvas, weights.data, weights.shape[0], weights.shape[1], how);
  const label = own.label ? `, ${own.label}` : "";
  const entropy = own.entropy === undefined || own.entropy === null ? "" : `, entropy ${number(own.entropy)}`;
  return h(
    "button",
    {
      type: "button",
      class: "thumbnail",
      "data-layer": layer,
      "data-head": place,
      "data-path": path,
      title: `layer ${layer}, head ${place}${label}${entropy}`,
      "aria-label": `layer ${layer}, head ${place}${label}`,
      onclick: () => bench.state.set({ layer, head: place, view: "attention" }),
    },
    canvas,
    h("span", { class: "caption" }, `${layer}.${place}`),
  );
}

/** Mark what is selected, and what is cut. @param {import("./workbench.js").Workbench} bench */
function select(bench) {
  const { layer, head: place, cuts } = bench.selection;
  for (const button of find("map").querySelectorAll(".thumbnail")) {
    const isChosen = Number(button.dataset.layer) === layer && Number(button.dataset.head) === place;
    button.toggleAttribute("data-chosen", isChosen);
    button.setAttribute("aria-pressed", String(isChosen));
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

