/**
 * Elements from plain calls: `h("button", { class: "chip", onclick: go }, "Hund")`.
 *
 * Text goes in as text nodes, never as HTML: a token may be `<img onerror=…>`.
 * @module
 */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false | any[]} Child  nested lists are flattened */

/**
 * An HTML element with attributes, listeners (`on…`), properties (`.value`) and children.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  return dress(document.createElement(tag), props, children);
}

/**
 * The same of SVG.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {any}
 */
export function s(tag, props = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), props, children);
}

/**
 * @param {Element} element
 * @param {Record<string, any>} props
 * @param {Child[]} children
 */
function dress(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith(".")) Reflect.set(element, name.slice(1), value);
    else if (name === "style") for (const [key, own] of Object.entries(value)) /** @type {any} */ (element).style.setProperty(key, own);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/**
 * @param {Node} parent
 * @param {Child[]} children
 */
function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Put other children in the place of those that an element has.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * The element of an id, which stands in index.html.
 * @param {string} id
 * @returns {any}
 */
export function find(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}
