/**
 * The beam search as a tree: kept, finished and pruned hypotheses; a click on one forces it and goes on from there.
 * @module
 */
import { fill, h, s } from "./dom.js";
import { number, token } from "./format.js";
import { treeLayout } from "./layout.js";
import { Refusal } from "./source.js";

const [STEP, ROW] = [92, 24]; // pixels of a step and of a row
const WORDS = { beam: "the beam was full", hopeless: "it can no longer win" };

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {HTMLElement} box
 */
export async function drawTree(bench, box) {
  fill(box, h("p", { class: "quiet" }, "searching …"));
  let tree;
  try {
    tree = await bench.ask("tree");
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    fill(box, h("p", { class: "quiet" }, `${refusal.message} ${refusal.advice}`));
    return;
  }
  if (tree.refused) {
    fill(box, h("p", { class: "quiet" }, tree.refused));
    return;
  }
  let pruned = false;
  const draw = () => {
    const { places, rows, steps } = treeLayout(tree, { pruned });
    const path = new Set();
    const byNumber = new Map(tree.nodes.map((/** @type {any} */ node) => [node.number, node]));
    for (let node = byNumber.get(tree.best); node; node = byNumber.get(node.parent)) path.add(node.number);
    const shown = tree.nodes.filter((/** @type {any} */ node) => places.has(node.number));
    const said = h("p", { class: "said" });
    const source = h("p", { class: "line key", "aria-hidden": "true" }, (tree.source ?? []).map((/** @type {string} */ label) => h("span", { class: "token" }, token(label, 14))));
    const look = (/** @type {any} */ node) => {
      fill(said, about(node, tree));
      Array.from(source.children).forEach((own, place) => own.style.setProperty("--weight", String(node.attention?.[place] ?? 0)));
    };
    look(byNumber.get(bench.selection.node) ?? byNumber.get(tree.best));
    const links = shown.map((/** @type {any} */ node) => {
      const to = place(places, node.number);
      const from = places.has(node.parent) ? place(places, node.parent) : { x: -0.35 * STEP + 12, y: place(places, tree.nodes[0].number).y };
      return s("path", { class: `link ${node.fate}${path.has(node.number) ? " best" : ""}`, d: `M ${from.x} ${from.y} C ${from.x + 30} ${from.y}, ${to.x - 40} ${to.y}, ${to.x - 6} ${to.y}` });
    });
    const dots = shown.map((/** @type {any} */ node) => {
      const { x, y } = place(places, node.number);
      return s(
        "g",
        {
          class: `node ${node.fate}${path.has(node.number) ? " best" : ""}${node.forced ? " forced" : ""}`,
          transform: `translate(${x} ${y})`,
          tabindex: "0",
          role: "button",
          "aria-label": `${token(node.label)}, ${about(node, tree)}`,
          onfocus: () => look(node),
          onpointerenter: () => look(node),
          onclick: () => force(bench, tree, node),
          onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && force(bench, tree, node),
        },
        s("circle", { r: 4 }),
        s("text", { x: 8, "dominant-baseline": "central" }, token(node.label, 11)),
      );
    });
    fill(
      box,
      h(
        "div",
        { class: "tree-tools" },
        h("label", {}, h("input", { type: "checkbox", ".checked": pruned, onchange: (/** @type {any} */ event) => ((pruned = event.target.checked), draw()) }), " show pruned candidates"),
        h("span", { class: "quiet" }, `beam ${tree.width}; score = total / length^${tree.length_penalty}; click a node to force it and go on from there`),
        said,
      ),
      source,
      h("div", { class: "tree-frame" }, s("svg", { class: "tree", width: steps * STEP + 120, height: rows * ROW + 16, role: "group", "aria-label": "Beam tree" }, links, dots)),
    );
  };
  draw();
}

/** @param {Map<number, { x: number, y: number }>} places @param {number} number_ */
function place(places, number_) {
  const { x, y } = /** @type {{ x: number, y: number }} */ (places.get(number_));
  return { x: 30 + x * STEP, y: 14 + y * ROW };
}

/** What became of a node, in words. @param {any} node @param {any} tree */
function about(node, tree) {
  if (!node) return "";
  const sum = `log p ${number(node.log_prob)}, total ${number(node.total)}`;
  if (node.fate === "finished") return `${token(node.label)}: finished, ${sum}, score ${number(node.score)}${node.number === tree.best ? ": the output" : ""}`;
  if (node.fate === "pruned") return `${token(node.label)}: pruned, ${sum}: ${Reflect.get(WORDS, node.reason) ?? node.reason} (${number(node.value)} against ${number(node.against)})`;
  return `${token(node.label)}: kept, ${sum}`;
}

/** @param {import("./workbench.js").Workbench} bench @param {any} tree @param {any} node */
function force(bench, tree, node) {
  if (!bench.source.isLive) return;
  const byNumber = new Map(tree.nodes.map((/** @type {any} */ own) => [own.number, own]));
  const forced = [];
  for (let own = node; own; own = byNumber.get(own.parent)) forced.unshift(own.token);
  bench.state.set({ forced, node: node.number });
}
