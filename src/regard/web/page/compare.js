/**
 * Compare A and B: the same input read by another checkpoint or another run; both maps, their difference, where outputs diverge.
 * @module
 */
import { asSigned, asWeights, largestOf, paintLarge } from "./canvas.js";
import { fill, h } from "./dom.js";
import { number, share, token } from "./format.js";
import { grid } from "./layout.js";
import { at } from "./packed.js";
import { css, signedPlace } from "./scales.js";

const MOST_TAPS = 8;

/** @typedef {import("./workbench.js").Workbench} Workbench */

/** @type {import("./stage.js").View} */
export const compareView = {
  name: "compare",
  title: "Compare",
  has: (bench) => bench.source.isLive && bench.selection.step < 0 && choices(bench).length > 0,
  changes: ["against", "kind", "layer", "head", "query", "key", "sqrt"],
  async draw(bench, box) {
    const { against } = bench.selection;
    const found = h("div", {});
    fill(box, h("div", { class: "heading" }, h("h2", {}, "Compare with"), chooser(bench)), found);
    if (!against) {
      fill(found, h("p", { class: "quiet" }, "Choose another checkpoint or run: it reads the same input."));
      return;
    }
    const answer = await bench.working(() => bench.against(against));
    if (answer && found.isConnected) fill(found, outputs(bench, answer), mapsOf(bench, answer), tokens(answer), norms(bench, answer), taps(answer));
  },
};

/** What this can be compared with: other runs, and the checkpoints of all. @param {Workbench} bench */
function choices(bench) {
  const own = bench.run;
  return bench.session.runs
    .filter((/** @type {any} */ one) => !one.problem && one.task === own?.task)
    .flatMap((/** @type {any} */ one) => [...(one === own ? [] : [one.name]), ...one.steps.filter((/** @type {number} */ step) => one !== own || step !== own.step).map((/** @type {number} */ step) => `${one.name.split("@")[0]}@${step}`)]);
}

/** @param {Workbench} bench */
function chooser(bench) {
  return h(
    "select",
    { "aria-label": "Compare with", onchange: (/** @type {any} */ event) => bench.state.set({ against: event.target.value }) },
    h("option", { value: "" }, "…"),
    choices(bench).map((/** @type {string} */ name) => h("option", { value: name, selected: name === bench.selection.against }, name.split("/").at(-1))),
  );
}

/** @param {Workbench} bench @param {any} answer */
function outputs(bench, { other, difference }) {
  const diverges = difference.facts.diverges;
  return h(
    "dl",
    { class: "facts" },
    h("dt", {}, "A, this one"),
    h("dd", {}, bench.facts.output),
    h("dt", {}, `B, ${other.facts.run.name.split("/").at(-1)}`),
    h("dd", { id: "other-output" }, other.facts.output),
    h("dt", {}, "they"),
    h("dd", {}, diverges === null || diverges === undefined ? "write the same" : `diverge at position ${diverges}: ${token(bench.facts.writes[diverges] ?? "nothing")} and ${token(other.facts.writes[diverges] ?? "nothing")}`),
  );
}

/** The selected head in A, in B, and B minus A. @param {Workbench} bench @param {any} answer */
function mapsOf(bench, { other, difference }) {
  const attention = bench.attention;
  if (!attention) return "";
  const name = `weights:${attention.path}`;
  const [a, b, minus] = [bench.trace?.arrays[name], other.arrays[name], difference.arrays[name]];
  if (!a || !b) return h("p", { class: "quiet" }, `${attention.path} is not in both of them.`);
  const head = bench.selection.head;
  if (head >= b.shape[0]) return h("p", { class: "quiet" }, `B has no head ${head} there.`);
  const picture = (/** @type {any} */ array, /** @type {any} */ how, /** @type {string} */ label, /** @type {string} */ said) => {
    const own = at(array, head);
    const [rows, columns] = own.shape;
    const canvas = h("canvas", { class: "still", role: "img", "aria-label": label });
    paintLarge(canvas, grid(own.data, rows, columns), Math.max(2, Math.min(18, Math.floor(200 / Math.max(rows, columns)))), how, bench.isDark);
    return h("figure", {}, canvas, h("figcaption", {}, said));
  };
  const weights = asWeights(bench.scales, bench.selection.sqrt);
  const { query, key } = bench.selection;
  const cell = (/** @type {any} */ array) => (query < array.shape[1] && key < array.shape[2] ? at(array, head, query).data[key] : null);
  const largest = minus ? largestOf(at(minus, head).data) : 0;
  return h(
    "div",
    { class: "beside" },
    picture(a, weights, "A", `A: ${share(cell(a))} at the selected cell`),
    picture(b, weights, "B", `B: ${share(cell(b))}`),
    minus ? picture(minus, asSigned(bench.scales, largest), "B minus A", `B − A: ${number(cell(minus))}, at most ${number(largest)}`) : h("p", { class: "quiet" }, "Their maps have different sizes, since they wrote something else."),
  );
}

/** @param {any} answer */
function tokens({ difference }) {
  const rows = difference.facts.tokens.map((/** @type {any} */ one) => h("tr", {}, h("th", { scope: "row" }, token(one.token)), h("td", { class: "number" }, probability(one.before.log_prob)), h("td", { class: "number" }, probability(one.after.log_prob)), h("td", {}, `${token(one.after.rival)} ${probability(one.after.rival_log_prob)}`)));
  return rows.length ? h("table", {}, h("thead", {}, h("tr", {}, ["writes", "in A", "in B", "strongest rival in B"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)) : "";
}

/** @param {number | null} logProb */
function probability(logProb) {
  return logProb === null ? "–" : share(Math.exp(logProb));
}

/** The residual streams' lengths in A and in B, at the selected position. @param {Workbench} bench @param {any} answer */
function norms(bench, { difference }) {
  const sublayers = difference.facts.norms;
  if (!sublayers) return "";
  const [a, b] = [difference.arrays["norms:a"], difference.arrays["norms:b"]];
  const width = a.shape[1];
  const place = Math.min(bench.selection.query, width - 1);
  const changes = sublayers.map((/** @type {string} */ _, /** @type {number} */ at) => b.data[at * width + place] - a.data[at * width + place]);
  const largest = largestOf(changes) || 1;
  const ramp = bench.scales.signed;
  const rows = sublayers.map((/** @type {string} */ name, /** @type {number} */ at) => {
    const change = changes[at];
    const bar = h("span", { class: "signed", style: { "--share": String(Math.abs(change) / largest), "--side": change < 0 ? "-1" : "1", "--colour": css(ramp, signedPlace(change, largest)) } });
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, number(a.data[at * width + place])), h("td", { class: "number" }, number(b.data[at * width + place])), h("td", { class: "wide" }, bar), h("td", { class: "number" }, number(change)));
  });
  const head = ["sublayer", "A", "B", "", "B − A"].map((text) => h("th", { scope: "col" }, text));
  return h("details", { class: "norms" }, h("summary", {}, "Lengths of the residual stream"), h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

/** The tensors that differ most. @param {any} answer */
function taps({ difference }) {
  const ranked = Object.entries(difference.facts.taps).sort(([, a], [, b]) => b - a);
  if (!ranked.length || !ranked[0][1]) return h("p", {}, `No number differs in ${ranked.length} tensors.`);
  return h("details", {}, h("summary", {}, `Largest differences in ${ranked.length} tensors`), h("table", {}, h("tbody", {}, ranked.slice(0, MOST_TAPS).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, number(value)))))));
}
