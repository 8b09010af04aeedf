/**
 * The time machine: probe examples as the model read them while it was trained; a slider goes through the recorded steps.
 * @module
 */
import { fill, h, s } from "./dom.js";
import { number, token } from "./format.js";
import { Refusal } from "./source.js";

/** Ends the watch of the run that is shown. */
let unwatch = () => {};

/** @type {import("./stage.js").View} */
export const timeView = {
  name: "time",
  title: "Training",
  has: (bench) => Boolean(bench.run?.probes),
  changes: ["step", "probe"],
  draw(bench, box) {
    const inner = h("div", {});
    fill(box, inner);
    show(bench, inner);
    unwatch();
    unwatch = bench.source.watch(bench.selection.run, () => inner.isConnected && show(bench, inner));
  },
};

/** @param {import("./workbench.js").Workbench} bench @param {HTMLElement} box */
async function show(bench, box) {
  let found;
  try {
    found = await bench.source.ask("probes", { run: bench.selection.run });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(box, h("p", {}, error.message), h("p", { class: "quiet" }, error.advice));
    return;
  }
  if (!box.isConnected) return;
  const { step, probe } = bench.selection;
  const steps = found.steps.map((/** @type {any} */ one) => one.step);
  const place = Math.max(0, step < 0 ? steps.length - 1 : steps.findLastIndex((/** @type {number} */ own) => own <= step));
  const now = found.steps[place];
  if (!now) {
    fill(box, h("p", {}, "Nothing was recorded yet."));
    return;
  }
  const go = (/** @type {number} */ to) => bench.state.set({ step: steps[to] });
  fill(
    box,
    h("div", { class: "heading" }, h("h2", {}, "While it was trained"), h("p", { class: "quiet" }, "Examples recorded every so many updates. Maps, steps and numbers follow the slider.")),
    h("div", { class: "tools" }, h("label", {}, "example ", h("select", { onchange: (/** @type {any} */ event) => bench.state.set({ probe: Number(event.target.value), step: now.step }) }, found.probes.map((/** @type {any} */ one, /** @type {number} */ number_) => h("option", { value: number_, selected: number_ === probe }, token(one.title, 60)))))),
    h("label", { class: "slider" }, h("span", {}, `step ${now.step.toLocaleString("en")}`), h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, ".value": String(place), "aria-label": "Recorded step", oninput: (/** @type {any} */ event) => go(Number(event.target.value)) })),
    curve(found.steps, place),
    h("dl", { class: "facts" }, h("dt", {}, "loss"), h("dd", {}, number(now.loss)), h("dt", {}, "expected"), h("dd", {}, found.probes[probe]?.expected || "–"), h("dt", {}, "written"), h("dd", { id: "written" }, now.outputs[probe] ?? "–")),
    step >= 0 ? h("button", { type: "button", onclick: () => bench.state.set({ step: -1 }) }, "Back to the trained model") : h("button", { type: "button", onclick: () => go(place) }, "Look inside at this step"),
    found.notes.map((/** @type {string} */ note) => h("p", { class: "quiet" }, note)),
  );
}

/** The loss of the recorded steps. @param {any[]} steps @param {number} chosen */
function curve(steps, chosen) {
  const known = steps.filter((one) => Number.isFinite(one.loss) && one.loss !== null);
  if (known.length < 2) return "";
  const [width, height] = [520, 110];
  const last = known[known.length - 1].step || 1;
  const highest = Math.max(...known.map((one) => one.loss));
  const x = (/** @type {number} */ step) => 8 + (step / last) * (width - 16);
  const y = (/** @type {number} */ loss) => 8 + (1 - loss / highest) * (height - 26);
  const at = steps[chosen].step;
  return s(
    "svg",
    { class: "curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Training loss by step" },
    s("polyline", { points: known.map((one) => `${x(one.step)},${y(one.loss)}`).join(" ") }),
    s("line", { x1: x(at), x2: x(at), y1: 4, y2: height - 18 }),
    s("text", { x: 8, y: height - 4 }, `loss ${number(highest)} to ${number(known[known.length - 1].loss)}`),
  );
}
