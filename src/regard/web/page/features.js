/**
 * Feature maps of an image network: the image, and what each channel of a layer makes of it.
 * @module
 */
import { asSigned, largestOf, paint } from "./canvas.js";
import { fill, h } from "./dom.js";
import { number } from "./format.js";
import { at } from "./packed.js";
import { drawPatches } from "./patches.js";
import { Refusal } from "./source.js";

const MOST = 64; // channels that are drawn

/** @type {import("./stage.js").View} */
export const featuresView = {
  name: "features",
  title: "Feature maps",
  has: (bench) => bench.facts.feature_maps.length > 0,
  changes: ["layer"],
  draw(bench, box) {
    const taps = bench.facts.feature_maps;
    const place = Math.min(bench.selection.layer, taps.length - 1);
    const [photo, maps] = [h("div", { class: "context" }), h("div", {})];
    fill(
      box,
      h("div", { class: "heading" }, h("h2", {}, "Feature maps"), h("p", { class: "quiet" }, "What each channel of a layer makes of the image: blue below zero, orange above.")),
      photo,
      h("div", { class: "tools" }, h("label", {}, "layer ", h("select", { onchange: (/** @type {any} */ event) => bench.state.set({ layer: Number(event.target.value) }) }, taps.map((/** @type {string} */ tap, /** @type {number} */ number_) => h("option", { value: number_, selected: number_ === place }, tap))))),
      maps,
    );
    drawPatches(bench, { columns: -1, column_labels: [] }, photo);
    show(bench, taps[place], maps);
  },
};

/** @param {import("./workbench.js").Workbench} bench @param {string} tap @param {HTMLElement} box */
async function show(bench, tap, box) {
  try {
    const { arrays } = await bench.askPacked("map", { tap });
    if (!box.isConnected) return;
    const [channels, rows, columns] = arrays.map.shape;
    const largest = largestOf(arrays.map.data);
    const own = Array.from({ length: Math.min(MOST, channels) }, (_, channel) => {
      const canvas = h("canvas", { class: "feature", role: "img", "aria-label": `channel ${channel}`, title: `channel ${channel}` });
      paint(canvas, at(arrays.map, channel).data, rows, columns, asSigned(bench.scales, largest));
      return canvas;
    });
    fill(box, h("p", { class: "quiet" }, `${channels} channels of ${rows} × ${columns}, the largest number ${number(largest)}${channels > MOST ? `; the first ${MOST} of them` : ""}`), h("div", { class: "features" }, own));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(box, h("p", { class: "quiet" }, `${error.message} ${error.advice}`));
  }
}
