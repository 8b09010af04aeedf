/**
 * The residual stream: how long its vectors are behind each sublayer, what each head and sublayer adds to a logit, gradients.
 * @module
 */
import { asSigned, largestOf, paintLarge } from "./canvas.js";
import { fill, h } from "./dom.js";
import { number, token } from "./format.js";
import { grid } from "./layout.js";
import { css, signedPlace } from "./scales.js";
import { Refusal } from "./source.js";

const MOST_PARTS = 14;

/** @type {import("./stage.js").View} */
export const streamView = {
  name: "stream",
  title: "Stream",
  has: (bench) => bench.facts.norms !== null,
  changes: ["query"],
  draw(bench, box) {
    const [shares, slopes] = [h("div", {}, h("p", { class: "quiet" }, "splitting the logit …")), h("div", {})];
    fill(box, norms(bench), h("h2", {}, "What made this logit"), shares, slopes);
    showShares(bench, shares);
    showGradients(bench, slopes);
  },
};

/** Norms by sublayer, as lines: the selected position, and the mean of all. @param {import("./workbench.js").Workbench} bench */
function norms(bench) {
  const array = bench.trace?.arrays.norms;
  if (!array) return "";
  const [n, width] = array.shape;
  const place = Math.min(bench.selection.query, width - 1);
  const largest = largestOf(array.data);
  const rows = bench.facts.norms.sublayers.map((/** @type {string} */ name, /** @type {number} */ at) => {
    const own = array.data[at * width + place];
    const mean = Array.from(array.data.subarray(at * width, (at + 1) * width)).reduce((a, b) => a + b, 0) / width;
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, h("span", { class: "bar stream", style: { "--share": String(own / largest), "--mean": String(mean / largest) } })), h("td", { class: "number" }, number(own)), h("td", { class: "number quiet" }, number(mean)));
  });
  const who = bench.facts.steps[place] ? token(bench.facts.steps[place].reads) : "the input";
  return [
    h("div", { class: "heading" }, h("h2", {}, "Residual stream"), h("p", { class: "quiet" }, `Each sublayer adds to the stream. The length of its vector at ${who}, and the mean over ${width} positions (the mark).`)),
    h("table", { class: "bars wide" }, h("thead", { class: "hidden" }, h("tr", {}, h("th", {}, "sublayer"), h("th", {}, ""), h("th", {}, "length"), h("th", {}, "mean"))), h("tbody", {}, rows.slice(0, n))),
  ];
}

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function showShares(bench, box) {
  try {
    const found = await bench.ask("contributions", { position: bench.selection.query });
    if (!box.isConnected) return;
    if (found.refused) {
      fill(box, h("p", {}, found.refused), h("p", { class: "quiet" }, found.advice ?? ""));
      return;
    }
    const parts = [...found.contributions].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const largest = largestOf(parts.map((one) => one.value));
    const ramp = bench.scales.signed;
    const rows = parts.slice(0, MOST_PARTS).map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", {}, h("span", { class: "signed", style: { "--share": String(Math.abs(one.value) / largest), "--side": one.value < 0 ? "-1" : "1", "--colour": css(ramp, signedPlace(one.value, largest)) } })), h("td", { class: "number" }, number(one.value))));
    const rest = parts.slice(MOST_PARTS).reduce((sum, one) => sum + one.value, 0);
    fill(
      box,
      h("p", { class: "quiet" }, `The logit of ${token(String(found.token ?? ""))} is ${number(found.sum)}: the sum of what the embedding, each head and each feed-forward network add.`),
      h("table", { class: "bars wide" }, h("tbody", {}, rows, parts.length > MOST_PARTS ? h("tr", {}, h("th", { scope: "row" }, `${parts.length - MOST_PARTS} smaller ones together`), h("td", {}), h("td", { class: "number" }, number(rest))) : "")),
    );
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(box, h("p", {}, error.message), h("p", { class: "quiet" }, error.advice));
  }
}

/**
 * How steeply the logit rises with the states of each layer: the lengths of its gradients, all positions together.
 * @param {import("./workbench.js").Workbench} bench
 * @param {HTMLElement} box
 */
async function showGradients(bench, box) {
  if (bench.selection.step >= 0) return; // needs the model as it was
  try {
    const found = await bench.ask("gradients", { position: bench.facts.writes.length ? bench.selection.query : -1 });
    if (!box.isConnected) return;
    if (found.refused) {
      fill(box, h("h2", {}, "How steeply it rises"), h("p", { class: "quiet" }, `${found.refused} ${found.advice ?? ""}`));
      return;
    }
    const own = found.values.map((/** @type {number[]} */ values) => {
      const steepest = values.indexOf(Math.max(...values));
      return { length: Math.hypot(...values), steepest, most: values[steepest], hasMany: values.length > 1 };
    });
    const largest = largestOf(own.map((/** @type {any} */ one) => one.length)) || 1;
    const rows = own.map((/** @type {any} */ one, /** @type {number} */ at) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, found.sublayers[at]),
        h("td", {}, h("span", { class: "bar", style: { "--share": String(one.length / largest) } })),
        h("td", { class: "number" }, number(one.length)),
        h("td", { class: "quiet most" }, one.hasMany ? `most at ${token(found.positions[one.steepest] ?? String(one.steepest), 12)}, ${number(one.most)}` : ""),
      ),
    );
    fill(
      box,
      h("div", { class: "heading" }, h("h2", {}, "How steeply it rises"), h("p", { class: "quiet" }, "The length of this logit's gradient by the states behind each sublayer, all positions together: what a small change there would do.")),
      h("table", { class: "bars wide gradients" }, h("tbody", {}, rows)),
    );
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(box, h("p", { class: "quiet" }, `${error.message} ${error.advice}`));
  }
}

/**
 * A table of signed numbers as a picture.
 * @param {import("./workbench.js").Workbench} bench
 * @param {import("./packed.js").Tensor} array
 * @param {string} label
 */
export function signedPicture(bench, array, label) {
  const [rows, columns] = array.shape;
  const canvas = h("canvas", { class: "still", role: "img", "aria-label": label });
  const size = Math.max(2, Math.min(18, Math.floor(640 / columns)));
  paintLarge(canvas, grid(array.data, rows, columns), size, asSigned(bench.scales, largestOf(array.data)), bench.isDark);
  return canvas;
}
