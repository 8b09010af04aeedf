/**
 * Packed messages: a length, JSON, and a blob of numbers (web/packing.py writes them).
 * @module
 */

/**
 * Numbers with a shape, row by row.
 * @typedef {{ data: Float32Array | Uint8Array | Int32Array, shape: number[] }} Tensor
 */

/**
 * @param {ArrayBuffer} buffer
 * @returns {{ facts: any, arrays: Record<string, Tensor> }}
 */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  /** @type {Record<string, Tensor>} */
  const arrays = {};
  for (const [name, { dtype, shape, offset }] of Object.entries(facts.arrays ?? {})) {
    const count = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    const begin = 4 + length + offset;
    arrays[name] = { data: numbers(buffer, dtype, begin, count), shape };
  }
  return { facts, arrays };
}

const SIZES = { float16: 2, float32: 4, int32: 4, uint8: 1 };

/**
 * @param {ArrayBuffer} buffer
 * @param {keyof typeof SIZES} dtype
 * @param {number} begin
 * @param {number} count
 */
function numbers(buffer, dtype, begin, count) {
  const bytes = buffer.slice(begin, begin + count * SIZES[dtype]); // a copy, aligned as typed arrays need it
  if (dtype === "float32") return new Float32Array(bytes);
  if (dtype === "int32") return new Int32Array(bytes);
  if (dtype === "uint8") return new Uint8Array(bytes);
  const [halves, table, found] = [new Uint16Array(bytes), everyHalf(), new Float32Array(count)];
  for (let place = 0; place < count; place++) found[place] = table[halves[place]];
  return found;
}

/** @type {Float32Array | undefined} */
let table;

/** Every number of half precision, by its bits: maps of long inputs have millions of them. */
function everyHalf() {
  table ??= Float32Array.from({ length: 2 ** 16 }, (_, bits) => half(bits));
  return table;
}

/**
 * The number whose IEEE half precision has these 16 bits.
 * @param {number} bits
 */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * The part of a tensor at some first indices: a view, without them.
 * @param {Tensor} tensor
 * @param {...number} places
 * @returns {Tensor}
 */
export function at(tensor, ...places) {
  const shape = tensor.shape.slice(places.length);
  const size = shape.reduce((a, b) => a * b, 1);
  let offset = 0;
  let step = tensor.data.length;
  places.forEach((place, axis) => {
    step /= tensor.shape[axis];
    offset += place * step;
  });
  return { data: tensor.data.subarray(offset, offset + size), shape };
}
