// Elements of the page. Text is always set as text: nothing from a table or a person is parsed as HTML.

const LONG = 30; // characters of a cell that is not wrapped into a narrow column

export const byId = (id) => document.getElementById(id);

/** Returns an element with attributes and children; strings become text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const NAMESPACES = { svg: "http://www.w3.org/2000/svg", math: "http://www.w3.org/1998/Math/MathML" };

/** Returns a drawing or a formula that the server has written; anything else is refused. */
export function parsed(text, kind) {
  const root = new DOMParser().parseFromString(text, "application/xml").documentElement;
  if (root.localName !== kind || root.namespaceURI !== NAMESPACES[kind]) throw new Error(`expected ${kind}`);
  return document.importNode(root, true);
}

/** Returns a region that scrolls sideways, also by keyboard. */
export function scrolling(name, ...children) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, ...children);
}

export function tableOf(view) {
  const side = (column) => (column.align === "right" ? "right" : null);
  const head = make("tr", {}, ...view.columns.map((one) => make("th", { scope: "col", class: side(one) }, one.heading)));
  const rows = view.rows.map((row) =>
    make("tr", {}, ...row.map((cell, i) => {
      const long = cell.text.length > LONG && !side(view.columns[i]) ? "long" : null;
      const classes = [side(view.columns[i]), cell.winner ? "winner" : null, long].filter(Boolean).join(" ");
      return make("td", { class: classes || null }, cell.text);
    })));
  const table = make("table", { "aria-label": view.title }, make("thead", {}, head), make("tbody", {}, ...rows));
  const notes = view.notes.map((note) => make("p", { class: "note" }, note));
  return make("div", {}, make("h3", {}, view.title), scrolling(view.title, table), ...notes);
}

export function figureOf(view) {
  return make("figure", {}, parsed(view.svg, "svg"));
}

/** Shows an error in place of a result. */
export function failure(message) {
  return make("div", { class: "message", role: "alert" }, make("h2", {}, "That did not work"), make("p", {}, message));
}
