/**
 * One attention cell in full: query and key, their products, the sum, scale and bias, softmax, value, output, term by term.
 *
 * Every number was computed in Python from what the trace recorded (inspection/cell.py); here it is laid out.
 * @module
 */
import { largestOf, strip } from "./canvas.js";
import { error, number, share, token } from "./format.js";
import { fill, find, h } from "./dom.js";
import { at } from "./packed.js";
import { Refusal } from "./source.js";

/** @param {import("./workbench.js").Workbench} bench */
export function mountDetail(bench) {
  const panel = find("detail");
  let ticket = Symbol("none");
  const draw = async () => {
    const attention = bench.attention;
    if (!bench.trace) return;
    if (!attention) {
      fill(panel, classes(bench));
      return;
    }
    const { query, key } = bench.shown;
    const mine = (ticket = Symbol("row"));
    try {
      if (!attention.has_rows) throw new Refusal("Of this trace only the weights were kept.", "Look at the trained model to see how one comes about.");
      const row = await bench.row(attention.path, bench.selection.head, query);
      if (mine === ticket) fill(panel, cell(bench, attention, row, key));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (mine === ticket) fill(panel, h("h2", {}, "This cell"), h("p", {}, bench.sentence()), h("p", { class: "quiet" }, `${refusal.message} ${refusal.advice}`));
    }
  };
  bench.followHover("detail", draw);
  bench.state.listen((_, changed) => {
    if (["trace", "kind", "layer", "head", "theme"].some((name) => changed.has(name))) draw();
  });
}

/** What was said of the whole input. @param {import("./workbench.js").Workbench} bench */
function classes(bench) {
  const rows = bench.facts.classes.map((/** @type {any} */ one) => h("tr", {}, h("th", { scope: "row" }, one.text), h("td", {}, bar(one.probability)), h("td", { class: "number" }, share(one.probability))));
  return [h("h2", {}, "What it says"), rows.length ? h("table", { class: "bars" }, h("tbody", {}, rows)) : h("p", {}, bench.facts.output)];
}

/** @param {number} value */
function bar(value) {
  return h("span", { class: "bar", style: { "--share": String(Math.max(0, Math.min(1, value || 0))) } });
}

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {any} attention
 * @param {{ facts: any, arrays: Record<string, import("./packed.js").Tensor> }} row
 * @param {number} key
 */
function cell(bench, attention, { facts, arrays }, key) {
  const { query } = bench.shown;
  const of = (/** @type {string} */ name) => arrays[name];
  const vector = (/** @type {string} */ name) => at(of(name), key).data;
  const scalar = (/** @type {string} */ name) => (of(name) ? of(name).data[key] : null);
  const isVisible = scalar("visible") === 1;
  const [q, k, v] = [of("query").data, vector("keys"), vector("values")];
  const products = vector("summands");
  const weighted = vector("weighted_values");
  const width = largestOf(q, k);
  const line = (/** @type {string} */ letter, /** @type {string} */ what, /** @type {ArrayLike<number>} */ values, /** @type {number} */ largest) =>
    h("div", { class: "vector" }, h("span", { class: `letter ${letter}` }, letter), strip(values, bench.scales, largest, `${what}: ${values.length} numbers`), h("span", { class: "what" }, what), numbersOf(values));
  const who = attention.row_labels[query] ?? "";
  const whom = facts.key_labels[key] ?? "";
  return [
    h("h2", {}, h("span", { class: "token" }, token(who, 30)), " attends to ", h("span", { class: "token" }, token(whom, 20))),
    h("p", { class: "big" }, isVisible ? share(scalar("weights")) : "masked: 0"),
    h(
      "ol",
      { class: "sums" },
      h("li", {}, h("h3", {}, "The query asks, the key answers"), line("Q", `query of ${token(facts.reads, 12)}`, q, width), line("K", `key of ${token(whom, 12)}`, k, width), line("×", facts.formula.kind === "dot product" || facts.formula.kind === "dot" ? "their products" : "their summands", products, largestOf(products)), h("p", { class: "formula" }, facts.formula.text), equation("sum", scalar("sums"))),
      h("li", {}, h("h3", {}, facts.scale === 1 ? "The score" : "Scaled"), equation(`${number(scalar("sums"))} × ${number(facts.scale)}${of("biases") ? ` + bias ${number(scalar("biases"))}` : ""}`, scalar("scores"))),
      h("li", {}, h("h3", {}, "Softmax over all keys"), isVisible ? equation(`exp(${number(scalar("scores"))} − ${number(facts.largest)}) = ${number(scalar("exponentials"))},  / ${number(facts.denominator)}`, scalar("weights"), share) : h("p", {}, "The mask hides this key: its score counts as −∞."), softmax(attention, facts, arrays, key, bench)),
      h("li", {}, h("h3", {}, "Weight times value, summed"), line("V", `value of ${token(whom, 12)}`, v, largestOf(of("values").data)), line("a·v", `times ${share(scalar("weights"))}`, weighted, largestOf(of("values").data)), line("Σ", "the head's output, all keys", of("head_output").data, largestOf(of("values").data))),
      of("added") || of("residual") ? h("li", {}, h("h3", {}, "Into the residual stream"), of("added") ? line("W", "what this head adds, by its slice of the output projection", of("added").data, largestOf(of("added").data)) : "", of("residual") ? line("x", "the stream after this sublayer", of("residual").data, largestOf(of("residual").data)) : "") : "",
    ),
    h("p", { class: facts.error <= facts.tolerance ? "proof" : "proof failed" }, `Computed again from what was recorded: differs by ${error(facts.error)}.`),
    facts.notes.map((/** @type {string} */ note) => h("p", { class: "quiet" }, note)),
    bench.source.isLive ? h("button", { type: "button", onclick: () => copyPython(bench, attention, query, key) }, "Copy as Python") : "",
  ];
}

/** @param {string} left @param {number | null} right @param {(value: number | null) => string} [show] */
function equation(left, right, show = number) {
  return h("p", { class: "equation" }, h("span", {}, left), h("span", {}, " = "), h("strong", {}, show(right)));
}

/** The numbers of a vector, to be read. @param {ArrayLike<number>} values */
function numbersOf(values) {
  return h("details", {}, h("summary", { "aria-label": "its numbers" }, "123"), h("p", { class: "numbers" }, Array.from(values, (own) => number(own)).join("  ")));
}

/** The keys that weigh most. @param {any} attention @param {any} facts @param {any} arrays @param {number} key @param {any} bench */
function softmax(attention, facts, arrays, key, bench) {
  const weights = arrays.weights.data;
  const order = Array.from(weights.keys()).sort((/** @type {any} */ a, /** @type {any} */ b) => weights[b] - weights[a]);
  const shown = order.slice(0, 6);
  if (!shown.includes(key)) shown.push(key);
  return h(
    "table",
    { class: "bars" },
    h("tbody", {}, shown.map((/** @type {any} */ place) => h("tr", { class: place === key ? "on" : "", onclick: () => bench.state.set({ key: place }) }, h("th", { scope: "row" }, token(facts.key_labels[place] ?? "", 14)), h("td", {}, bar(weights[place])), h("td", { class: "number" }, arrays.visible.data[place] ? share(weights[place]) : "masked")))),
    order.length > shown.length ? h("caption", { class: "quiet" }, `and ${order.length - shown.length} more`) : "",
  );
}

/** @param {import("./workbench.js").Workbench} bench @param {any} attention @param {number} query @param {number} key */
async function copyPython(bench, attention, query, key) {
  const found = await bench.working(() => bench.ask("python", { attention: attention.path, head: bench.selection.head, query, key }));
  if (!found) return;
  await navigator.clipboard.writeText(found.program);
  fill(find("live"), "Copied: a program that computes this cell.");
}
