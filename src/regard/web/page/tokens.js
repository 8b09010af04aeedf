/**
 * Tokens, embeddings, positions: how the text was cut, the vectors that the model reads, and how it knows where each stands.
 * @module
 */
import { largestOf, strip } from "./canvas.js";
import { fill, h } from "./dom.js";
import { share, token } from "./format.js";
import { at } from "./packed.js";
import { signedPicture } from "./stream.js";
import { Refusal } from "./source.js";

const MOST = 40; // tokens whose vectors are shown
const KINDS = ["sinusoidal", "learned", "rotary", "order", "fraction"];

/** @type {import("./stage.js").View} */
export const tokensView = {
  name: "tokens",
  title: "Tokens",
  has: (bench) => Object.keys(bench.facts.kinds).length > 0,
  changes: [],
  draw(bench, box) {
    const vectors = h("div", {});
    const positions = h("div", {});
    const [near, merges] = [h("p", { class: "quiet" }), h("div", {})];
    const texts = bench.facts.positions.filter((/** @type {any} */ own) => own.ids.length);
    fill(box, texts.length ? h("h2", {}, "Tokens") : "", texts.map((/** @type {any} */ own) => pieces(bench, own, near)), near, merges, vectors, h("h2", {}, "Positions"), positions);
    if (bench.source.isLive && texts.length) showMerges(bench, texts[0].text, merges);
    showVectors(bench, vectors);
    showPositions(bench, positions, "", { n: 100, d: 64, base: 10000 });
  },
};

/** How the last word of a text was put together. @param {import("./workbench.js").Workbench} bench @param {string} text @param {HTMLElement} box */
async function showMerges(bench, text, box) {
  await refusing(box, async () => {
    const found = await bench.source.ask("tokens", { run: bench.selection.run, text });
    if (!found.merges.length) return;
    const rows = found.merges.map((/** @type {string[]} */ state, /** @type {number} */ place) => h("p", { class: "pieces" }, h("span", { class: "who" }, place ? `merge ${place}` : "begins"), state.map((own) => h("span", { class: "piece" }, own.replace(/ /g, "␣")))));
    const word = token(found.merges[0].join(""), 30);
    fill(box, h("details", {}, h("summary", {}, `How “${word}” was put together: ${found.merges.length - 1} merges of byte-pair encoding`), rows));
  });
}

/** The tokens nearest to one, by the cosine of their embeddings. @param {import("./workbench.js").Workbench} bench @param {number} id @param {string} label @param {HTMLElement} box */
async function showNeighbours(bench, id, label, box) {
  await refusing(box, async () => {
    const found = await bench.source.ask("neighbours", { run: bench.selection.run, id, n: 8 });
    const near = found.neighbours.map((/** @type {any} */ one) => `${token(one.token)} ${share(one.similarity)}`).join(", ");
    fill(box, `Nearest to ${token(label)} by the cosine of their embeddings: ${near}`);
  });
}

/** The tokens of an axis with their ids. @param {import("./workbench.js").Workbench} bench @param {any} own @param {HTMLElement} near */
function pieces(bench, own, near) {
  return h(
    "p",
    { class: "pieces" },
    h("span", { class: "who" }, own.name),
    own.labels.slice(0, 400).map((/** @type {string} */ label, /** @type {number} */ place) => h(bench.source.isLive ? "button" : "span", { class: own.words[place] === null ? "piece special" : "piece", title: `id ${own.ids[place]}: show its neighbours`, onclick: () => showNeighbours(bench, own.ids[place], label, near) }, label.replace(/\n/g, "⏎") || "∅", h("small", {}, own.ids[place]))),
  );
}

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function showVectors(bench, box) {
  await refusing(box, async () => {
    const { facts, arrays } = await bench.askPacked("embedding");
    const rows = facts.embeddings.flatMap((/** @type {any} */ embedding, /** @type {number} */ which) =>
      Object.entries(embedding.arrays).map(([tap, name]) => {
        const array = arrays[name];
        const largest = largestOf(array.data);
        const labels = bench.facts.positions[embedding.rows].labels;
        const lines = Array.from({ length: Math.min(MOST, array.shape[0]) }, (_, place) =>
          h("div", { class: "vector" }, h("span", { class: "what" }, token(labels[place], 14)), strip(at(array, place).data, bench.scales, largest, `${name} of ${labels[place]}`)),
        );
        return h("details", { open: which === 0 && tap === "tokens" }, h("summary", {}, name, h("span", { class: "quiet" }, `  ${array.shape[0]} × ${array.shape[1]}`)), lines);
      }),
    );
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
  // A recurrent network has none of its own: then those of the paper.
  const others = kind || !bench.source.isLive ? undefined : () => showPositions(bench, box, "sinusoidal", sizes);
  await refusing(box, async () => {
    const { facts, arrays } = await bench.askPacked("positions", { run: kind ? undefined : bench.selection.run, kind: kind || undefined, ...sizes });
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
  }, others);
}

/** @param {HTMLElement} box @param {() => Promise<void>} work @param {() => Promise<void>} [otherwise] */
async function refusing(box, work, otherwise) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (otherwise) {
      await refusing(box, otherwise);
      return;
    }
    fill(box, h("p", { class: "quiet" }, `${error.message} ${error.advice}`));
  }
}
