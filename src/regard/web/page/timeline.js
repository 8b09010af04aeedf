/**
 * The timeline: what was written step by step, with the rivals of each token; or the beam search as a tree.
 * @module
 */
import { fill, find, h } from "./dom.js";
import { share, token } from "./format.js";
import { windowAround } from "./layout.js";
import { drawTree } from "./tree.js";

const MOST = 80; // cards that are shown at once, around the selected one

/** @param {import("./workbench.js").Workbench} bench */
export function mountTimeline(bench) {
  const panel = find("timeline");
  const draw = () => {
    if (!bench.trace) return;
    const { below } = bench.selection;
    const canSearch = bench.facts.causal && bench.run?.generates && bench.selection.step < 0;
    const tabs = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "What was written" },
      [["steps", "Step by step"], ...(canSearch ? [["tree", "Beam tree"]] : [])].map(([name, title]) =>
        h("button", { type: "button", role: "tab", "aria-selected": String(name === below || (!canSearch && name === "steps")), onclick: () => bench.state.set({ below: name }) }, title),
      ),
      h("span", { class: "output" }, h("span", { class: "quiet" }, bench.facts.writes.length ? "writes " : "says "), said(bench)),
      bench.facts.truncation ? h("span", { class: "truncated" }, `The input is longer than the model reads at once: ${bench.facts.truncation}.`) : "",
      bench.selection.forced.length ? h("button", { type: "button", onclick: () => bench.state.set({ forced: [], node: -1 }) }, "Let it write freely again") : "",
      bench.selection.cuts.length ? h("button", { type: "button", class: "danger", onclick: () => bench.state.set({ cuts: [] }) }, `Put back ${bench.selection.cuts.length} that ${bench.selection.cuts.length > 1 ? "are" : "is"} cut`) : "",
    );
    const box = h("div", { class: "track" });
    fill(panel, tabs, box);
    if (below === "tree" && canSearch) drawTree(bench, box);
    else fill(box, classes(bench), steps(bench));
    follow(bench);
  };
  bench.state.listen((_, changed) => {
    if (["trace", "below", "theme"].some((name) => changed.has(name))) draw();
    else if (changed.has("query") && !isThere(panel, bench.selection.query) && bench.selection.below === "steps") draw();
    else if (changed.has("query")) follow(bench);
  });
}

/** The output: of classes the likeliest, with its probability. @param {import("./workbench.js").Workbench} bench */
function said(bench) {
  const [best] = bench.facts.classes;
  return best ? `${best.text} ${share(best.probability)}` : bench.facts.output;
}

/** What was said of the whole input. @param {import("./workbench.js").Workbench} bench */
function classes(bench) {
  const found = bench.facts.classes;
  if (!found.length) return "";
  return h("ol", { class: "steps" }, found.map((/** @type {any} */ one) => h("li", { class: "class" }, h("span", { class: "writes" }, one.text), h("span", { class: "bar", style: { "--share": String(one.probability) } }), h("span", { class: "rivals" }, share(one.probability)))));
}

/** A card for each position. @param {import("./workbench.js").Workbench} bench */
function steps(bench) {
  const decodes = bench.facts.writes.length > 0;
  const n = bench.facts.steps.length;
  const begin = windowAround(bench.selection.query, n, MOST);
  const end = Math.min(n, begin + MOST);
  const more = (/** @type {number} */ at, /** @type {string} */ text) => h("li", {}, h("button", { type: "button", class: "step", onclick: () => bench.state.set({ query: at }) }, text));
  return h(
    "ol",
    { class: "steps" },
    begin ? more(begin - 1, `… ${begin} before`) : "",
    bench.facts.steps.slice(begin, end).map((/** @type {any} */ step) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "step", "data-at": step.position, onclick: () => bench.state.set({ query: step.position }) },
          h("span", { class: "reads" }, h("small", {}, decodes ? "reads " : ""), token(step.reads)),
          decodes ? h("span", { class: "writes" }, h("small", {}, "writes "), token(step.writes), step.given ? h("small", {}, " given") : "") : "",
          step.probability !== null && step.probability !== undefined ? h("span", { class: "bar", style: { "--share": String(step.probability) }, title: share(step.probability) }) : "",
          h("span", { class: "rivals" }, step.rivals.map((/** @type {any} */ one) => `${token(one.text, 12)} ${share(one.probability)}`).join(", ")),
        ),
      ),
    ),
    end < n ? more(end, `${n - end} behind …`) : "",
  );
}

/** Whether a position has a card. @param {HTMLElement} panel @param {number} query */
function isThere(panel, query) {
  return panel.querySelector(`.step[data-at="${query}"]`) !== null;
}

/** Mark the selected step. @param {import("./workbench.js").Workbench} bench */
function follow(bench) {
  for (const button of find("timeline").querySelectorAll(".step")) {
    const isChosen = Number(button.dataset.at) === bench.selection.query;
    button.toggleAttribute("data-chosen", isChosen);
    button.setAttribute("aria-pressed", String(isChosen));
    if (isChosen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
