// Small helpers: elements by their parts, and writes that happen only when something is different.

const $ = (id) => document.getElementById(id);

/** make("li", { class: "x", "aria-label": "y" }, "text", child) */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function icon(state) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${state}`);
  svg.append(use);
  return svg;
}

/** Text, if it is another one. */
function say(element, text) {
  if (element.said !== text) {
    element.said = text;
    element.textContent = text;
  }
}

/** The state of a thing: its colour, its sign and what is read out. */
function show(element, state, label) {
  if (element.dataset.state !== state) {
    element.dataset.state = state;
    element.querySelector("use")?.setAttribute("href", `#i-${state}`);
  }
  if (label !== undefined && element.labelled !== label) {
    element.labelled = label;
    element.setAttribute("aria-label", label);
  }
}

/** Children of a list by key: those that are there stay, in the order given. */
function keyed(parent, items, keyOf, create) {
  const known = parent.known ?? (parent.known = new Map());
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    wanted.add(key);
    let child = known.get(key);
    if (!child) {
      child = create(item);
      known.set(key, child);
    }
    if (child === place) place = place.nextSibling;
    else parent.insertBefore(child, place);
  }
  for (const [key, child] of known) {
    if (!wanted.has(key)) {
      child.remove();
      known.delete(key);
    }
  }
}

const WORDS = {
  waiting: "not yet", open: "under way", done: "done", failed: "failed", skipped: "nothing to do", interrupted: "interrupted",
  learner: "learner", voter: "votes", gone: "gone",
};
