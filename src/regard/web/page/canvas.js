/**
 * Numbers as pixels: a map of one head, a strip of one vector.
 * @module
 */
import { css, signedPlace, weightPlace } from "./scales.js";

const LEVELS = 1024; // of colour that a value is rounded to

/**
 * How numbers become colours: a value's level is value · scale + offset, and each level has a pixel.
 * @typedef {{ ramp: Uint8Array, place: (value: number) => number, scale: number, offset: number, pixels: Uint32Array, masked: number }} Paint
 */

/**
 * Paint a map, one pixel a cell; the style of the canvas scales it.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} values
 * @param {number} rows
 * @param {number} columns
 * @param {Paint} how
 */
export function paint(canvas, values, rows, columns, how) {
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = pen.createImageData(canvas.width, canvas.height);
  const found = new Uint32Array(image.data.buffer);
  const { scale, offset, pixels, masked } = how;
  for (let place = 0; place < rows * columns; place++) {
    const level = values[place] * scale + offset;
    // Not a number: masked.
    found[place] = level !== level ? masked : pixels[level <= 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level | 0];
  }
  pen.putImageData(image, 0, 0);
}

/**
 * How weights are painted: 0 to 1.
 * @param {import("./scales.js").Scales} scales
 * @param {boolean} sqrt
 * @returns {Paint}
 */
export function asWeights(scales, sqrt) {
  const place = (/** @type {number} */ value) => weightPlace(value, sqrt);
  return { ramp: scales.weight, place, scale: LEVELS - 1, offset: 0.5, pixels: pixels(scales.weight, (level) => place(level / (LEVELS - 1))), masked: masked(scales) };
}

/**
 * How signed numbers are painted.
 * @param {import("./scales.js").Scales} scales
 * @param {number} largest
 * @returns {Paint}
 */
export function asSigned(scales, largest) {
  const place = (/** @type {number} */ value) => signedPlace(value, largest);
  const half = LEVELS / 2;
  return { ramp: scales.signed, place, scale: largest ? half / largest : 0, offset: half, pixels: pixels(scales.signed, (level) => signedPlace(level - half, half)), masked: masked(scales) };
}

/** A pixel for each level, as little-endian ABGR. @param {Uint8Array} ramp @param {(level: number) => number} place */
function pixels(ramp, place) {
  return Uint32Array.from({ length: LEVELS }, (_, level) => {
    const at = place(level) * 3;
    return ((255 << 24) | (ramp[at + 2] << 16) | (ramp[at + 1] << 8) | ramp[at]) >>> 0;
  });
}

/** @param {import("./scales.js").Scales} scales */
function masked(scales) {
  return scales.isDark ? 0xff352e2a : 0xffdee2e2;
}

/**
 * A map with cells of so many pixels, masked ones hatched.
 * @param {HTMLCanvasElement} canvas
 * @param {import("./layout.js").Grid} grid
 * @param {number} size
 * @param {Paint} how
 * @param {boolean} isDark
 */
export function paintLarge(canvas, grid, size, how, isDark) {
  const dense = Math.min(2, globalThis.devicePixelRatio || 1);
  canvas.width = Math.round(grid.columns * size * dense);
  canvas.height = Math.round(grid.rows * size * dense);
  canvas.style.width = `${grid.columns * size}px`;
  canvas.style.height = `${grid.rows * size}px`;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(dense, dense);
  pen.fillStyle = isDark ? "#22272e" : "#ffffff";
  pen.fillRect(0, 0, grid.columns * size, grid.rows * size);
  const hatch = hatching(pen, isDark, dense);
  const gap = size >= 8 ? 1 : 0;
  for (let row = 0; row < grid.rows; row++) {
    for (let column = 0; column < grid.columns; column++) {
      const value = grid.values[row * grid.columns + column];
      pen.fillStyle = Number.isNaN(value) ? hatch : css(how.ramp, how.place(value));
      pen.fillRect(column * size, row * size, size - gap, size - gap);
    }
  }
}

/** @param {CanvasRenderingContext2D} pen @param {boolean} isDark @param {number} dense */
function hatching(pen, isDark, dense) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const own = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  own.fillStyle = isDark ? "#262b32" : "#f1f1ee";
  own.fillRect(0, 0, 6, 6);
  own.strokeStyle = isDark ? "#4a515b" : "#c9c9c3";
  own.lineWidth = 1;
  own.beginPath();
  own.moveTo(-1, 7);
  own.lineTo(7, -1);
  own.moveTo(-1, 1);
  own.lineTo(1, -1);
  own.moveTo(5, 7);
  own.lineTo(7, 5);
  own.stroke();
  const pattern = /** @type {CanvasPattern} */ (pen.createPattern(tile, "repeat"));
  pattern.setTransform(new DOMMatrix().scale(1 / dense));
  return pattern;
}

/**
 * A vector as a strip, from blue (negative) over grey to orange.
 * @param {ArrayLike<number>} values
 * @param {import("./scales.js").Scales} scales
 * @param {number} largest
 * @param {string} label
 */
export function strip(values, scales, largest, label) {
  const canvas = document.createElement("canvas");
  canvas.className = "strip";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  paint(canvas, values, 1, values.length, asSigned(scales, largest));
  return canvas;
}

/** The largest size of any number. @param {...ArrayLike<number>} vectors */
export function largestOf(...vectors) {
  let found = 0;
  for (const values of vectors) for (let place = 0; place < values.length; place++) found = Math.max(found, Math.abs(values[place]) || 0);
  return found;
}
