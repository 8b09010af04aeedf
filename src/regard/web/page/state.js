/**
 * One selection drives every view, and the address of the page holds it whole.
 *
 * run, text      what is looked at             kind, layer, head    which attention
 * second         of two texts                  example              by its number, where it is no text
 * query, key     which cell                    view                 what the stage shows
 * stack, passing through which layers, rollout or flow
 * node           of the beam's tree            step, probe          of the time machine
 * cuts           what is ablated               against              the run it is compared with
 * part                      of a long map: the first row and column of what is zoomed in to
 * words, plain, sqrt        how maps are shown: merged into words, without special tokens, by the square root
 * lesson, chapter           where a guided lesson stands
 * @module
 */

export const EMPTY = {
  run: "",
  text: "",
  second: "",
  example: -1,
  kind: "",
  layer: 0,
  head: 0,
  query: 0,
  key: 0,
  view: "attention",
  stack: "",
  passing: "rollout",
  below: "steps",
  node: -1,
  step: -1,
  probe: 0,
  beam: 0,
  cuts: /** @type {string[]} */ ([]),
  forced: /** @type {number[]} */ ([]),
  against: "",
  part: /** @type {number[]} */ ([]),
  words: false,
  plain: false,
  sqrt: false,
  chapter: -1,
  theme: "",
};

/** @typedef {typeof EMPTY} Selection */

/**
 * The selection as what stands behind `#` in the address: what differs from the empty one.
 * @param {Selection} selection
 */
export function toHash(selection) {
  const words = [];
  for (const [name, value] of Object.entries(selection)) {
    const usual = Reflect.get(EMPTY, name);
    if (Array.isArray(value) ? value.length === 0 : value === usual) continue;
    const text = Array.isArray(value) ? value.join("+") : value === true ? "1" : String(value);
    words.push(`${name}=${encodeURIComponent(text)}`);
  }
  return words.join("&");
}

/**
 * The selection that an address holds; what it does not know is left out.
 * @param {string} hash
 * @returns {Selection}
 */
export function fromHash(hash) {
  const found = structuredClone(EMPTY);
  for (const word of hash.replace(/^#/, "").split("&")) {
    const [name, ...rest] = word.split("=");
    if (!Object.hasOwn(EMPTY, name)) continue;
    let text;
    try {
      text = decodeURIComponent(rest.join("="));
    } catch {
      continue; // not what we wrote
    }
    const usual = Reflect.get(EMPTY, name);
    if (name === "forced") found.forced = whole(text);
    else if (name === "part") found.part = whole(text).length === 2 && whole(text).every((own) => own >= 0) ? whole(text) : [];
    else if (Array.isArray(usual)) Reflect.set(found, name, text.split("+").filter(Boolean));
    else if (typeof usual === "boolean") Reflect.set(found, name, text === "1");
    else if (typeof usual === "number") Reflect.set(found, name, Number.isInteger(Number(text)) ? Number(text) : usual);
    else Reflect.set(found, name, text);
  }
  return found;
}

/** Whole numbers with + between them. @param {string} text */
function whole(text) {
  return text.split("+").map(Number).filter(Number.isInteger);
}

/** @typedef {(selection: Selection, changed: Set<string>) => void} Listener */

/** The selection, who listens to it, and the address that follows it. */
export class State {
  constructor(hash = "") {
    this.selection = fromHash(hash);
    /** @type {Listener[]} */
    this.listeners = [];
  }

  /**
   * Call on every change; views look at `changed` to see whether it is theirs.
   * @param {Listener} listener
   */
  listen(listener) {
    this.listeners.push(listener);
  }

  /**
   * Change the selection, tell everybody, write the address.
   * @param {Partial<Selection>} patch
   */
  set(patch) {
    const changed = new Set();
    for (const [name, value] of Object.entries(patch)) {
      if (JSON.stringify(Reflect.get(this.selection, name)) !== JSON.stringify(value)) changed.add(name);
    }
    if (!changed.size) return;
    this.selection = { ...this.selection, ...patch };
    if (typeof history !== "undefined") history.replaceState(null, "", `#${toHash(this.selection)}`);
    this.tell(changed);
  }

  /** @param {Set<string>} changed */
  tell(changed) {
    for (const listener of this.listeners) listener(this.selection, changed);
  }
}
