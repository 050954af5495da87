// Tab "Multisets": errors of models by size, with a slider.

import { Runner } from "./api.js";
import { byId, failure, figureOf, make, tableOf } from "./dom.js";

const [LEAST, MOST] = [2, 1000];
let seed = 0;
let timer;

const sizeOf = () => {
  const slider = byId("set-size");
  return Math.round(LEAST * (MOST / LEAST) ** (slider.value / slider.max));
};

export function prepare() {
  const runner = new Runner(byId("set-draw"), byId("set-status"));
  let isLate = false; // whether something has changed while the server was busy
  const update = async () => {
    isLate = runner.isBusy;
    if (isLate) return;
    try {
      const found = await runner.run("multisets", { operation: byId("set-operation").value, size: sizeOf(), seed });
      if (found !== undefined) show(found);
    } catch (error) {
      byId("set-result").replaceChildren(failure(error.message));
    }
    if (isLate) update();
  };
  const label = () => {
    byId("set-shown").textContent = sizeOf();
    byId("set-size").setAttribute("aria-valuetext", `${sizeOf()} elements`);
  };
  byId("set-size").addEventListener("input", () => {
    label();
    clearTimeout(timer);
    timer = setTimeout(update, 120);
  });
  byId("set-operation").addEventListener("change", update);
  byId("set-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (runner.isBusy) return;
    seed += 1;
    update();
  });
  label();
  update();
}

function show(found) {
  byId("set-result").replaceChildren(
    make("article", { class: "card" }, make("h2", {}, "How far each model can be trusted"), figureOf(found.chart),
      make("p", { class: "note" }, "Relative error: the median error over the median size of the results, of 100 multisets of each size. A model that always answers 0 has an error of 1; rounding gives about 10⁻¹⁶.")),
    make("article", { class: "card" }, make("h2", {}, "One multiset"),
      make("p", { class: "plain-formula" }, `{${found.elements}}`), tableOf(found.table)));
}
