import assert from "node:assert/strict";
import { test } from "node:test";
import { atlasLayout, blocks, every, fromBlocks, grid, merged, part, pooled, treeLayout, windowAround, without } from "../../../src/regard/web/page/layout.js";

const near = (own, expected) => own.forEach((value, place) => (Number.isNaN(expected[place]) ? assert.ok(Number.isNaN(value)) : assert.ok(Math.abs(value - expected[place]) < 1e-6, `${[...own]}`)));

test("hidden columns leave rows that sum to 1 again", () => {
  const own = without(grid([0.2, 0.3, 0.5, 1, 0, 0], 2, 3), () => true, (at) => at !== 2);
  near([...own.values], [0.4, 0.6, 1, 0]);
  assert.deepEqual(own.columnOf, [[0], [1]]);
});

test("a row of which nothing is left stays as it is", () => {
  near([...without(grid([0, 0, 1], 1, 3), () => true, (at) => at < 2).values], [0, 0]);
});

test("masked cells stay masked", () => {
  near([...without(grid([0.5, NaN, 0.5], 1, 3), () => true, (at) => at < 2).values], [1, NaN]);
});

test("words: columns are sums, rows are means, special tokens stay for themselves", () => {
  const own = merged(grid([0.1, 0.2, 0.7, 0.3, 0.3, 0.4], 2, 3), [0, 0], [0, 0, null]);
  assert.deepEqual([own.rows, own.columns], [1, 2]);
  near([...own.values], [(0.3 + 0.6) / 2, (0.7 + 0.4) / 2]);
  assert.deepEqual(own.columnOf, [[0, 1], [2]]);
});

test("neighbouring special tokens are not one word", () => {
  assert.equal(merged(grid([1, 0], 1, 2), [0], [null, null]).columns, 2);
});

test("blocks keep the largest weight, and which positions they are", () => {
  const own = blocks(grid([0.1, 0.9, NaN, 0.2, 0.3, NaN], 2, 3), 2);
  assert.equal(own.block, 2);
  assert.deepEqual([own.rows, own.columns], [1, 2]);
  near([...own.values], [0.9, NaN]);
  assert.deepEqual(own.columnOf, [[0, 1], [2]]);
  assert.equal(blocks(grid([1], 1, 1), 2).block, 1);
});

test("a part of a map knows where it was cut from", () => {
  const own = part(grid([1, 2, 3, 4, 5, 6, 7, 8, 9], 3, 3), 1, 1, 9, 9);
  assert.deepEqual([...own.values], [5, 6, 8, 9]);
  assert.deepEqual(own.rowOf, [[1], [2]]);
});

test("labels are thinned where they have no room", () => {
  assert.equal(every(10, 20, 14), 1);
  assert.equal(every(100, 4, 14), 4);
});

const NODES = [
  { number: 0, step: 0, total: -0.1, fate: "kept" },
  { number: 1, step: 0, total: -3, fate: "kept" },
  { number: 2, step: 0, total: -9, fate: "pruned" },
  { number: 3, parent: 0, step: 1, total: -0.2, fate: "kept" },
  { number: 4, parent: 0, step: 1, total: -0.15, fate: "kept" },
  { number: 5, parent: 3, step: 2, total: -0.3, fate: "finished" },
];

test("the output is the first row of the tree, although another branch led for a while", () => {
  const { places, rows, steps } = treeLayout({ best: 5, nodes: NODES }, { pruned: false });
  assert.deepEqual([0, 3, 5].map((own) => places.get(own)), [{ x: 0, y: 0 }, { x: 1, y: 0 }, { x: 2, y: 0 }]);
  assert.deepEqual(places.get(4), { x: 1, y: 1 });
  assert.deepEqual(places.get(1), { x: 0, y: 2 });
  assert.deepEqual([places.has(2), rows, steps], [false, 3, 3]);
});

test("no two nodes of a tree stand on one place", () => {
  const { places } = treeLayout({ best: 5, nodes: NODES }, { pruned: true });
  const seen = [...places.values()].map(({ x, y }) => `${x},${y}`);
  assert.equal(new Set(seen).size, NODES.length);
});

test("an output of ten thousand tokens can be laid out", () => {
  const nodes = Array.from({ length: 10_000 }, (_, number) => ({ number, parent: number ? number - 1 : undefined, step: number, total: -number, fate: "kept" }));
  assert.equal(treeLayout({ best: 9999, nodes }, { pruned: false }).rows, 1);
});

test("a small picture of a map has the largest value of the cells of each pixel", () => {
  const found = new Float32Array(5).fill(-1);
  pooled([0.1, 0.2, 0.3, NaN, 0.4, 0.5, 0.6, NaN, 0.7, 0.8, NaN, NaN, 0.9, 1, NaN, NaN], 4, 4, 2, found, 1);
  near([...found], [-1, 0.5, 0.6, 1, NaN]);
});

test("a map smaller than its picture is repeated, whatever its shape", () => {
  const found = new Float32Array(16);
  pooled([0.25, 0.75], 1, 2, 4, found, 0);
  near([...found.subarray(0, 4)], [0.25, 0.25, 0.75, 0.75]);
  near([...found.subarray(12)], [0.25, 0.25, 0.75, 0.75]);
});

const heads = (rows, columns) => Array.from({ length: rows * columns }, (_, place) => ({ row: Math.floor(place / columns), column: place % columns }));

test("a few heads have captions, many have numbers at the edges, and none leave the panel", () => {
  const few = atlasLayout(heads(4, 4), 226, true);
  assert.ok(few.hasCaptions && few.left === 0 && few.width <= 226);
  const many = atlasLayout(heads(12, 12), 226, true);
  assert.ok(!many.hasCaptions && many.left > 0 && many.width <= 226);
  assert.deepEqual(many.places[13], { x: many.left + many.size + 2, y: many.top + many.size + 2 });
  assert.ok(atlasLayout(heads(24, 6), 226, false).hasCaptions); // sorted: no number at an edge would say which head it is
});

test("no head at all takes no room", () => {
  assert.deepEqual(atlasLayout([], 226, true).places, []);
});

test("blocks know where their largest weight is", () => {
  const own = blocks(grid([0.1, 0.9, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, NaN], 3, 3), 2);
  assert.deepEqual([own.rows, own.columns, own.block], [2, 2, 2]);
  near([...own.values], [0.9, 0.5, 0.7, NaN]);
  assert.deepEqual(own.largest, [[0, 1], [1, 2], [2, 1], [2, 2]]);
});

test("blocks that came alone stand for their positions", () => {
  const own = fromBlocks([1, 2, 3, 4, 5, 6], [2, 1], 4, 3);
  assert.deepEqual(own.rowOf, [[0, 1], [2, 3]]);
  assert.deepEqual(own.columnOf, [[0], [1], [2]]);
  assert.equal(blocks(own, 128).block, 2);
});

test("a window has a place in its middle, and stays inside", () => {
  assert.equal(windowAround(200, 500, 64), 168);
  assert.equal(windowAround(3, 500, 64), 0);
  assert.equal(windowAround(499, 500, 64), 436);
  assert.equal(windowAround(5, 20, 64), 0);
});
