import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, State, fromHash, toHash } from "../../../src/regard/web/page/state.js";

test("the address holds the whole selection", () => {
  const own = { ...EMPTY, run: "runs/demo@400", text: 'The "small" dog & <b>', kind: "cross", layer: 2, head: 3, query: 4, key: 1, cuts: ["decoder.2.cross_attention:3", "encoder.0.feed_forward"], forced: [5, 8], words: true, step: 0 };
  assert.deepEqual(fromHash(`#${toHash(own)}`), own);
});

test("what is usual is not written", () => {
  assert.equal(toHash(EMPTY), "");
  assert.equal(toHash({ ...EMPTY, layer: 1 }), "layer=1");
});

test("what an address does not know or says wrongly is left out", () => {
  assert.deepEqual(fromHash("#layer=abc&nonsense=1&__proto__=x&text=%E0%A4%A&head=2"), { ...EMPTY, head: 2 });
});

test("listeners hear what changed, and nothing where nothing did", () => {
  const state = new State("#layer=1");
  const heard = [];
  state.listen((selection, changed) => heard.push([selection.layer, [...changed]]));
  state.set({ layer: 2, head: 0 });
  state.set({ layer: 2, cuts: [] });
  assert.deepEqual(heard, [[2, ["layer"]]]);
});

test("what is zoomed in to is two whole numbers, or nothing", () => {
  assert.deepEqual(fromHash("#part=64%2B128").part, [64, 128]);
  assert.deepEqual(fromHash(toHash({ ...EMPTY, part: [0, 7] })).part, [0, 7]);
  for (const wrong of ["64", "a+b", "-1+3", "1+2+3"]) assert.deepEqual(fromHash(`#part=${encodeURIComponent(wrong)}`).part, []);
});
