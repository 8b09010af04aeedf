import assert from "node:assert/strict";
import { test } from "node:test";
import { at, half, unpack } from "../../../src/regard/web/page/packed.js";

/** A packed message, written as web/packing.py does. */
function packed(facts, blob) {
  const json = new TextEncoder().encode(JSON.stringify(facts));
  const bytes = new Uint8Array(4 + json.length + blob.length);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  bytes.set(blob, 4 + json.length);
  return bytes.buffer;
}

test("half precision, of every kind of number", () => {
  assert.equal(half(0x3c00), 1);
  assert.equal(half(0xc000), -2);
  assert.equal(half(0x3555), 0.333251953125);
  assert.equal(half(0x0001), 2 ** -24);
  assert.equal(half(0x7bff), 65504);
  assert.equal(half(0x7c00), Infinity);
  assert.equal(half(0xfc00), -Infinity);
  assert.ok(Number.isNaN(half(0x7e00)));
});

test("arrays of every type, wherever the JSON before them ends", () => {
  for (const padding of ["", "x", "xy", "xyz"]) {
    const blob = new Uint8Array(32);
    new DataView(blob.buffer).setUint16(0, 0x3800, true);
    new DataView(blob.buffer).setFloat32(8, -1.5, true);
    new DataView(blob.buffer).setInt32(16, -7, true);
    blob[24] = 255;
    const arrays = {
      half: { dtype: "float16", shape: [1], offset: 0 },
      single: { dtype: "float32", shape: [1, 1], offset: 8 },
      whole: { dtype: "int32", shape: [1], offset: 16 },
      byte: { dtype: "uint8", shape: [1], offset: 24 },
    };
    const { facts, arrays: found } = unpack(packed({ padding, text: "größer", arrays }, blob));
    assert.equal(facts.text, "größer");
    assert.deepEqual(Object.values(found).map((own) => own.data[0]), [0.5, -1.5, -7, 255]);
    assert.deepEqual(found.single.shape, [1, 1]);
  }
});

test("a part of a tensor by its first places", () => {
  const tensor = { data: Float32Array.from({ length: 24 }, (_, place) => place), shape: [2, 3, 4] };
  assert.deepEqual([...at(tensor, 1, 2).data], [20, 21, 22, 23]);
  assert.deepEqual(at(tensor, 1).shape, [3, 4]);
  assert.equal(at(tensor, 1).data[0], 12);
});
