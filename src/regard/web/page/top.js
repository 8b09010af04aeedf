/**
 * The top of the page: which run, what it reads, whether the numbers hold, theme, lessons and help.
 * @module
 */
import { bytes, error } from "./format.js";
import { fill, find, h } from "./dom.js";
import { showHelp } from "./keyboard.js";
import { Refusal } from "./source.js";

/** @param {import("./workbench.js").Workbench} bench */
export function mountTop(bench) {
  const [form, text] = [find("ask"), find("text")];
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!text.value.trim()) {
      bench.refuse("There is nothing to read.", "Write a text, then look inside.");
      return;
    }
    bench.state.set({ text: text.value, second: find("second").value, example: -1, cuts: [], forced: [], step: -1 });
  });
  find("image").addEventListener("change", async (/** @type {any} */ event) => {
    const [file] = event.target.files;
    if (!file) return;
    bench.image = await asBase64(file);
    bench.state.set({ text: file.name, example: -1, cuts: [], step: -1 });
    bench.load();
  });
  fill(
    find("menu"),
    h("button", { type: "button", title: "Guided lessons", onclick: () => bench.state.set({ chapter: bench.selection.chapter < 0 ? 0 : -1 }) }, "Lessons"),
    h("button", { type: "button", title: "Light or dark", "aria-label": "Light or dark", onclick: () => bench.state.set({ theme: bench.isDark ? "light" : "dark" }) }, "◐"),
    h("button", { type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: showHelp }, "?"),
  );
  bench.busyListeners.push(() => document.body.classList.toggle("busy", bench.busy > 0));
  const dress = () => {
    document.documentElement.dataset.theme = bench.isDark ? "dark" : "light";
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => bench.state.tell(new Set(["theme"])));
  dress();
  bench.state.listen((selection, changed) => {
    if (changed.has("theme")) dress();
    if (changed.has("run") || changed.has("trace")) fill(find("run"), runFacts(bench));
    if (changed.has("run") && bench.run) fitForm(bench, form);
    if (changed.has("text") || changed.has("trace")) {
      const isFixed = !bench.source.isLive || selection.step >= 0 || bench.run?.accepts === "image";
      text.value = bench.trace && isFixed ? bench.facts.title : selection.text;
      text.disabled = !bench.source.isLive;
      form.querySelector("button").hidden = !bench.source.isLive;
      document.title = bench.trace ? `${bench.facts.title} · regard` : "regard";
    }
    if (changed.has("trace")) showChecks(bench);
  });
}

/** Ask for what the run takes: a text, two, or an image. @param {import("./workbench.js").Workbench} bench @param {HTMLElement} form */
function fitForm(bench, form) {
  const { accepts, blank, examples = [] } = bench.run;
  find("text").placeholder = blank ? `What the model shall read, with ${blank} in the place of what it guesses` : "What the model shall read";
  find("second").hidden = accepts !== "pair";
  find("second").value = bench.selection.second;
  find("image").hidden = accepts !== "image" || !bench.source.isLive;
  form.classList.toggle("reads-images", accepts === "image" || accepts === "vectors");
  fill(find("examples"), examples.filter((/** @type {any} */ one) => one.text).map((/** @type {any} */ one) => h("option", { value: one.text })));
}

/** @param {Blob} file @returns {Promise<string>} */
function asBase64(file) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).split(",")[1] ?? ""));
    reader.readAsDataURL(file);
  });
}

/** @param {import("./workbench.js").Workbench} bench */
function runFacts(bench) {
  const { run, session } = bench;
  if (!run) return "";
  const step = bench.trace?.facts.run.step ?? run.step;
  const names = session.runs.map((/** @type {any} */ one) => one.name);
  const chooser =
    names.length > 1
      ? h(
          "select",
          { "aria-label": "Run", onchange: (/** @type {any} */ event) => bench.state.set({ run: event.target.value, cuts: [], step: -1 }) },
          names.map((/** @type {string} */ name) => h("option", { value: name, selected: name === run.name }, name)),
        )
      : h("strong", { title: run.name }, run.name.split("/").at(-1));
  const facts = `${run.model}, ${(run.parameters ?? 0).toLocaleString("en")} parameters`;
  return [chooser, h("span", { class: "quiet", title: `${run.task}, ${facts}` }, ` ${run.model}, step ${step.toLocaleString("en")}`)];
}

/** @param {import("./workbench.js").Workbench} bench */
async function showChecks(bench) {
  const badge = find("badge");
  fill(badge, h("span", { class: "quiet" }, "checking …"));
  try {
    const found = await bench.ask("checks");
    const own = found.checks ?? [];
    const made = own.filter((/** @type {any} */ one) => one.passed !== null);
    const failed = made.filter((/** @type {any} */ one) => !one.passed);
    const largest = Math.max(0, ...own.map((/** @type {any} */ one) => one.error));
    const held = made.length ? `${made.length} ${made.length === 1 ? "check holds" : "checks hold"}, within ${error(largest)}` : "not checked";
    const summary = failed.length ? `${failed.length} of ${made.length} checks failed` : held;
    const rows = own.map((/** @type {any} */ one) => h("tr", {}, h("td", {}, one.passed === null ? "–" : one.passed ? "✓" : "✗"), h("td", {}, one.name), h("td", { class: "number" }, error(one.error)), h("td", { class: "quiet" }, one.note)));
    fill(
      badge,
      h("details", { class: failed.length ? "checks failed" : "checks" }, h("summary", {}, summary), h("div", { class: "sheet" }, h("table", {}, h("tbody", {}, rows)), h("p", { class: "quiet" }, `The trace holds ${bench.facts.taps.length} tensors, ${bytes(bench.facts.n_bytes)}.`))),
    );
  } catch (refusal) {
    fill(badge, h("span", { class: "quiet", title: refusal instanceof Refusal ? refusal.advice : "" }, refusal instanceof Refusal ? refusal.message : "not checked"));
  }
}

/** Say what was refused, under the top. @param {import("./workbench.js").Workbench} bench */
export function mountBanner(bench) {
  const banner = find("banner");
  bench.refuse = (message, advice) => {
    banner.hidden = !message;
    fill(banner, h("strong", {}, message), advice ? h("span", {}, ` ${advice}`) : "");
  };
}
