/**
 * Ablate and see: what this sentence becomes without some heads, and what each head is worth on held-out data.
 * @module
 */
import { fill, h } from "./dom.js";
import { number, share, token } from "./format.js";
import { css, ink, signedPlace } from "./scales.js";
import { cut } from "./attention.js";
import { Refusal } from "./source.js";

/** @type {import("./stage.js").View} */
export const ablateView = {
  name: "ablate",
  title: "Ablate",
  has: (bench) => bench.source.isLive && bench.selection.step < 0,
  changes: ["cuts"],
  draw(bench, box) {
    const [effect, grid] = [h("div", {}), h("div", {})];
    fill(
      box,
      h("div", { class: "heading" }, h("h2", {}, "Without them"), h("p", { class: "quiet" }, "A head is cut before the output projection. What was written stays, and its probability changes.")),
      effect,
      chips(bench),
      h("div", { class: "heading" }, h("h2", {}, "Importance on held-out data")),
      grid,
    );
    showEffect(bench, effect);
    showImportance(bench, grid);
  },
};

/** Every sublayer and head as a switch. @param {import("./workbench.js").Workbench} bench */
function chips(bench) {
  const { cuts } = bench.selection;
  const own = Object.entries(bench.facts.attentions).map(([path, attention]) =>
    h(
      "div",
      { class: "switches" },
      h("span", { class: "what" }, path),
      h("div", {}, Array.from({ length: attention.n_heads }, (_, head) => toggle(bench, `${path}:${head}`, String(head), cuts)), toggle(bench, path, "all", cuts)),
    ),
  );
  const others = bench.facts.taps.map((/** @type {any} */ tap) => tap.name).filter((/** @type {string} */ name) => name.endsWith("feed_forward.output"));
  return [own, h("div", { class: "switches" }, h("span", { class: "what" }, "feed-forward"), h("div", {}, others.map((/** @type {string} */ name) => toggle(bench, name.replace(/\.output$/, ""), name.replace(/\.feed_forward\.output$/, ""), cuts))))];
}

/** @param {import("./workbench.js").Workbench} bench @param {string} name @param {string} text @param {string[]} cuts */
function toggle(bench, name, text, cuts) {
  const isCut = cuts.includes(name);
  return h("button", { type: "button", class: isCut ? "switch off" : "switch", "aria-pressed": String(isCut), title: isCut ? `Put ${name} back` : `Cut ${name}`, onclick: () => cut(bench, name) }, text);
}

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function showEffect(bench, box) {
  if (!bench.other) {
    fill(box, h("p", { class: "quiet" }, "Nothing is cut: this is the model as it is."));
    return;
  }
  const found = await bench.working(() => bench.difference());
  if (!found || !box.isConnected) return;
  const rows = found.facts.tokens.map((/** @type {any} */ one) => {
    const change = one.before.log_prob === null || one.after.log_prob === null ? null : one.after.log_prob - one.before.log_prob;
    return h("tr", {}, h("th", { scope: "row" }, token(one.token)), h("td", { class: "number" }, probability(one.before.log_prob)), h("td", { class: "number" }, probability(one.after.log_prob)), h("td", { class: "number" }, number(change)), h("td", {}, `${token(one.after.rival)} ${probability(one.after.rival_log_prob)}`));
  });
  fill(
    box,
    h("table", {}, h("thead", {}, h("tr", {}, ["writes", "intact", "without", "change of log p", "strongest rival now"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)),
    h("p", { class: "rewritten" }, h("button", { type: "button", onclick: () => rewrite(bench, box) }, "What would it write now?")),
  );
}

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function rewrite(bench, box) {
  const { run, cuts } = bench.selection;
  const found = await bench.working(() => bench.source.trace({ ...bench.wish(run), ablate: cuts, rewrite: true }));
  const line = box.querySelector(".rewritten");
  if (found && line) fill(line, "Without them it writes: ", h("strong", {}, found.facts.output));
}

/** @param {number | null} logProb */
function probability(logProb) {
  return logProb === null ? "–" : share(Math.exp(logProb));
}

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function showImportance(bench, box) {
  let found;
  try {
    found = await bench.source.ask("importance", { run: bench.selection.run });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(box, h("p", { class: "quiet" }, `${error.message} ${error.advice}`));
    return;
  }
  if (!box.isConnected) return;
  const start = (/** @type {string} */ metric) => async () => {
    await bench.working(() => bench.source.startImportance({ run: bench.selection.run, examples: 100, metric }));
    showImportance(bench, box);
  };
  if (found.state === "running") {
    fill(box, h("progress", { max: found.of || 1, value: found.done || 0, "aria-label": "Cutting one head after another" }), h("p", { class: "quiet" }, `${found.done} of ${found.of} parts cut`));
    setTimeout(() => box.isConnected && showImportance(bench, box), 800);
    return;
  }
  const buttons = h("p", { class: "actions" }, h("button", { type: "button", onclick: start("loss") }, "Cut every head in turn: the loss"), h("button", { type: "button", title: "It takes longer: everything is written anew for each head", onclick: start("score") }, `… and ${bench.run?.generates ? "BLEU" : "the accuracy"}`));
  fill(box, found.error ? h("p", { class: "danger" }, found.error) : "", found.grid ? importanceGrid(bench, found) : h("p", { class: "quiet" }, "What each head is worth on held-out data: it takes some seconds to minutes."), buttons);
}

/** @param {import("./workbench.js").Workbench} bench @param {{ grid: any, files: string[] }} found */
function importanceGrid(bench, { grid, files }) {
  const parts = grid.parts ?? [];
  const metric = Object.keys(grid.whole).at(-1) ?? "loss";
  const name = metric === "bleu" ? "BLEU" : `the ${metric}`;
  const largest = Math.max(1e-9, ...parts.map((/** @type {any} */ one) => Math.abs(one[metric].delta)));
  const ramp = bench.scales.signed;
  /** @type {Map<string, any[]>} */
  const rows = new Map();
  for (const one of parts) rows.set(one.module, [...(rows.get(one.module) ?? []), one]);
  return [
    h("p", { class: "quiet" }, `Without anything cut, ${name} is ${number(grid.whole[metric])} on ${grid.examples} examples of ${files.join(", ")}. A cell is its change when that head is cut; point at it for its 95 % interval; bold where that does not hold 0.`),
    h(
      "table",
      { class: "importance" },
      h("tbody", {}, [...rows].map(([module, own]) => h("tr", {}, h("th", { scope: "row" }, module), own.map((one) => {
        const change = one[metric];
        const place = signedPlace(change.delta, largest);
        return h("td", { class: change.sure ? "sure" : "", title: `${one.head === null || one.head === undefined ? "all of it" : `head ${one.head}`}: ${number(change.delta)} (${number(change.low)} to ${number(change.high)})`, style: { background: css(ramp, place), color: ink(ramp, place) } }, number(change.delta));
      })))),
    ),
  ];
}
