// Tab "Learn a law": a table and what its columns are; the law, its evidence, its results, its code.

import { MOST_BYTES, Runner, run, tooLarge } from "./api.js";
import { byId, failure, figureOf, make, parsed, tableOf } from "./dom.js";

const LONGEST_TYPED = 200_000; // characters; a longer table is kept, but not put into the text field
const SHOWN_LINES = 12;
const TYPING = 350; // milliseconds without a key after which a table is inspected
const MAIN_TABLES = /^(candidate|what adds up|interval)/i; // the others are folded away
const ROLES = { set: "set", value: "element", target: "result", none: "not used" };

let held = null; // a table that is too long for the text field, and its name
let tableName = "examples";
let presets = [];
let inspected = 0; // the number of the last inspection: answers to earlier ones are late
let isStale = false; // whether the table has changed since it was inspected
let timer;

export async function prepare() {
  const runner = new Runner(byId("law-run"), byId("law-status"), byId("law-cancel"));
  byId("law-form").addEventListener("submit", (event) => {
    event.preventDefault();
    learn(runner);
  });
  const text = byId("law-text");
  text.addEventListener("input", () => {
    byId("law-preset").value = "";
    tableName = "examples";
    isStale = true;
    clearTimeout(timer);
    timer = setTimeout(inspect, TYPING);
  });
  text.addEventListener("paste", (event) => {
    const pasted = event.clipboardData.getData("text");
    if (pasted.length <= LONGEST_TYPED) return;
    event.preventDefault();
    hold(pasted, "Pasted table", "examples");
  });
  byId("law-file").addEventListener("change", readFile);
  byId("law-held").querySelector("button").addEventListener("click", () => {
    release("");
    byId("law-columns").hidden = true;
    text.focus();
  });
  byId("law-preset").addEventListener("change", choosePreset);
  try {
    ({ presets } = await run("presets", {}));
  } catch (error) {
    byId("law-status").textContent = error.message;
    return;
  }
  byId("law-preset").append(...presets.map((one) => make("option", { value: one.name }, one.title)));
  if (!current()) {
    byId("law-preset").value = presets[0].name;
    choosePreset();
  }
}

const current = () => (held === null ? byId("law-text").value : held);

function choosePreset() {
  const preset = presets.find((one) => one.name === byId("law-preset").value);
  byId("law-about").textContent = preset?.about ?? "Sets of numbers, each with the result of combining them.";
  if (!preset) return;
  release(preset.text);
  byId("law-file").value = "";
  tableName = "examples";
  inspect();
}

function hold(text, title, name) {
  held = text;
  tableName = name;
  byId("law-preset").value = "";
  const field = byId("law-text");
  field.value = `${text.slice(0, 20_000).split("\n", SHOWN_LINES).join("\n")}\n…`;
  field.readOnly = true;
  const rows = text.trimEnd().split("\n").length - 1; // without the header
  byId("law-held").hidden = false;
  byId("law-held").querySelector("span").textContent =
    `${title}: about ${rows.toLocaleString("en")} rows, of which the first are shown.`;
  inspect();
}

function release(text) {
  held = null;
  byId("law-text").readOnly = false;
  byId("law-text").value = text;
  byId("law-held").hidden = true;
}

async function readFile() {
  const file = byId("law-file").files[0];
  if (!file) return;
  if (file.size > MOST_BYTES) {
    byId("law-file").value = "";
    show(failure(tooLarge(file.size)));
    return;
  }
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    byId("law-file").value = "";
    show(failure("This file is not text in UTF-8. Is it a binary file? Save the table as CSV."));
    return;
  }
  const name = file.name.replace(/\.[^.]*$/, "") || "examples";
  if (text.length > LONGEST_TYPED) {
    hold(text, file.name, name);
  } else {
    release(text);
    byId("law-preset").value = "";
    tableName = name;
    inspect();
  }
}

async function inspect() {
  clearTimeout(timer);
  isStale = true;
  const number = ++inspected;
  const columns = byId("law-columns");
  if (!current().trim()) {
    columns.hidden = true;
    return;
  }
  try {
    const found = await run("inspect", { text: current() });
    if (number !== inspected) return;
    showColumns(found);
    isStale = false;
    byId("law-status").textContent = "";
    columns.hidden = false;
  } catch (error) {
    if (number !== inspected) return;
    columns.hidden = true;
    byId("law-status").textContent = error.message;
  }
}

function showColumns(found) {
  const role = (name) => {
    if (name === found.set) return "set";
    if (found.values.includes(name)) return "value";
    return found.targets.includes(name) ? "target" : "none";
  };
  const picker = (name) => {
    const options = Object.entries(ROLES).map(([value, text]) => {
      const isPossible = value === "set" || value === "none" || found.numbers.includes(name);
      return make("option", { value, selected: value === role(name), disabled: !isPossible }, text);
    });
    return make("select", { "aria-label": `Column ${name} is`, "data-column": name }, ...options);
  };
  const head = found.columns.map((name) => make("th", { scope: "col", title: name }, name, make("br"), picker(name)));
  const rows = found.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { title: cell }, cell))));
  const table = byId("law-columns").querySelector("table");
  table.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  const count = `${found.count.toLocaleString("en")} rows`;
  const added = found.added_header ? " The first line has numbers, so columns were named." : "";
  byId("law-count").textContent = `${count}. With a column of sets, each row is an element; without, each row is a set.${added}`;
}

const columnsOf = (role) =>
  [...byId("law-columns").querySelectorAll("select")].filter((one) => one.value === role).map((one) => one.dataset.column);

async function learn(runner) {
  if (!current().trim()) {
    byId("law-status").textContent = "Paste a table first, or choose one.";
    byId("law-text").focus();
    return;
  }
  if (isStale) await inspect();
  if (byId("law-columns").hidden) {
    show(failure(byId("law-status").textContent));
    return;
  }
  const sets = columnsOf("set");
  if (sets.length > 1) {
    byId("law-status").textContent = "Choose one column of sets at most.";
    return;
  }
  const given = {
    text: current(), set: sets[0] ?? "", values: columnsOf("value"), targets: columnsOf("target"),
    skip_missing: byId("law-skip").checked, table: tableName,
  };
  try {
    const found = await runner.run("learn", given);
    if (found === undefined) return;
    show(...(found.refusal === undefined ? lawView(found) : [refusalView(found)]));
    byId("law-status").textContent = found.refusal === undefined
      ? `Law found: ${found.laws.map((law) => law.formula).join("; ")}` : "No law found.";
  } catch (error) {
    show(failure(error.message));
  }
}

function show(...parts) {
  byId("law-result").replaceChildren(...parts);
}

function refusalView(found) {
  const details = found.details.length
    ? make("details", {}, make("summary", {}, "Evidence"), make("ul", {}, ...found.details.map((line) => make("li", {}, line))))
    : null;
  return make("div", { class: "message refusal", role: "alert" },
    make("h2", {}, "No law found"), make("p", {}, found.refusal), details);
}

function lawView(found) {
  return [
    ...found.laws.map((law) => formulaCard(law, found.laws.length > 1)),
    tryCard(found),
    codeCard(found),
    ...found.laws.map((law) => evidenceCard(law, found.laws.length > 1)),
  ];
}

function formulaCard(law, isOneOfMany) {
  const math = parsed(law.mathml, "math");
  math.setAttribute("aria-label", law.formula);
  math.setAttribute("role", "math");
  return make("article", { class: "card law" },
    make("h2", {}, isOneOfMany ? `The law of ${law.heading}` : "The law"),
    make("div", { class: "formula", tabindex: "0", role: "region", "aria-label": "Formula" }, math),
    make("p", { class: "name" }, law.title),
    make("p", { class: "plain-formula" }, law.formula),
    make("dl", {}, ...law.facts.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
}

function tryCard(found) {
  const isVector = found.names.length > 1;
  const hint = isVector ? `One element per line: ${found.names.join(", ")}.` : "Any number of elements, separated by commas.";
  const field = isVector
    ? make("textarea", { id: "try-elements", rows: "4", spellcheck: "false", "aria-describedby": "try-hint" })
    : make("input", { id: "try-elements", type: "text", spellcheck: "false", autocomplete: "off", "aria-describedby": "try-hint" });
  field.value = found.try;
  const button = make("button", { class: "plain", id: "try-run" }, "Combine");
  const outcome = make("div", { class: "outcome", id: "try-outcome", "aria-live": "polite" });
  const runner = new Runner(button, make("p"));
  const submit = async (event) => {
    event?.preventDefault();
    try {
      const answer = await runner.run("predict", { id: found.id, elements: field.value });
      if (answer) outcome.replaceChildren(...answer.results.map((one) => outcomeView(one, answer.results.length > 1)));
    } catch (error) {
      outcome.replaceChildren(make("div", {}, error.message));
    }
  };
  const form = make("form", { class: "card", id: "try-form", onsubmit: submit },
    make("h2", {}, "Try it on numbers"),
    make("div", { class: "field" },
      make("label", { for: "try-elements" }, "Elements"),
      make("div", { class: "try" }, field, button),
      make("p", { class: "hint", id: "try-hint" }, hint)),
    outcome);
  submit();
  return form;
}

function outcomeView(one, isNamed) {
  if (one.value === null) return make("div", {}, `${one.name}: the law has no result for these elements.`);
  const tag = one.extrapolated
    ? make("span", { class: "tag", title: "Elements or result are outside the range of the examples." }, "extrapolated") : null;
  const ends = one.low === one.high ? "" : `, from ${one.low} to ${one.high}`;
  const interval = one.margin === null ? " " : ` ± ${one.margin} (95 % interval${ends}) `;
  return make("div", {}, isNamed ? `${one.name} = ` : "", make("strong", {}, one.value), interval, tag);
}

function codeCard(found) {
  const block = make("pre", { id: "code-text", tabindex: "0", "aria-label": "Code of the law", role: "region" });
  const language = make("select", { id: "code-language" },
    ...Object.entries({ sql: "SQL", python: "Python", latex: "LaTeX" }).map(([value, text]) => make("option", { value }, text)));
  const dialect = make("select", { id: "code-dialect" },
    ...Object.keys(found.code.sql).map((name) => make("option", { value: name }, name)));
  const dialectLabel = make("label", {}, "Dialect", dialect);
  const hint = make("p", { class: "note" });
  const copy = make("button", { type: "button", class: "plain", id: "code-copy" }, "Copy");
  const said = make("span", { role: "status", class: "note", id: "code-said" });
  const update = () => {
    const isSql = language.value === "sql";
    dialectLabel.hidden = !isSql;
    block.textContent = isSql ? found.code.sql[dialect.value] : found.code[language.value];
    hint.textContent = isSql && !found.is_long
      ? "Aggregates a table with a row per element: the set in a column set, the number in a column value." : "";
    said.textContent = "";
  };
  language.addEventListener("change", update);
  dialect.addEventListener("change", update);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(block);
      said.textContent = "Press Ctrl-C to copy the selected text.";
    }
  });
  update();
  return make("section", { class: "card", "aria-labelledby": "code-heading" },
    make("h2", { id: "code-heading" }, "Run it elsewhere"),
    make("div", { class: "pickers" }, make("label", {}, "Language", language), dialectLabel, said, copy),
    block, hint);
}

function evidenceCard(law, isOneOfMany) {
  const isMain = (table) => MAIN_TABLES.test(table.title);
  const others = law.tables.filter((table) => !isMain(table)).map(tableOf);
  const more = others.length
    ? make("details", {}, make("summary", {}, "More evidence"), make("div", { class: "grid" }, ...others)) : null;
  return make("section", { class: "card evidence" },
    make("h2", {}, isOneOfMany ? `Evidence for ${law.heading}` : "Evidence"),
    make("div", { class: "grid" }, ...law.charts.map(figureOf), ...law.tables.filter(isMain).map(tableOf)), more);
}
