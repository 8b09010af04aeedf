/**
 * Colour scales: attention weights from 0 to 1 on one perceptually even scale, signed values on blue–grey–orange.
 *
 * The light scale is that of the pictures (inspection/render.py).
 * @module
 */

const LIGHT = ["#f7fbfc", "#cde7f1", "#a5d2e8", "#81bce0", "#61a4d7", "#488acb", "#3a70bb", "#3356a6", "#2e3d8b", "#29286c", "#1f174a"];
const DARK = ["#141a22", "#182a3d", "#1d3a57", "#244b71", "#2e5d8a", "#3d70a1", "#5484b5", "#7199c5", "#92afd4", "#b6c7e2", "#dfe6f2"];
const SIGNED_LIGHT = ["#0b4a8f", "#3f7cc0", "#8db3dc", "#c3d3e3", "#e4e4e2", "#ecd3bb", "#e5ab78", "#d0762c", "#9a4a06"];
const SIGNED_DARK = ["#8fc2ff", "#5b97d8", "#3c6c9f", "#364f69", "#3c4046", "#5f4a37", "#91602f", "#cf8339", "#ffb871"];

/** @typedef {[number, number, number]} Rgb */
/** @typedef {{ weight: Uint8Array, signed: Uint8Array, isDark: boolean }} Scales  256 colours each, as RGB bytes */

/** @type {Map<boolean, Scales>} */
const made = new Map();

/**
 * The scales of a theme.
 * @param {boolean} isDark
 * @returns {Scales}
 */
export function scales(isDark) {
  let own = made.get(isDark);
  if (!own) {
    own = { weight: ramp(isDark ? DARK : LIGHT), signed: ramp(isDark ? SIGNED_DARK : SIGNED_LIGHT), isDark };
    made.set(isDark, own);
  }
  return own;
}

/**
 * 256 colours between given ones.
 * @param {string[]} stops
 */
function ramp(stops) {
  const colours = stops.map(rgb);
  const found = new Uint8Array(256 * 3);
  for (let place = 0; place < 256; place++) {
    const where = (place / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(where), colours.length - 2);
    for (let channel = 0; channel < 3; channel++) {
      const [a, b] = [colours[low][channel], colours[low + 1][channel]];
      found[place * 3 + channel] = Math.round(a + (b - a) * (where - low));
    }
  }
  return found;
}

/**
 * @param {string} hex
 * @returns {Rgb}
 */
export function rgb(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return [r, g, b];
}

/**
 * Where a weight stands among 256 colours; `sqrt` tells small ones apart.
 * @param {number} value
 * @param {boolean} [sqrt]
 */
export function weightPlace(value, sqrt = false) {
  const clipped = Math.min(1, Math.max(0, value));
  return Math.round(255 * (sqrt ? Math.sqrt(clipped) : clipped));
}

/**
 * Where a signed value stands, grey for zero, `largest` at the end.
 * @param {number} value
 * @param {number} largest
 */
export function signedPlace(value, largest) {
  if (!largest) return 128;
  return Math.round(127.5 + 127.5 * Math.min(1, Math.max(-1, value / largest)));
}

/**
 * @param {Uint8Array} ramp
 * @param {number} place
 */
export function css(ramp, place) {
  return `rgb(${ramp[place * 3]} ${ramp[place * 3 + 1]} ${ramp[place * 3 + 2]})`;
}

/**
 * Black or white: what can be read on a colour (WCAG's contrast).
 * @param {Uint8Array} ramp
 * @param {number} place
 */
export function ink(ramp, place) {
  const light = luminance([ramp[place * 3], ramp[place * 3 + 1], ramp[place * 3 + 2]]);
  return contrast(light, 0) >= contrast(light, 1) ? "#000000" : "#ffffff";
}

/**
 * WCAG's relative luminance.
 * @param {Rgb} colour
 */
export function luminance(colour) {
  const [r, g, b] = colour.map((own) => {
    const c = own / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/**
 * WCAG's contrast of two luminances, 1 to 21.
 * @param {number} a
 * @param {number} b
 */
export function contrast(a, b) {
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
