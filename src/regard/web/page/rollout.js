/**
 * Through all layers: attention rollout and attention flow of a stack, which are no weights of any head, and say so.
 * @module
 */
import { asWeights } from "./canvas.js";
import { share, token } from "./format.js";
import { fill, h } from "./dom.js";
import { blocks, grid } from "./layout.js";
import { drawMap } from "./map.js";
import { legend, tableTools } from "./map_table.js";

const MOST = 128; // rows and columns that are drawn; longer maps are drawn in blocks
const KINDS = {
  rollout: ["Attention rollout", "Each layer's mean over its heads, with the residual connection beside it, multiplied through all layers: rows sum to 1"],
  flow: ["Attention flow", "The most that can pass from a position of the last layer to one of the input, where weights are widths"],
};

/** @typedef {import("./workbench.js").Workbench} Workbench */

/** @type {import("./stage.js").View} */
export const rolloutView = {
  name: "rollout",
  title: "Rollout",
  has: (bench) => Object.keys(bench.facts.stacks).length > 0,
  changes: ["stack", "passing", "sqrt"],
  async draw(bench, box) {
    const { passing } = bench.selection;
    const stack = bench.selection.stack in bench.facts.stacks ? bench.selection.stack : Object.keys(bench.facts.stacks)[0];
    const [title, about] = Reflect.get(KINDS, passing) ?? KINDS.rollout;
    const found = h("div", {}, h("p", { class: "quiet" }, "following it through the layers …"));
    const kinds = Object.entries(KINDS).map(([name, [text]]) => [name, text]);
    fill(
      box,
      h("div", { class: "heading" }, h("h2", {}, title), h("p", { class: "quiet" }, `${about} (Abnar & Zuidema 2020). Values and feed-forward networks are not in it.`)),
      h("div", { class: "tools" }, chooser(bench, "passing", "show ", kinds, passing), chooser(bench, "stack", "of the ", Object.keys(bench.facts.stacks).map((name) => [name, name]), stack)),
      found,
    );
    const answer = await bench.working(() => bench.askPacked(passing, { stack }));
    if (!found.isConnected) return;
    if (answer) show(bench, found, answer.arrays[passing], bench.facts.attentions[bench.facts.stacks[stack]], title);
    else fill(found);
  },
};

/** @param {Workbench} bench @param {string} name @param {string} text @param {string[][]} options @param {string} chosen */
function chooser(bench, name, text, options, chosen) {
  const choose = (/** @type {any} */ event) => bench.state.set({ [name]: event.target.value });
  return h("label", {}, text, h("select", { onchange: choose }, options.map(([value, label]) => h("option", { value, selected: value === chosen }, label))));
}

/**
 * @param {Workbench} bench
 * @param {HTMLElement} box
 * @param {import("./packed.js").Tensor} array
 * @param {import("./workbench.js").Attention} attention  one of the stack, which has its labels
 * @param {string} title
 */
function show(bench, box, array, attention, title) {
  const whole = grid(array.data, array.shape[0], array.shape[1]);
  const view = blocks(whole, MOST);
  const labels = { rows: attention.row_labels, columns: attention.column_labels };
  const how = () => asWeights(bench.scales, bench.selection.sqrt);
  const inside = (/** @type {{ query: number, key: number }} */ own) => ({ query: Math.min(own.query, whole.rows - 1), key: Math.min(own.key, whole.columns - 1) });
  const sentence = () => {
    const { query, key } = inside(bench.shown);
    return `${token(labels.rows[query] ?? "")} from ${token(labels.columns[key] ?? "")}: ${share(array.data[query * whole.columns + key])}, ${title.toLowerCase()}`;
  };
  const said = h("p", { class: "reached" });
  const frame = h("div", { class: "map-frame" });
  const { buttons, sheet } = tableTools(labels, view, whole);
  const note = (view.block ?? 1) > 1 ? h("p", { class: "quiet" }, `${whole.rows} × ${whole.columns} in blocks of ${view.block}, the largest number of each`) : "";
  fill(box, said, frame, h("div", { class: "footer" }, legend(bench.scales, how(), { sqrt: bench.selection.sqrt, masked: false }), note, h("div", { class: "actions" }, buttons), sheet));
  const map = drawMap(frame, {
    view,
    ...labels,
    label: `${title}: rows are positions of the last layer, columns those of the input`,
    how,
    isDark: () => bench.isDark,
    shown: () => inside(bench.shown),
    pinned: () => inside(bench.selection),
    point: (cell) => bench.point(cell),
    pick: (cell) => bench.state.set(cell),
    sentence,
  });
  const follow = () => {
    map.show();
    fill(said, sentence());
  };
  bench.followHover("map", follow);
  follow();
}
