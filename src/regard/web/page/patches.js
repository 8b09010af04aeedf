/**
 * An image and what is attended to in it: the weights of the selected row laid over its patches.
 * @module
 */
import { fill, h } from "./dom.js";
import { weightPlace } from "./scales.js";

const SIZE = 260; // pixels of the picture's longer edge

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {any} attention
 * @param {HTMLElement} box
 */
export function drawPatches(bench, attention, box) {
  const image = bench.trace?.arrays.image;
  const positions = bench.facts.positions[attention.columns]; // none of a network without attention
  if (!image) return;
  const [rows, columns] = image.shape;
  const channels = image.shape[2] ?? 1;
  const canvas = h("canvas", { class: "photo", width: columns, height: rows, role: "img", "aria-label": "The image, lit where it is attended to" });
  const scale = SIZE / Math.max(rows, columns);
  canvas.style.width = `${columns * scale}px`;
  canvas.style.height = `${rows * scale}px`;
  fill(box, canvas);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const show = () => {
    if (!box.isConnected) return;
    const own = pen.createImageData(columns, rows);
    const weights = bench.weights(attention, bench.selection.head);
    const n = attention.column_labels.length;
    const patches = positions?.grid ? weights?.data.subarray(bench.shown.query * n, (bench.shown.query + 1) * n) : undefined;
    const [down, across] = positions?.grid ?? [1, 1];
    const first = n - down * across; // patches come last, behind a class token
    const largest = patches ? Math.max(...patches.subarray(first)) || 1 : 1;
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) {
        const patch = first + Math.floor((y * down) / rows) * across + Math.floor((x * across) / columns);
        const light = patches ? 0.25 + 0.75 * (weightPlace(patches[patch] / largest, true) / 255) : 1;
        for (let channel = 0; channel < 3; channel++) {
          own.data[(y * columns + x) * 4 + channel] = image.data[(y * columns + x) * channels + Math.min(channel, channels - 1)] * light;
        }
        own.data[(y * columns + x) * 4 + 3] = 255;
      }
    }
    pen.putImageData(own, 0, 0);
  };
  bench.followHover("context", show);
  show();
}
