/**
 * Guided lessons: short chapters that drive the page itself, in the order in which the lectures tell it.
 * @module
 */
import { CHAPTERS } from "./chapters.js";
import { fill, find, h } from "./dom.js";

/** @param {import("./workbench.js").Workbench} bench */
export function mountLesson(bench) {
  const box = find("lesson");
  const draw = () => {
    const fitting = bench.trace ? CHAPTERS.filter((one) => one.has(bench)) : [];
    const { chapter } = bench.selection;
    box.hidden = chapter < 0 || !fitting.length;
    if (box.hidden) return;
    const place = Math.min(chapter, fitting.length - 1);
    const own = fitting[place];
    const go = (/** @type {number} */ to) => () => bench.state.set({ chapter: to, ...fitting[to].selection(bench) });
    fill(
      box,
      h("div", {}, h("h2", {}, `${place + 1}. ${own.title}`), own.text(bench).map((line) => h("p", {}, line))),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", disabled: place === 0, onclick: place ? go(place - 1) : null }, "Back"),
        place + 1 < fitting.length ? h("button", { type: "button", class: "primary", onclick: go(place + 1) }, `Next (${place + 2} of ${fitting.length})`) : "",
        h("button", { type: "button", onclick: () => bench.state.set({ chapter: -1 }) }, "Close"),
      ),
    );
  };
  bench.state.listen((selection, changed) => {
    if (changed.has("chapter") && selection.chapter === 0 && bench.trace) {
      const first = CHAPTERS.find((one) => one.has(bench));
      if (first) bench.state.set(first.selection(bench));
    }
    if (changed.has("chapter") || changed.has("trace")) draw();
  });
}
