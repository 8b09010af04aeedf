/**
 * The logit lens: what each layer would write at each position, as if all behind it were skipped. The last row is the output.
 * @module
 */
import { fill, h } from "./dom.js";
import { share, token } from "./format.js";
import { css, ink, weightPlace } from "./scales.js";
import { Refusal } from "./source.js";

const MOST = 24; // positions that are shown, around the selected one

/** @type {import("./stage.js").View} */
export const lensView = {
  name: "lens",
  title: "Lens",
  has: (bench) => bench.facts.norms !== null && Object.keys(bench.facts.kinds).length > 0,
  changes: ["query"],
  async draw(bench, box) {
    if (!box.querySelector("table")) fill(box, h("p", { class: "quiet" }, "reading every layer …"));
    try {
      const lens = await bench.ask("lens", { top: 5 });
      if (box.dataset.view !== "lens") return;
      fill(box, lens.refused ? refusal(lens) : [heading(), table(bench, lens)]);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      fill(box, h("p", {}, error.message), h("p", { class: "quiet" }, error.advice));
    }
  },
};

/** @param {any} lens */
function refusal(lens) {
  return [h("p", {}, lens.refused), lens.advice ? h("p", { class: "quiet" }, lens.advice) : ""];
}

function heading() {
  return h("div", { class: "heading" }, h("h2", {}, "Logit lens"), h("p", { class: "quiet" }, "What the output layer makes of the residual stream behind each sublayer: the likeliest token, coloured by its probability. The last row is what the model says."));
}

/** @param {import("./workbench.js").Workbench} bench @param {any} lens */
function table(bench, lens) {
  const n = lens.positions.length;
  const begin = Math.max(0, Math.min(bench.selection.query - MOST / 2, n - MOST));
  const places = Array.from({ length: Math.min(MOST, n) }, (_, at) => begin + at);
  const ramp = bench.scales.weight;
  const cell = (/** @type {any} */ own, /** @type {number} */ at) => {
    const best = own.likeliest[0];
    const colour = weightPlace(best.probability);
    const rivals = own.likeliest.map((/** @type {any} */ one) => `${token(one.token)} ${share(one.probability)}`).join("\n");
    const isRight = own.rank === 1;
    return h(
      "td",
      { class: isRight ? "right" : "", title: `${rivals}\nwhat was written: rank ${own.rank}, ${share(own.probability)}`, style: { background: css(ramp, colour), color: ink(ramp, colour) }, onclick: () => bench.state.set({ query: at }) },
      token(best.token, 10),
    );
  };
  const heads = places.map((at) => h("th", { scope: "col", class: at === bench.selection.query ? "on" : "" }, token(lens.positions[at].reads, 10)));
  const rows = lens.states.map((/** @type {any} */ state) => h("tr", {}, h("th", { scope: "row" }, state.sublayer), places.map((at) => cell(state.positions[at], at))));
  const outputs = places.map((at) => h("th", { class: at === bench.selection.query ? "on" : "" }, token(lens.positions[at].writes, 10)));
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Logit lens" },
    h("table", { class: "lens" }, h("thead", {}, h("tr", {}, h("th", { scope: "row" }, "reads"), heads)), h("tbody", {}, rows), h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "writes"), outputs))),
    n > places.length ? h("p", { class: "quiet" }, `Positions ${begin} to ${begin + places.length - 1} of ${n}: select another step to move.`) : "",
  );
}
