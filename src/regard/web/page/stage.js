/**
 * The stage: the selected thing, large. Its tabs are the abilities of the page; a tab is there only if the model has that part.
 * @module
 */
import { attentionView } from "./attention.js";
import { ablateView } from "./ablate.js";
import { compareView } from "./compare.js";
import { featuresView } from "./features.js";
import { lensView } from "./lens.js";
import { rolloutView } from "./rollout.js";
import { streamView } from "./stream.js";
import { timeView } from "./time.js";
import { tokensView } from "./tokens.js";
import { fill, find, h } from "./dom.js";

/**
 * A view: its name in the address, its title, whether the trace has it, and what draws it.
 * @typedef {{ name: string, title: string, has: (bench: import("./workbench.js").Workbench) => boolean, draw: (bench: import("./workbench.js").Workbench, box: HTMLElement) => void, changes: string[] }} View
 */

/** @type {View[]} */
const VIEWS = [attentionView, featuresView, lensView, streamView, rolloutView, tokensView, ablateView, compareView, timeView];

/** @param {import("./workbench.js").Workbench} bench */
export function mountStage(bench) {
  const panel = find("stage");
  const box = h("div", { id: "view", role: "tabpanel", "aria-labelledby": "tab" });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "What the stage shows" });
  fill(panel, tabs, box);
  const draw = () => {
    if (!bench.trace) return;
    const own = VIEWS.filter((view) => view.has(bench));
    const chosen = own.find((view) => view.name === bench.selection.view) ?? own[0];
    fill(
      tabs,
      own.map((view) =>
        h(
          "button",
          { type: "button", role: "tab", id: view === chosen ? "tab" : null, "aria-selected": String(view === chosen), onclick: () => bench.state.set({ view: view.name }) },
          view.title,
        ),
      ),
    );
    fill(box);
    box.dataset.view = chosen?.name ?? "";
    chosen?.draw(bench, box);
  };
  bench.state.listen((selection, changed) => {
    const shown = VIEWS.find((view) => view.name === box.dataset.view);
    if (["trace", "view", "theme"].some((name) => changed.has(name)) || shown?.changes.some((name) => changed.has(name))) draw();
  });
}
