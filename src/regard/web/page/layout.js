/**
 * Where things stand and how maps are put together: pure functions of numbers, without a document.
 * @module
 */

/** @typedef {{ values: Float32Array, rows: number, columns: number, rowOf: number[][], columnOf: number[][], block?: number, largest?: [number, number][] }} Grid  which positions a row or column of the map stands for; of a map in blocks, how many are one, and where the largest of each is */

/**
 * The map of one head, position by position.
 * @param {ArrayLike<number>} values
 * @param {number} rows
 * @param {number} columns
 * @returns {Grid}
 */
export function grid(values, rows, columns) {
  const each = (/** @type {number} */ n) => Array.from({ length: n }, (_, place) => [place]);
  return { values: Float32Array.from(values), rows, columns, rowOf: each(rows), columnOf: each(columns) };
}

/**
 * Leave rows and columns out, as special tokens; what is left of a row is made to sum to 1 again.
 * @param {Grid} own
 * @param {(position: number) => boolean} keepRow
 * @param {(position: number) => boolean} keepColumn
 * @returns {Grid}
 */
export function without(own, keepRow, keepColumn) {
  const rows = own.rowOf.map((_, place) => place).filter((place) => own.rowOf[place].some(keepRow));
  const columns = own.columnOf.map((_, place) => place).filter((place) => own.columnOf[place].some(keepColumn));
  const values = new Float32Array(rows.length * columns.length);
  rows.forEach((row, y) => {
    let sum = 0;
    for (const column of columns) sum += known(own.values[row * own.columns + column]);
    columns.forEach((column, x) => {
      const value = own.values[row * own.columns + column];
      values[y * columns.length + x] = sum > 0 ? value / sum : value;
    });
  });
  return {
    values,
    rows: rows.length,
    columns: columns.length,
    rowOf: rows.map((row) => own.rowOf[row]),
    columnOf: columns.map((column) => own.columnOf[column]),
  };
}

/**
 * Merge positions of one word: a row is the mean over the word's tokens, a column the sum. What belongs to no word stays.
 * @param {Grid} own
 * @param {(number | null)[]} rowWords
 * @param {(number | null)[]} columnWords
 * @returns {Grid}
 */
export function merged(own, rowWords, columnWords) {
  const rows = groups(own.rowOf, rowWords);
  const columns = groups(own.columnOf, columnWords);
  const values = new Float32Array(rows.length * columns.length);
  rows.forEach((members, y) => {
    columns.forEach((keys, x) => {
      let sum = 0;
      let masked = true;
      for (const row of members) {
        for (const column of keys) {
          const value = own.values[row * own.columns + column];
          if (!Number.isNaN(value)) masked = false;
          sum += known(value);
        }
      }
      values[y * columns.length + x] = masked ? NaN : sum / members.length;
    });
  });
  const positions = (/** @type {number[][]} */ of, /** @type {number[][]} */ found) => found.map((members) => members.flatMap((place) => of[place]));
  return { values, rows: rows.length, columns: columns.length, rowOf: positions(own.rowOf, rows), columnOf: positions(own.columnOf, columns) };
}

/**
 * Neighbours of one word together, by their places.
 * @param {number[][]} of
 * @param {(number | null)[]} words
 */
function groups(of, words) {
  /** @type {number[][]} */
  const found = [];
  /** @type {number | null} */
  let last = null;
  of.forEach((positions, place) => {
    const word = words[positions[0]] ?? null;
    if (word !== null && word === last) found[found.length - 1].push(place);
    else found.push([place]);
    last = word;
  });
  return found;
}

/**
 * A long map in blocks: each shows the largest weight in it, and knows where that is.
 * @param {Grid} own
 * @param {number} most  rows and columns that are shown
 * @returns {Grid}
 */
export function blocks(own, most) {
  const block = Math.ceil(Math.max(own.rows, own.columns) / most);
  if (block <= 1) return { block: 1, ...own };
  const rows = Math.ceil(own.rows / block);
  const columns = Math.ceil(own.columns / block);
  const values = new Float32Array(rows * columns).fill(NaN);
  const places = new Int32Array(rows * columns).fill(-1);
  for (let row = 0; row < own.rows; row++) {
    const first = Math.floor(row / block) * columns;
    for (let column = 0; column < own.columns; column++) {
      const value = own.values[row * own.columns + column];
      const place = first + Math.floor(column / block);
      if (value !== value || values[place] >= value) continue;
      values[place] = value;
      places[place] = row * own.columns + column;
    }
  }
  const joined = (/** @type {number[][]} */ of, /** @type {number} */ n) => Array.from({ length: n }, (_, at) => of.slice(at * block, (at + 1) * block).flat());
  /** @type {[number, number][]} */
  const largest = Array.from(places, (found, place) => {
    // A block that is masked throughout stands for its first cell.
    const at = found >= 0 ? found : Math.floor(place / columns) * block * own.columns + (place % columns) * block;
    return [own.rowOf[Math.floor(at / own.columns)][0], own.columnOf[at % own.columns][0]];
  });
  return { values, rows, columns, rowOf: joined(own.rowOf, rows), columnOf: joined(own.columnOf, columns), block, largest };
}

/**
 * A map of which only the largest weight of each block is known.
 * @param {ArrayLike<number>} values
 * @param {number[]} block  rows and columns of a block
 * @param {number} rows
 * @param {number} columns
 * @returns {Grid}
 */
export function fromBlocks(values, block, rows, columns) {
  const places = (/** @type {number} */ count, /** @type {number} */ size) =>
    Array.from({ length: Math.ceil(count / size) }, (_, at) => Array.from({ length: Math.min(size, count - at * size) }, (_, own) => at * size + own));
  const [rowOf, columnOf] = [places(rows, block[0]), places(columns, block[1])];
  return { values: Float32Array.from(values), rows: rowOf.length, columns: columnOf.length, rowOf, columnOf, block: Math.max(...block) };
}

/**
 * Where a window begins that has a place in its middle, as far as the edges let it.
 * @param {number} place
 * @param {number} count  rows or columns that there are
 * @param {number} size  of the window
 */
export function windowAround(place, count, size) {
  return Math.max(0, Math.min(place - Math.floor(size / 2), count - size));
}

/**
 * A map as large as a small picture of it: a pixel has the largest value of the cells that it covers, NaN if all are masked.
 * @param {ArrayLike<number>} values
 * @param {number} rows
 * @param {number} columns
 * @param {number} size  rows and columns of the picture
 * @param {Float32Array} found
 * @param {number} to  where in it the first pixel goes
 */
export function pooled(values, rows, columns, size, found, to) {
  const bounds = (/** @type {number} */ count) =>
    Array.from({ length: size }, (_, at) => [Math.floor((at * count) / size), Math.max(Math.floor((at * count) / size) + 1, Math.floor(((at + 1) * count) / size))]);
  const across = bounds(columns);
  bounds(rows).forEach(([top, bottom], y) => {
    for (let x = 0; x < size; x++) {
      const [left, right] = across[x];
      let largest = NaN;
      for (let row = top; row < bottom; row++) {
        for (let place = row * columns + left, end = row * columns + right; place < end; place++) {
          const value = values[place];
          if (value === value && !(largest >= value)) largest = value;
        }
      }
      found[to + y * size + x] = largest;
    }
  });
}

/**
 * Where the small maps of all heads stand, and how large they are. Where captions under each have no room, rows and columns
 * have numbers at the edges: then `left` and `top` are the room for those.
 * @param {{ row: number, column: number }[]} cells  of a grid, one for each map
 * @param {number} width  pixels that there are
 * @param {boolean} isRuled  whether a row is a layer and a column a head, so that numbers at the edges say all
 */
export function atlasLayout(cells, width, isRuled) {
  const columns = 1 + Math.max(0, ...cells.map((own) => own.column));
  const rows = 1 + Math.max(0, ...cells.map((own) => own.row));
  const fitting = (/** @type {number} */ left, /** @type {number} */ gap) => Math.floor((width - left - gap * (columns - 1)) / columns);
  const hasCaptions = !isRuled || fitting(0, 6) >= 30;
  const [left, top, gap, caption] = hasCaptions ? [0, 0, 6, 15] : [18, 14, 2, 0];
  const size = Math.max(6, Math.min(112, fitting(left, gap)));
  const [across, down] = [size + gap, size + caption + gap];
  return {
    size,
    hasCaptions,
    left,
    top,
    width: left + columns * across - gap,
    height: top + rows * down - gap,
    places: cells.map(({ row, column }) => ({ x: left + column * across, y: top + row * down })),
  };
}

/**
 * A part of a map, as it is.
 * @param {Grid} own
 * @param {number} top
 * @param {number} left
 * @param {number} height
 * @param {number} width
 * @returns {Grid}
 */
export function part(own, top, left, height, width) {
  const rows = Math.min(height, own.rows - top);
  const columns = Math.min(width, own.columns - left);
  const values = new Float32Array(rows * columns);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) values[y * columns + x] = own.values[(top + y) * own.columns + left + x];
  }
  return { values, rows, columns, rowOf: own.rowOf.slice(top, top + rows), columnOf: own.columnOf.slice(left, left + columns) };
}

/**
 * Which labels of an axis have room: every n-th.
 * @param {number} count
 * @param {number} size  pixels of a cell
 * @param {number} needed  pixels of a label
 */
export function every(count, size, needed) {
  if (count <= 1) return 1;
  return Math.max(1, Math.ceil(needed / size));
}

/**
 * The beam's tree: where its nodes stand. Steps go to the right; the output is the first row, others below it in the order
 * of their totals; a branch keeps its row as long as it goes on.
 * @param {{ best: number, nodes: { number: number, parent?: number, step: number, total: number, fate: string }[] }} tree
 * @param {{ pruned: boolean }} options
 * @returns {{ places: Map<number, { x: number, y: number }>, rows: number, steps: number }}
 */
export function treeLayout(tree, { pruned }) {
  const nodes = tree.nodes.filter((node) => pruned || node.fate !== "pruned");
  const byNumber = new Map(nodes.map((node) => [node.number, node]));
  /** @type {Map<number | undefined, typeof nodes>} */
  const children = new Map();
  for (const node of nodes) {
    const parent = node.parent !== undefined && byNumber.has(node.parent) ? node.parent : undefined;
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const onPath = new Set();
  for (let node = byNumber.get(tree.best); node; node = node.parent === undefined ? undefined : byNumber.get(node.parent)) onPath.add(node.number);
  const places = new Map();
  let rows = 0;
  let steps = 0;
  // A stack, not a recursion: outputs may have thousands of tokens.
  const order = (/** @type {typeof nodes} */ own) =>
    [...own].sort((a, b) => Number(onPath.has(b.number)) - Number(onPath.has(a.number)) || b.total - a.total);
  const stack = order(children.get(undefined) ?? []).map((node, place) => ({ node, fresh: place > 0 }));
  stack.reverse();
  while (stack.length) {
    const { node, fresh } = /** @type {{ node: typeof nodes[0], fresh: boolean }} */ (stack.pop());
    if (fresh) rows += 1;
    places.set(node.number, { x: node.step, y: rows });
    steps = Math.max(steps, node.step + 1);
    const own = order(children.get(node.number) ?? []).map((child, place) => ({ node: child, fresh: place > 0 }));
    stack.push(...own.reverse());
  }
  return { places, rows: places.size ? rows + 1 : 0, steps };
}

/** @param {number} value */
function known(value) {
  return Number.isNaN(value) ? 0 : value;
}
