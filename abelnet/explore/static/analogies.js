// Tab "Analogies": words completed from example pairs, by two models.

import { Runner } from "./api.js";
import { byId, failure, figureOf, make, tableOf } from "./dom.js";

const PRESETS = {
  "Countries and capitals": [["france:paris", "italy:rome", "japan:tokyo"], "germany spain"],
  "Man and woman": [["man:woman"], "king"],
  "Countries and currencies": [["japan:yen", "usa:dollar", "russia:ruble"], "sweden india"],
  "Comparatives": [["big:bigger", "fast:faster", "old:older"], "strong cheap"],
  "Past tense": [["walking:walked", "going:went", "taking:took"], "running writing"],
};

export function prepare() {
  const preset = byId("word-preset");
  preset.append(...Object.keys(PRESETS).map((name) => make("option", { value: name }, name)), make("option", { value: "" }, "words of your own"));
  const fill = () => {
    if (!preset.value) return;
    const [pairs, words] = PRESETS[preset.value];
    byId("word-pairs").value = pairs.join("\n");
    byId("word-words").value = words;
  };
  preset.addEventListener("change", fill);
  for (const id of ["word-pairs", "word-words"]) byId(id).addEventListener("input", () => { preset.value = ""; });
  fill();
  const runner = new Runner(byId("word-run"), byId("word-status"));
  byId("word-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const pairs = byId("word-pairs").value.split("\n").map((line) => line.trim()).filter(Boolean);
    const words = byId("word-words").value.split(/[\s,;]+/).filter(Boolean);
    try {
      const found = await runner.run("analogies", { pairs, words, method: byId("word-method").value });
      if (found === undefined) return;
      byId("word-result").replaceChildren(...found.words.map(wordCard));
      const best = found.words.map((one) => `${one.word}: ${one.tables[1].rows[0][2].text}`).join("; ");
      byId("word-status").textContent = [`Answers of AGN: ${best}`, ...found.notes].join(". ");
    } catch (error) {
      byId("word-result").replaceChildren(failure(error.message));
    }
  });
}

function wordCard(one) {
  return make("article", { class: "card analogy" },
    make("h2", {}, `${one.word} : ?`),
    make("div", { class: "grid" },
      ...one.tables.map(tableOf),
      ...one.pictures.map((view) => {
        const figure = figureOf(view);
        figure.prepend(make("h3", {}, view.title === "WV" ? "WV: word vectors" : "AGN: learned coordinates φ"));
        return figure;
      })),
    make("p", { class: "note" }, `Both pictures show the two main directions. Arrows lead from the first to the second word `
      + `of each example, the dashed one from ${one.word} to its best answer; a cross marks the place that is predicted, `
      + "and small dots are its neighbors."));
}
