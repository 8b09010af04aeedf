/**
 * Keys: everything that a pointer can do.
 * @module
 */
import { cut, followSelection, zoom } from "./attention.js";
import { fill, find, h } from "./dom.js";
import { clamp } from "./workbench.js";

const KEYS = [
  ["← → ↑ ↓", "move to another cell of the map"],
  ["[ ]", "layer before, layer behind"],
  [", .", "head before, head behind"],
  ["1 2 3", "kind of attention"],
  ["n p", "next and previous step of decoding"],
  ["Space", "play the steps, or stop"],
  ["Enter", "pin the cell under the pointer"],
  ["Esc", "let go"],
  ["z", "zoom in to the selected cell of a long map, or out"],
  ["a", "cut the selected head, or put it back"],
  ["/", "go to the input"],
  ["?", "this help"],
];

export function showHelp() {
  const dialog = find("help");
  fill(
    dialog,
    h("h2", {}, "Keys"),
    h("table", {}, h("tbody", {}, KEYS.map(([key, what]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, what))))),
    h("p", { class: "quiet" }, "Everything on this page is a number of the model itself, recorded while it ran. Nothing is loaded from elsewhere."),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  dialog.showModal();
}

/** @param {import("./workbench.js").Workbench} bench */
export function mountKeyboard(bench) {
  followSelection(bench);
  let saying = 0;
  const say = () => {
    clearTimeout(saying);
    saying = setTimeout(() => fill(find("live"), bench.sentence()), 250);
  };
  bench.state.listen((_, changed) => {
    if (["query", "key", "head", "layer", "kind"].some((name) => changed.has(name)) && bench.trace) say();
  });
  let playing = 0;
  const stop = () => (clearInterval(playing), (playing = 0));
  const turn = (/** @type {number} */ by) => {
    const count = bench.attention?.row_labels.length ?? bench.facts.steps.length;
    const query = bench.selection.query + by;
    if (query < 0 || query >= count) stop();
    else bench.state.set({ query });
  };
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || find("help").open) return;
    if (target.matches("input[type=text], textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (!bench.trace) return;
    const act = action(bench, event, { turn, stop, play: () => (playing ? stop() : ((playing = setInterval(() => turn(1), 700)), turn(1))) });
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/**
 * What a key does; null for none of ours.
 * @param {import("./workbench.js").Workbench} bench
 * @param {KeyboardEvent} event
 * @param {{ turn: (by: number) => void, stop: () => void, play: () => void }} steps
 * @returns {(() => void) | null}
 */
function action(bench, event, steps) {
  const { selection, attention } = bench;
  const isButton = /** @type {HTMLElement} */ (event.target).matches("button, summary, [role=button], input");
  const move = (/** @type {string} */ name, /** @type {number} */ by, /** @type {number} */ count) => () => bench.state.set({ [name]: clamp(Reflect.get(selection, name) + by, count) });
  const [rows, columns] = [attention?.row_labels.length ?? 1, attention?.column_labels.length ?? 1];
  const layers = (bench.facts.kinds[selection.kind] ?? []).length;
  const kind = Object.keys(bench.facts.kinds)[Number(event.key) - 1];
  switch (event.key) {
    case "ArrowLeft":
      return move("key", -1, columns);
    case "ArrowRight":
      return move("key", 1, columns);
    case "ArrowUp":
      return move("query", -1, rows);
    case "ArrowDown":
      return move("query", 1, rows);
    case "[":
      return move("layer", -1, layers);
    case "]":
      return move("layer", 1, layers);
    case ",":
      return move("head", -1, attention?.n_heads ?? 1);
    case ".":
      return move("head", 1, attention?.n_heads ?? 1);
    case "n":
      return () => steps.turn(1);
    case "p":
      return () => steps.turn(-1);
    case " ":
      return isButton ? null : steps.play;
    case "Enter":
      return isButton || !bench.hover ? null : () => bench.state.set(bench.shown);
    case "Escape":
      return () => (steps.stop(), bench.point(null), bench.state.set({ chapter: -1 }));
    case "a":
      return attention && bench.source.isLive ? () => cut(bench, `${attention.path}:${selection.head}`) : null;
    case "z":
      return () => zoom(bench);
    case "/":
      return () => find("text").focus();
    case "?":
      return showHelp;
    default:
      return kind ? () => bench.state.set({ ...bench.fitting({ ...selection, kind }), kind }) : null;
  }
}
