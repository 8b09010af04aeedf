/**
 * What all views work with: the selection, the source, the trace at hand, and what was asked about it so far.
 * @module
 */
import { at } from "./packed.js";
import { share, token } from "./format.js";
import { scales } from "./scales.js";
import { Refusal } from "./source.js";

/** @typedef {import("./packed.js").Tensor} Tensor */
/** @typedef {{ facts: any, arrays: Record<string, Tensor> }} Trace */
/** @typedef {{ kind: string, layer: number, n_heads: number, rows: number, columns: number, block: number[], row_labels: string[], column_labels: string[], array: string, heads: any[], formula: any, has_rows: boolean, path: string }} Attention */

/** What of the selection decides what is traced. */
const ASKED = ["run", "text", "second", "example", "cuts", "forced", "step", "probe", "beam"];

/** The trace at hand, and the ways to another one. */
export class Workbench {
  /**
   * @param {import("./state.js").State} state
   * @param {import("./source.js").LiveSource | import("./source.js").SavedSource} source
   */
  constructor(state, source) {
    this.state = state;
    this.source = source;
    /** @type {any} */
    this.session = { runs: [] };
    /** @type {Trace | null} */
    this.trace = null;
    /** What `trace` is compared with: intact beside ablated, or another run. @type {Trace | null} */
    this.other = null;
    /** @type {Map<string, Promise<any>>} */
    this.answers = new Map();
    /** Where the pointer is, which is no selection yet. @type {{ query: number, key: number } | null} */
    this.hover = null;
    /** Who follows the pointer, by name: a view that is drawn anew takes the place of the one before. @type {Map<string, () => void>} */
    this.hoverListeners = new Map();
    /** @type {((message: string, advice: string) => void)} */
    this.refuse = () => {};
    /** An image that was chosen from the disk, in base64. */
    this.image = "";
    this.busy = 0;
    /** @type {(() => void)[]} */
    this.busyListeners = [];
    state.listen((_, changed) => {
      if (ASKED.some((name) => changed.has(name))) this.load();
    });
  }

  get selection() {
    return this.state.selection;
  }

  get isDark() {
    const wish = this.selection.theme;
    return wish ? wish === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  get scales() {
    return scales(this.isDark);
  }

  /** The run that is looked at. */
  get run() {
    return this.session.runs.find((/** @type {any} */ one) => one.name === this.selection.run) ?? this.session.runs[0];
  }

  /** Ask what there is, and look at the first of it. */
  async open() {
    await this.working(async () => {
      this.session = await this.source.session();
      const first = this.run;
      if (!first) throw new Refusal("There is no run to look at.", "Train one: regard demo");
      if (first.problem) this.refuse(first.problem.error, first.problem.advice);
      const { text, example } = this.selection;
      const isText = first.accepts === "text" || first.accepts === "pair";
      const begun = isText ? { text: text || this.session.input || first.example || "" } : { example: first.examples?.length ? Math.max(0, example) : -1 };
      const second = first.accepts === "pair" ? { second: this.selection.second || first.examples?.[0]?.text_b || "" } : {};
      const patch = { run: first.name, ...begun, ...second };
      const isNew = Object.entries(patch).some(([name, value]) => Reflect.get(this.selection, name) !== value);
      if (isNew) this.state.set(patch);
      else this.state.tell(new Set(["run", "text"]));
      if (!isText && !first.examples?.length && this.source.isLive && this.selection.step < 0) this.refuse("Choose an image.", "It is read on this machine, and goes nowhere else.");
    });
  }

  /** What the model is to read: a text, two texts, an image, or an example by its number; null for nothing. */
  get input() {
    const { text, second, example } = this.selection;
    if (!this.source.isLive) return text;
    if (this.run?.accepts === "pair") return text && second ? { text, text_b: second } : null;
    if (this.image && this.run?.accepts === "image") return { image: this.image };
    if (example >= 0) return { example };
    return text || null;
  }

  /** What is asked of the run, as a trace. @param {string} run */
  wish(run) {
    return { run, input: this.input, beam: this.selection.beam || null };
  }

  /** Fetch the trace that the selection names. */
  async load() {
    const { run, cuts, forced, step, probe } = this.selection;
    if (!run || (this.input === null && step < 0)) return;
    const ticket = (this.ticket = Symbol("load"));
    await this.working(async () => {
      const isProbe = step >= 0;
      const wish = { ...this.wish(run), force: forced };
      const intact = isProbe ? await this.source.probe({ run, step, probe }) : await this.source.trace(wish);
      const cut = cuts.length && !isProbe ? await this.source.trace({ ...wish, ablate: cuts }) : null;
      if (ticket !== this.ticket) return; // somebody asked for something else meanwhile
      this.answers.clear();
      this.trace = cut ?? intact;
      this.other = cut ? intact : null;
      this.state.set(this.fitting(this.selection));
      this.state.tell(new Set(["trace"]));
    });
  }

  /**
   * A selection that the trace has.
   * @param {import("./state.js").Selection} selection
   */
  fitting(selection) {
    const kinds = this.facts.kinds;
    const overview = this.facts.attentions[this.facts.overview_attention];
    const isKnown = selection.kind in kinds;
    const kind = isKnown ? selection.kind : (overview?.kind ?? Object.keys(kinds)[0] ?? "");
    const isFresh = !isKnown && !selection.head && !selection.query && !selection.key;
    if (isFresh && overview) return this.strongest(kind, overview.layer);
    const layers = kinds[kind] ?? [];
    const layer = clamp(isKnown ? selection.layer : (overview?.layer ?? 0), layers.length);
    const attention = this.facts.attentions[layers[layer]];
    return {
      kind,
      layer,
      head: clamp(selection.head, attention?.n_heads ?? 1),
      query: clamp(selection.query, attention?.row_labels.length ?? this.facts.steps.length),
      key: clamp(selection.key, attention?.column_labels.length ?? 1),
    };
  }

  /**
   * The place of the largest weight of an attention behind its first row: a good one to begin with.
   * @param {string} kind
   * @param {number} layer
   */
  strongest(kind, layer) {
    const path = this.facts.kinds[kind][layer];
    const attention = { ...this.facts.attentions[path], path };
    const [down, across] = attention.block;
    let best = { head: 0, query: 0, key: 0, value: -1 };
    for (let head = 0; head < attention.n_heads; head++) {
      const map = this.smallMap(attention, head);
      if (!map) continue;
      const columns = map.shape[1];
      for (let place = columns; place < map.data.length; place++) {
        // What attends to one place alone has no choice, as the first row of a mask.
        const value = map.data[place];
        if (value > best.value && value < 0.999) best = { head, query: Math.floor(place / columns) * down, key: (place % columns) * across, value };
      }
    }
    return { kind, layer, head: best.head, query: best.query, key: best.key };
  }

  get facts() {
    if (!this.trace) throw new Error("no trace yet");
    return this.trace.facts;
  }

  /** The attention that is selected, or null for a model without. @returns {Attention | null} */
  get attention() {
    const path = this.trace?.facts.kinds[this.selection.kind]?.[this.selection.layer];
    return path ? { ...this.trace?.facts.attentions[path], path } : null;
  }

  /**
   * The weights (rows, columns) of a head; null where only blocks of them came with the trace.
   * @param {Attention} attention
   * @param {number} head
   */
  weights(attention, head) {
    const array = this.trace?.arrays[`weights:${attention.path}`];
    return array ? at(array, head) : null;
  }

  /**
   * The same as a small map has room for: all weights, or the largest of each block.
   * @param {Attention} attention
   * @param {number} head
   */
  smallMap(attention, head) {
    const array = this.trace?.arrays[attention.array];
    return array ? at(array, head) : null;
  }

  /** Fetch all weights of an attention of which only blocks came. @param {Attention} attention */
  async fetchWeights(attention) {
    const name = `weights:${attention.path}`;
    if (this.trace?.arrays[name]) return;
    const trace = this.trace;
    const { arrays } = await this.askPacked("weights", { attention: attention.path });
    if (trace) trace.arrays[name] = arrays[name];
  }

  /**
   * Ask once per trace.
   * @param {string} what
   * @param {Record<string, any>} [query]
   */
  ask(what, query = {}) {
    return this.#once(`${what}${JSON.stringify(query)}`, () => this.source.ask(what, { trace: this.facts.id, ...query }));
  }

  /** @param {string} what @param {Record<string, any>} [query] */
  askPacked(what, query = {}) {
    return this.#once(`packed ${what}${JSON.stringify(query)}`, () => this.source.askPacked(what, { trace: this.facts.id, ...query }));
  }

  /** The arithmetic of all cells of one query. @param {string} attention @param {number} head @param {number} query */
  row(attention, head, query) {
    return this.#once(`row ${attention} ${head} ${query}`, () => this.source.row(this.facts.id, attention, head, query));
  }

  /**
   * The same input by another run, and what differs.
   * @param {string} run
   */
  against(run) {
    return this.#once(`against ${run}`, async () => {
      const other = await this.source.trace(this.wish(run));
      return { other, difference: await this.source.difference(this.facts.id, other.facts.id) };
    });
  }

  /** What differs from what the trace is compared with. */
  difference() {
    const other = this.other;
    if (!other) return Promise.resolve(null);
    return this.#once("difference", () => this.source.difference(other.facts.id, this.facts.id));
  }

  /** @param {string} name @param {() => Promise<any>} make */
  #once(name, make) {
    let found = this.answers.get(name);
    if (!found) {
      found = make();
      this.answers.set(name, found);
      found.catch(() => this.answers.delete(name));
    }
    return found;
  }

  /** Where the pointer is. @param {{ query: number, key: number } | null} place */
  point(place) {
    if (JSON.stringify(place) === JSON.stringify(this.hover)) return;
    this.hover = place;
    for (const listener of this.hoverListeners.values()) listener();
  }

  /** Call when the pointer goes to another cell. @param {string} name @param {() => void} listener */
  followHover(name, listener) {
    this.hoverListeners.set(name, listener);
  }

  /** The cell that is shown: the one under the pointer, else the pinned one. */
  get shown() {
    return this.hover ?? { query: this.selection.query, key: this.selection.key };
  }

  /**
   * Do something that takes a while, and show what is refused.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T | undefined>}
   */
  async working(work) {
    this.#busy(1);
    try {
      const found = await work();
      this.refuse("", "");
      return found;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.refuse(error.message, error.advice);
      return undefined;
    } finally {
      this.#busy(-1);
    }
  }

  /** @param {number} change */
  #busy(change) {
    this.busy += change;
    for (const listener of this.busyListeners) listener();
  }

  /** Say the selected cell, for those who listen. */
  sentence() {
    const attention = this.attention;
    if (!attention) return "";
    const { query, key } = this.shown;
    const { head, layer, kind } = this.selection;
    const value = this.weights(attention, head)?.data[query * attention.column_labels.length + key];
    const who = token(attention.row_labels[query] ?? "");
    return `${who} attends to ${token(attention.column_labels[key] ?? "")}, ${share(value)}, ${kind}, layer ${layer}, head ${head}`;
  }
}

/** @param {number} place @param {number} count */
export function clamp(place, count) {
  return Math.max(0, Math.min(place, count - 1));
}
