/**
 * The chapters of the guided lessons: a few sentences each, and where on the page they point.
 *
 * Numbers in them are read from the trace; a chapter is there only if the model has what it speaks of.
 * @module
 */
import { share, token } from "./format.js";

/** @typedef {import("./workbench.js").Workbench} Workbench */
/** @typedef {{ title: string, has: (bench: Workbench) => boolean, selection: (bench: Workbench) => any, text: (bench: Workbench) => string[] }} Chapter */

/** @param {Workbench} bench */
const firstKind = (bench) => (["encoder", "self", "decoder", "cross"].find((kind) => kind in bench.facts.kinds) ?? "");
/** @param {Workbench} bench */
const isRecurrent = (bench) => bench.facts.taps.some((/** @type {any} */ tap) => tap.name.includes("attention.context"));
/** @param {Workbench} bench */
const hasAttention = (bench) => firstKind(bench) !== "";
/** @param {Workbench} bench */
const masked = (bench) => ["decoder", "self"].find((kind) => kind in bench.facts.kinds && bench.facts.causal);

/** @type {Chapter[]} */
export const CHAPTERS = [
  {
    title: "Attention over a recurrent encoder",
    has: isRecurrent,
    selection: (bench) => ({ view: "attention", ...bench.strongest("cross", 0) }),
    text: () => [
      "Before attention, one vector had to hold the whole source. Here the decoder looks back at every step: it compares its state with each state of the encoder, and reads a weighted mean of them.",
      "Each row is one written word; dark cells are the source words it read. On the right is how one of these weights comes about.",
    ],
  },
  {
    title: "One cell of attention",
    has: hasAttention,
    selection: (bench) => ({ view: "attention", ...bench.strongest(firstKind(bench), 0) }),
    text: (bench) => [
      `${bench.sentence()}. Why this number? The position that attends asks with its query; every other position answers with its key. Where the two point the same way, their products add up to a high score.`,
      "Follow the numbers on the right from top to bottom: products, sum, scale, softmax, value. They are the model's own, computed again from what was recorded.",
    ],
  },
  {
    title: "Why divide by √d",
    has: (bench) => hasAttention(bench) && Object.values(bench.facts.attentions).some((own) => String(own.formula?.kind).includes("dot")),
    selection: () => ({ view: "attention" }),
    text: () => [
      "A sum of d products of independent numbers of variance 1 has variance d: the wider the head, the larger its scores. Large scores push softmax to where it is flat, and nothing more is learned.",
      "So step 2 on the right multiplies by 1/√d, which brings the variance back to 1. (T5 leaves it out and starts from smaller weights instead.)",
    ],
  },
  {
    title: "Many heads",
    has: (bench) => Object.values(bench.facts.attentions).some((own) => own.n_heads > 1),
    selection: (bench) => ({ view: "attention", kind: firstKind(bench), layer: 0 }),
    text: () => [
      "One head makes one kind of comparison. The atlas on the left has them all: a row for each layer, a column for each head. Some look at the token before, some at themselves, some at the end of the sentence.",
      "Their labels are only a description, with numbers behind it: point at one. Sort them by entropy to see the sharpest first.",
    ],
  },
  {
    title: "The mask",
    has: (bench) => Boolean(masked(bench)),
    selection: (bench) => ({ view: "attention", kind: masked(bench), layer: 0, query: 1, key: Math.min(3, bench.facts.steps.length - 1) }),
    text: () => [
      "What writes must not see what comes later: in training all positions are computed at once, and the answer would stand right there. Hatched cells are masked: their score counts as −∞, so that their weight is 0.",
      "Each row still sums to 1. The badge at the top checks that for every row of every head.",
    ],
  },
  {
    title: "Cross-attention",
    has: (bench) => "cross" in bench.facts.kinds && !isRecurrent(bench),
    selection: (bench) => ({ view: "attention", ...bench.strongest("cross", bench.facts.kinds.cross.length - 1) }),
    text: () => [
      "The queries come from what writes, keys and values from what was read. This is the bridge between the two languages, or between an image and its caption.",
      "A row is labelled by the word that is written there: the decoder reads the word before it. Step through with n and p, and watch the source.",
    ],
  },
  {
    title: "Positions",
    has: hasAttention,
    selection: () => ({ view: "tokens" }),
    text: () => [
      "Attention alone does not know order: “he hit me with a pie” would be the same in any order. So each position gets a pattern of its own, or rotates queries and keys by its angle.",
      "The pictures show such patterns, and how the dot product of two positions depends on their distance. Try another kind, and another base.",
    ],
  },
  {
    title: "The residual stream and the lens",
    has: (bench) => bench.facts.norms !== null && bench.facts.steps.length > 0,
    selection: () => ({ view: "lens" }),
    text: () => [
      "Every sublayer adds to a stream of vectors, one for each position. Nothing is replaced: y = F(x) + x. So the stream can be read after each of them, as if it were the last.",
      "From top to bottom, watch a guess become the word that is written. The last row is exactly what the model says.",
    ],
  },
  {
    title: "Decoding and the beam",
    has: (bench) => bench.facts.causal && Boolean(bench.run?.generates),
    selection: () => ({ view: "attention", below: "tree" }),
    text: (bench) => [
      `One token after another is written: ${bench.facts.steps.slice(0, 3).map((/** @type {any} */ own) => `${token(own.writes)} ${share(own.probability)}`).join(", ")} … Beam search keeps several beginnings alive, and in the end takes the one whose log-probabilities add up best for its length.`,
      "The tree below shows which were kept, which were pruned, and by what number. Click one that lost: the model goes on from there.",
    ],
  },
  {
    title: "Attention is not cause",
    has: (bench) => hasAttention(bench) && bench.source.isLive,
    selection: () => ({ view: "ablate" }),
    text: () => [
      "A map shows where information could flow, not whether it mattered. To know that, take it away: cut a head, and see what becomes of the probabilities of what was written.",
      "Often one head can go and nothing happens, since another does the same job. The grid below cuts every head in turn on sentences that the model has never seen.",
    ],
  },
];
