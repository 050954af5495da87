// Tabs, operated by arrow keys as well; each tab is prepared when it is first shown.

import { prepare as analogies } from "./analogies.js";
import { prepare as laws } from "./laws.js";
import { prepare as multisets } from "./multisets.js";

const PREPARE = { laws, analogies, multisets };
const tabs = [...document.querySelectorAll('[role="tab"]')];
const prepared = new Set();

function select(tab, { focus = false } = {}) {
  for (const one of tabs) {
    const isChosen = one === tab;
    one.setAttribute("aria-selected", String(isChosen));
    one.tabIndex = isChosen ? 0 : -1;
    document.getElementById(one.getAttribute("aria-controls")).hidden = !isChosen;
  }
  if (focus) tab.focus();
  const name = tab.id.replace("tab-", "");
  if (!prepared.has(name)) {
    prepared.add(name);
    PREPARE[name]();
  }
  if (location.hash.slice(1) !== name) history.replaceState(null, "", `#${name}`);
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      select(tabs.at(moves[event.key] % tabs.length), { focus: true });
    }
  });
}
const wanted = () => tabs.find((tab) => tab.id === `tab-${location.hash.slice(1)}`);
addEventListener("hashchange", () => wanted() && select(wanted()));
select(wanted() ?? tabs[0]);
