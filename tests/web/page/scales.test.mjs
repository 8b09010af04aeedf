import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, css, ink, luminance, rgb, scales, signedPlace, weightPlace } from "../../../src/regard/web/page/scales.js";

const colour = (ramp, place) => [ramp[place * 3], ramp[place * 3 + 1], ramp[place * 3 + 2]];

for (const isDark of [false, true]) {
  test(`the scale of weights gets ${isDark ? "lighter" : "darker"} all the way`, () => {
    const { weight } = scales(isDark);
    const lights = Array.from({ length: 256 }, (_, place) => luminance(colour(weight, place)));
    for (let place = 1; place < 256; place++) assert.equal(lights[place] >= lights[place - 1] === isDark || lights[place] === lights[place - 1], true, `place ${place}`);
  });

  test(`numbers can be read on every colour (${isDark ? "dark" : "light"})`, () => {
    for (const ramp of [scales(isDark).weight, scales(isDark).signed]) {
      for (let place = 0; place < 256; place++) {
        const light = luminance(rgb(ink(ramp, place)));
        assert.ok(contrast(light, luminance(colour(ramp, place))) >= 4.5, `${css(ramp, place)} with ${ink(ramp, place)}`);
      }
    }
  });
}

test("weights are placed from 0 to 1, small ones apart by the square root", () => {
  assert.deepEqual([-1, 0, 0.5, 1, 2].map((own) => weightPlace(own)), [0, 0, 128, 255, 255]);
  assert.equal(weightPlace(0.04, true), 51);
});

test("zero is in the middle of the signed scale", () => {
  assert.deepEqual([-3, 0, 3, 9].map((own) => signedPlace(own, 3)), [0, 128, 255, 255]);
  assert.equal(signedPlace(0, 0), 128);
  const [r, g, b] = colour(scales(false).signed, 128);
  assert.ok(Math.max(r, g, b) - Math.min(r, g, b) < 8, "grey");
});
