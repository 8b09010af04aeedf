/**
 * Tokens, embeddings, positions: how the text was cut, the vectors that the model reads, and how it knows where each stands.
 * @module
 */
import { largestOf, strip } from "./canvas.js";
import { fill, h } from "./dom.js";
import { token } from "./format.js";
import { at } from "./packed.js";
import { signedPicture } from "./stream.js";
import { Refusal } from "./source.js";

const MOST = 40; // tokens whose vectors are shown
const KINDS = ["sinusoidal", "learned", "rotary", "order", "fraction"];

/** @type {import("./stage.js").View} */
export const tokensView = {
  name: "tokens",
  title: "Tokens and positions",
  has: (bench) => bench.facts.positions.some((/** @type {any} */ own) => own.ids.length > 0) || bench.facts.image !== null,
  changes: [],
  draw(bench, box) {
    const vectors = h("div", {});
    const positions = h("div", {});
    fill(box, h("h2", {}, "Tokens"), bench.facts.positions.filter((/** @type {any} */ own) => own.ids.length).map(pieces), vectors, h("h2", {}, "Positions"), positions);
    showVectors(bench, vectors);
    showPositions(bench, positions, "", { n: 100, d: 64, base: 10000 });
  },
};

/** The tokens of an axis with their ids. @param {any} own */
function pieces(own) {
  return h(
    "p",
    { class: "pieces" },
    h("span", { class: "who" }, own.name),
    own.labels.slice(0, 400).map((/** @type {string} */ label, /** @type {number} */ place) => h("span", { class: own.words[place] === null ? "piece special" : "piece", title: `id ${own.ids[place]}` }, label.replace(/\n/g, "⏎") || "∅", h("small", {}, own.ids[place]))),
  );
}

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function showVectors(bench, box) {
  await refusing(box, async () => {
    const { arrays } = await bench.askPacked("embedding");
    const rows = Object.entries(arrays).map(([name, array]) => {
      const flat = array.shape.length === 2 ? array : null;
      if (!flat) return "";
      const largest = largestOf(flat.data);
      const own = bench.facts.positions.find((/** @type {any} */ one) => name.startsWith(one.name)) ?? bench.facts.positions[bench.facts.own];
      const lines = Array.from({ length: Math.min(MOST, flat.shape[0]) }, (_, place) =>
        h("div", { class: "vector" }, h("span", { class: "what" }, token(own?.labels[place] ?? String(place), 14)), strip(at(flat, place).data, bench.scales, largest, `${name} of ${own?.labels[place] ?? place}`)),
      );
      return h("details", { open: name.endsWith("sum") }, h("summary", {}, name, h("span", { class: "quiet" }, `  ${flat.shape[0]} × ${flat.shape[1]}`)), lines);
    });
    fill(box, h("h2", {}, "Embedding"), h("p", { class: "quiet" }, "A row of numbers for each token: blue below zero, orange above."), rows);
  });
}

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {HTMLElement} box
 * @param {string} kind
 * @param {{ n: number, d: number, base: number }} sizes
 */
async function showPositions(bench, box, kind, sizes) {
  await refusing(box, async () => {
    const { facts, arrays } = await bench.askPacked("positions", { run: bench.selection.run, kind: kind || undefined, ...sizes });
    const choose = h(
      "div",
      { class: "tools" },
      bench.source.isLive ? h("label", {}, "kind ", h("select", { onchange: (/** @type {any} */ event) => showPositions(bench, box, event.target.value, sizes) }, [facts.kind, ...KINDS.filter((own) => own !== facts.kind)].map((own) => h("option", { value: own }, own)))) : "",
      bench.source.isLive ? ["n", "d", "base"].map((name) => h("label", {}, `${name} `, h("input", { type: "number", min: 1, max: name === "base" ? 100000 : 512, value: Reflect.get(sizes, name), onchange: (/** @type {any} */ event) => showPositions(bench, box, facts.kind, { ...sizes, [name]: Number(event.target.value) }) }))) : "",
    );
    fill(
      box,
      choose,
      h("p", { class: "quiet" }, facts.about ?? ""),
      arrays.table ? h("figure", {}, signedPicture(bench, arrays.table, `Positional encoding, ${facts.kind}`), h("figcaption", {}, "a row for each position, a column for each dimension")) : "",
      arrays.dot ? h("figure", {}, signedPicture(bench, arrays.dot.shape.length === 1 ? { data: arrays.dot.data, shape: [1, arrays.dot.shape[0]] } : arrays.dot, "Dot product by distance"), h("figcaption", {}, "dot product of two positions, by their distance")) : "",
    );
  });
}

/** @param {HTMLElement} box @param {() => Promise<void>} work */
async function refusing(box, work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(box, h("p", { class: "quiet" }, `${error.message} ${error.advice}`));
  }
}
