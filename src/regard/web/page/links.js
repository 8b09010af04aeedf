/**
 * Two lines of tokens and the links between them: from the selected query to what it attends to, as thick as the weight.
 * @module
 */
import { share, token } from "./format.js";
import { fill, h, s } from "./dom.js";

const [LETTER, AROUND] = [8, 13]; // pixels of a letter, and beside a token, about
const LEAST = 0.02; // weight of a link that is drawn

/**
 * @param {import("./workbench.js").Workbench} bench
 * @param {any} attention
 * @param {HTMLElement} box
 */
export function drawLinks(bench, attention, box) {
  const isCross = attention.rows !== attention.columns;
  const room = box.clientWidth - 60;
  const upper = fitting(attention.row_labels, bench.selection.query, room);
  const lower = fitting(attention.column_labels, bench.selection.key, room);
  const line = (/** @type {{ label: string, at: number }[]} */ own, /** @type {string} */ axis) =>
    h(
      "div",
      { class: `line ${axis}` },
      own.map(({ label, at }) =>
        h("span", { class: "token", "data-at": at, onpointerenter: () => axis === "query" && bench.point({ query: at, key: bench.selection.key }), onpointerleave: () => bench.point(null), onclick: () => bench.state.set(axis === "query" ? { query: at } : { key: at }) }, token(label, 16)),
      ),
    );
  const queries = line(upper, "query");
  const keys = line(lower, "key");
  const wires = s("svg", { class: "wires", "aria-hidden": "true" });
  fill(
    box,
    h("div", { class: "lines", "aria-hidden": "true" }, h("span", { class: "who" }, isCross ? "writes" : "attends"), queries, wires, h("span", { class: "who" }, isCross ? "reads" : "to"), keys),
  );

  const show = () => {
    const { query, key } = bench.shown;
    const weights = bench.weights(attention, bench.selection.head);
    if (!weights || !box.isConnected) return;
    const n = attention.column_labels.length;
    const bounds = wires.getBoundingClientRect();
    const middle = (/** @type {Element | null} */ own) => {
      if (!own) return null;
      const at = own.getBoundingClientRect();
      return at.left + at.width / 2 - bounds.left;
    };
    for (const own of queries.children) own.toggleAttribute("data-on", Number(own.dataset.at) === query);
    const from = middle(queries.querySelector("[data-on]"));
    const found = [];
    for (const own of keys.children) {
      const at = Number(own.dataset.at);
      const value = weights.data[query * n + at];
      own.style.setProperty("--weight", String(Number.isNaN(value) ? 0 : value));
      own.toggleAttribute("data-masked", Number.isNaN(value));
      own.toggleAttribute("data-on", at === key);
      own.title = `${token(attention.row_labels[query] ?? "")} attends to ${token(own.textContent ?? "")}: ${share(value)}`;
      const to = middle(own);
      if (from !== null && to !== null && value >= LEAST) {
        found.push(s("path", { d: `M ${from} 0 C ${from} 18, ${to} 12, ${to} 30`, "stroke-width": Math.max(1, 9 * value), "stroke-opacity": 0.25 + 0.65 * value, fill: "none" }));
      }
    }
    fill(wires, found);
  };
  bench.followHover("context", show);
  requestAnimationFrame(show);
}

/**
 * The tokens around one that have room on a line.
 * @param {string[]} labels
 * @param {number} around
 * @param {number} room
 */
function fitting(labels, around, room) {
  const width = (/** @type {number} */ at) => AROUND + LETTER * [...token(labels[at], 16)].length;
  let [begin, end, used] = [around, around + 1, width(Math.min(around, labels.length - 1))];
  for (let grew = true; grew; ) {
    grew = false;
    if (end < labels.length && used + width(end) <= room) [used, end, grew] = [used + width(end), end + 1, true];
    if (begin > 0 && used + width(begin - 1) <= room) [used, begin, grew] = [used + width(begin - 1), begin - 1, true];
  }
  return labels.slice(begin, end).map((label, at) => ({ label, at: begin + at }));
}
