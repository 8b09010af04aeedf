/**
 * How numbers and tokens are written.
 * @module
 */

/**
 * A weight, probability or share: three digits, and whether it is nothing at all.
 * @param {number | null | undefined} value
 */
export function share(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "masked";
  if (value > 0 && value < 0.0005) return "<0.001";
  return value.toFixed(3);
}

/**
 * Any number in few characters.
 * @param {number | null | undefined} value
 */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return minus(value.toExponential(1));
  return minus(value.toFixed(size < 10 ? 3 : size < 100 ? 2 : 1));
}

/**
 * An error bound such as 2.4e-7.
 * @param {number | null | undefined} value
 */
export function error(value) {
  if (value === null || value === undefined) return "–";
  return value === 0 ? "0" : minus(value.toExponential(1));
}

/** @param {number} value */
export function bytes(value) {
  return value < 1e6 ? `${Math.max(1, Math.round(value / 1e3))} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/** @param {string} text */
function minus(text) {
  return text.replaceAll("-", "−");
}

/**
 * A token as people read it: spaces and line ends made visible where nothing else is there, long ones cut.
 * @param {string} text
 * @param {number} [longest]
 */
export function token(text, longest = 24) {
  const shown = text.replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  const bare = shown.trim() === "" ? shown.replace(/ /g, "␣") || "∅" : shown.trim();
  const letters = [...bare];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : bare;
}

/**
 * What a row of a decoder stands for: what is read there, and what is written.
 * @param {string} reads
 * @param {string} writes
 */
export function step(reads, writes) {
  return writes ? `reads ${token(reads)}, writes ${token(writes)}` : token(reads);
}

/**
 * Rows of cells as CSV.
 * @param {(string | number)[][]} rows
 */
export function csv(rows) {
  const cell = (/** @type {string | number} */ own) => {
    const text = String(own);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
