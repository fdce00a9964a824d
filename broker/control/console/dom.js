// A virtual DOM: compares a description of the page with the current nodes, so that unchanged nodes keep focus, selection
// and input. Data becomes text nodes and attribute values only; nothing here parses markup.

const KEY = Symbol("key");
const PROPS = Symbol("props");
const SHOWN = Symbol("shown");
const SVG = "http://www.w3.org/2000/svg";

/** An element: tag, properties (`key`, `on...` handlers, attributes; `value` and `open` are initial values only), children. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: flat(children) };
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Update the children of an element to match a description. */
export function patch(parent, children) {
  const keyed = new Map();
  for (const node of parent.childNodes) if (node[KEY] !== undefined) keyed.set(node[KEY], node);
  let place = parent.firstChild;
  for (const child of flat([children])) {
    let node = place;
    if (!node || !suits(node, child)) {
      const kept = isText(child) ? undefined : keyed.get(child.props.key);
      node = kept && suits(kept, child) ? kept : create(child, parent);
      parent.insertBefore(node, place);
    }
    update(node, child);
    place = node.nextSibling;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

// Properties that the user changes after creation.
const begins = (node, name) => name === "open" || (name === "value" && node.localName !== "option");

const isText = (child) => typeof child !== "object";

function suits(node, child) {
  if (isText(child)) return node.nodeType === Node.TEXT_NODE;
  return node.nodeType === Node.ELEMENT_NODE && node.localName === child.tag && node[KEY] === child.props.key;
}

function create(child, parent) {
  if (isText(child)) return document.createTextNode("");
  const drawn = child.tag === "svg" || parent.namespaceURI === SVG;
  const node = drawn ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  node[KEY] = child.props.key;
  node[PROPS] = {};
  patch(node, child.children);
  for (const first of ["value", "open"]) if (begins(node, first) && child.props[first] !== undefined) node[first] = child.props[first];
  return node;
}

function update(node, child) {
  if (isText(child)) {
    if (node.data !== String(child)) node.data = String(child);
    return;
  }
  if (node[SHOWN] === child) return; // same description as before: large parts are built once
  node[SHOWN] = child;
  const before = node[PROPS] ?? {};
  for (const name of Object.keys(before)) if (!(name in child.props)) set(node, name, undefined);
  for (const [name, value] of Object.entries(child.props)) if (before[name] !== value) set(node, name, value);
  node[PROPS] = child.props;
  patch(node, child.children);
}

function set(node, name, value) {
  if (name === "key" || begins(node, name)) return;
  if (name.startsWith("on")) node[name] = value ?? null;
  else if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}
