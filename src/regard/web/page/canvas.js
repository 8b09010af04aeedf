/**
 * Numbers as pixels: a map of one head, a strip of one vector.
 * @module
 */
import { signedPlace, weightPlace } from "./scales.js";

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
  colour(values, 0, rows * columns, how, new Uint32Array(image.data.buffer), 0);
  pen.putImageData(image, 0, 0);
}

/**
 * The pixels of `count` values.
 * @param {ArrayLike<number>} values
 * @param {number} from  the first of them
 * @param {number} count
 * @param {Paint} how
 * @param {Uint32Array} pixels
 * @param {number} to  where the first pixel goes
 */
function colour(values, from, count, { scale, offset, pixels: table, masked: hidden }, pixels, to) {
  for (let place = 0; place < count; place++) {
    const level = values[from + place] * scale + offset;
    // Not a number: masked.
    pixels[to + place] = level !== level ? hidden : table[level <= 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level | 0];
  }
}

/**
 * Paint many small maps of one size on one canvas, which costs far less than a canvas for each.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array} values  map after map, a value for each pixel
 * @param {number} size  pixels of an edge of a map
 * @param {{ x: number, y: number }[]} places  where they stand, in pixels
 * @param {Paint} how
 */
export function paintMany(canvas, values, size, places, how) {
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = pen.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  places.forEach(({ x, y }, number) => {
    for (let row = 0; row < size; row++) colour(values, (number * size + row) * size, size, how, pixels, (y + row) * canvas.width + x);
  });
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
  const dense = density();
  const [width, height] = [grid.columns * size, grid.rows * size];
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const cells = document.createElement("canvas");
  paint(cells, grid.values, grid.rows, grid.columns, { ...how, masked: 0 });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(dense, dense);
  pen.fillStyle = hatching(pen, isDark, dense);
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(cells, 0, 0, width, height);
  if (size < 8) return;
  pen.fillStyle = isDark ? "#22272e" : "#ffffff";
  for (let column = 1; column <= grid.columns; column++) pen.fillRect(column * size - 1, 0, 1, height);
  for (let row = 1; row <= grid.rows; row++) pen.fillRect(0, row * size - 1, width, 1);
}

/** Pixels of the screen in one of the page, as far as that is worth drawing. */
export function density() {
  return Math.min(2, globalThis.devicePixelRatio || 1);
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
