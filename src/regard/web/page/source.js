/**
 * Where the numbers come from: a server on this machine, or the bundle inside of a page that was saved as one file.
 *
 * Both answer the same questions. What a bundle does not hold is refused with a sentence that says how to get it.
 * @module
 */
import { unpack } from "./packed.js";

/** What was asked for cannot be had; `advice` says what to do. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {string} [advice]
   */
  constructor(message, advice = "") {
    super(message);
    this.advice = advice;
  }
}

/** Asks the server that sent the page. */
export class LiveSource {
  isLive = true;

  session() {
    return this.#json("GET", "api/session");
  }

  /** @param {any} wish  run, input, beam, ablate, force, rewrite */
  trace(wish) {
    return this.#packed("POST", "api/trace", wish);
  }

  /** @param {{ run: string, step: number, probe: number }} wish */
  probe(wish) {
    return this.#packed("POST", "api/probe", wish);
  }

  /** @param {string} trace @param {string} attention @param {number} head @param {number} query */
  row(trace, attention, head, query) {
    return this.#packed("GET", `api/row?${words({ trace, attention, head, query })}`);
  }

  /** @param {string} a @param {string} b */
  difference(a, b) {
    return this.#packed("POST", "api/difference", { a, b });
  }

  /** @param {{ run: string, examples: number, metric: string }} wish */
  startImportance(wish) {
    return this.#json("POST", "api/importance", wish);
  }

  /**
   * Everything else that is JSON: lens, tree, checks, contributions, python, probes, importance, tokens, neighbours.
   * @param {string} what
   * @param {Record<string, any>} query
   */
  ask(what, query) {
    return this.#json("GET", `api/${what}?${words(query)}`);
  }

  /** The same where arrays come: embedding, positions, rollout. @param {string} what @param {Record<string, any>} query */
  askPacked(what, query) {
    return this.#packed("GET", `api/${what}?${words(query)}`);
  }

  /** Call whenever new probe examples were recorded. @param {string} run @param {() => void} listener */
  watch(run, listener) {
    const events = new EventSource(`api/events?${words({ run })}`);
    events.addEventListener("probes", listener);
    return () => events.close();
  }

  /** @param {string} method @param {string} path @param {any} [body] */
  async #fetch(method, path, body) {
    let answer;
    try {
      answer = await fetch(path, {
        method,
        headers: body === undefined ? {} : { "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new Refusal("The server does not answer.", "Start it again: regard inspect RUN --page");
    }
    if (answer.ok) return answer;
    const facts = await answer.json().catch(() => ({}));
    throw new Refusal(facts.error ?? `The server answered ${answer.status}.`, facts.advice ?? "");
  }

  /** @param {string} method @param {string} path @param {any} [body] */
  async #json(method, path, body) {
    return (await this.#fetch(method, path, body)).json();
  }

  /** @param {string} method @param {string} path @param {any} [body] */
  async #packed(method, path, body) {
    return unpack(await (await this.#fetch(method, path, body)).arrayBuffer());
  }
}

const ASK_LIVE = "This page was saved as a file and holds one sentence. For more: regard inspect RUN --page";

/** Answers from the bundle of a saved page. */
export class SavedSource {
  isLive = false;

  /** @param {any} bundle */
  constructor(bundle) {
    this.bundle = bundle;
    /** The one trace whose lens, tree, checks and rows are here; of probe examples only their maps are. */
    this.id = unpack(fromBase64(bundle.trace)).facts.id;
  }

  async session() {
    return this.bundle.session;
  }

  /** @param {any} wish */
  async trace(wish) {
    if (wish.ablate?.length || wish.force?.length) throw new Refusal("The model is not here.", ASK_LIVE);
    return unpack(fromBase64(this.bundle.trace));
  }

  /** @param {{ step: number, probe: number }} wish */
  async probe({ step, probe }) {
    return unpack(fromBase64(this.#kept("probe_traces", `${step}|${probe}`, "That step is not in this file.")));
  }

  /** @param {string} trace @param {string} attention @param {number} head @param {number} query */
  async row(trace, attention, head, query) {
    this.#refuseOthers(trace);
    const name = `${attention}|${head}|${query}`;
    return unpack(fromBase64(this.#kept("rows", name, "The numbers of this head are not in this file.")));
  }

  async difference() {
    throw new Refusal("The model is not here.", ASK_LIVE);
  }

  async startImportance() {
    throw new Refusal("The model is not here.", ASK_LIVE);
  }

  /** @param {string} what @param {Record<string, any>} query */
  async ask(what, query) {
    this.#refuseOthers(query.trace);
    const kept = this.bundle[what];
    if ((what === "contributions" || what === "gradients") && kept) return kept[String(query.position)] ?? kept["-1"] ?? kept;
    if (kept === undefined || kept === null) throw new Refusal("That is not in this file.", ASK_LIVE);
    return kept;
  }

  /** @param {string} what @param {Record<string, any>} query */
  async askPacked(what, query) {
    if (what !== "positions") this.#refuseOthers(query.trace); // which are the model's, whatever it read
    const kept = what === "rollout" ? this.bundle.rollout?.[query.stack] : this.bundle[what];
    if (typeof kept !== "string") throw new Refusal("That is not in this file.", ASK_LIVE);
    return unpack(fromBase64(kept));
  }

  watch() {
    return () => {};
  }

  /** @param {string | undefined} trace */
  #refuseOthers(trace) {
    if (trace !== undefined && trace !== this.id) throw new Refusal("Of this step only maps and probabilities are in this file.", ASK_LIVE);
  }

  /** @param {string} group @param {string} name @param {string} refusal @returns {string} */
  #kept(group, name, refusal) {
    const kept = this.bundle[group]?.[name];
    if (kept === undefined) throw new Refusal(refusal, ASK_LIVE);
    return kept;
  }
}

/**
 * The source that this page has: the bundle inside it, if there is one.
 * @returns {Promise<LiveSource | SavedSource>}
 */
export async function openSource() {
  const kept = document.getElementById("bundle")?.textContent?.trim();
  if (!kept) return new LiveSource();
  const zipped = fromBase64(JSON.parse(kept));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new SavedSource(JSON.parse(await new Response(stream).text()));
}

/** @param {string} text @returns {ArrayBuffer} */
export function fromBase64(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return bytes.buffer;
}

/** @param {Record<string, any>} query */
function words(query) {
  return new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null)).toString();
}
