// The tabs, the theme and the key.
import { call, el, hasKey, setStatus, useKey } from "./heed.js";
import { makeTranslate } from "./translate.js";
import { makeLens } from "./lens.js";
import { makeGenerate } from "./generate.js";
import { makeFill } from "./fill.js";
import { makeLabels } from "./labels.js";
import { makeParse } from "./parse.js";
import { makeTrain } from "./train.js";
import { makeModel } from "./model.js";

const tabs = [
  { id: "translate", name: "Translate", make: makeTranslate },
  { id: "lens", name: "Lens", make: makeLens },
  { id: "generate", name: "Generate", make: makeGenerate },
  { id: "fill", name: "Fill", make: makeFill },
  { id: "labels", name: "Classify & tag", make: makeLabels },
  { id: "parse", name: "Parse", make: makeParse },
  { id: "train", name: "Train", make: makeTrain },
  { id: "model", name: "Model", make: makeModel },
];

// Text typed in one tab is shown in the others.
const shared = { text: "", target: "" };
let models = [];

function show(id, moveFocus = false) {
  const chosen = tabs.find((tab) => tab.id === id) ?? tabs[0];
  for (const tab of tabs) {
    const isChosen = tab === chosen;
    tab.button.setAttribute("aria-selected", String(isChosen));
    tab.button.tabIndex = isChosen ? 0 : -1;
    tab.panel.hidden = !isChosen;
  }
  if (!chosen.made) {
    chosen.made = true;
    chosen.shown = chosen.make(chosen.panel, models, shared);
  }
  chosen.shown?.();
  setStatus("");
  chosen.button.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (moveFocus) chosen.button.focus();
  if (location.hash !== `#${chosen.id}`) history.replaceState(null, "", `#${chosen.id}`);
}

function buildTabs() {
  const list = document.getElementById("tabs");
  const panels = document.getElementById("panels");
  list.replaceChildren();
  panels.replaceChildren();
  tabs.forEach((tab, index) => {
    tab.made = false;
    tab.button = el(
      "button",
      {
        role: "tab",
        type: "button",
        id: `tab-${tab.id}`,
        "aria-controls": `panel-${tab.id}`,
        onclick: () => show(tab.id),
      },
      tab.name,
    );
    tab.button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) show(tabs[(index + step + tabs.length) % tabs.length].id, true);
      if (event.key === "Home") show(tabs[0].id, true);
      if (event.key === "End") show(tabs.at(-1).id, true);
    });
    tab.panel = el("section", {
      role: "tabpanel",
      id: `panel-${tab.id}`,
      "aria-labelledby": `tab-${tab.id}`,
      hidden: true,
    });
    list.append(tab.button);
    panels.append(tab.panel);
  });
}

async function begin() {
  const form = document.getElementById("key");
  try {
    models = (await call("/v1/models")).data;
    form.hidden = true;
    setStatus("");
  } catch (error) {
    form.hidden = error.status !== 401;
    if (error.status !== 401) setStatus(error.message, true);
    else if (hasKey()) setStatus("Invalid API key.", true);
    return;
  }
  buildTabs();
  // Start with the first tab that a loaded model supports.
  const fits = { translate: "translate", generate: "generate", fill: "fill", labels: "classify", parse: "parse" };
  const first = tabs.find((tab) => models.some((model) => model.abilities.includes(fits[tab.id])));
  show(named(location.hash) ?? (first ?? tabs.find((tab) => tab.id === (models.length ? "lens" : "train"))).id);
}

document.getElementById("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(new FormData(event.target).get("key"));
  begin();
});

const theme = document.getElementById("theme");
function setTheme(value) {
  if (value) document.documentElement.dataset.theme = value;
  const isDark = value ? value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme.textContent = isDark ? "☀ Light" : "☾ Dark";
  theme.onclick = () => {
    const next = isDark ? "light" : "dark";
    localStorage.setItem("heed-theme", next);
    setTheme(next);
    dispatchEvent(new Event("heed-theme"));
  };
}
setTheme(localStorage.getItem("heed-theme"));
// Ignore hashes that are no tab, such as the skip link's.
const named = (hash) => tabs.find((tab) => `#${tab.id}` === hash)?.id;
addEventListener("hashchange", () => tabs[0].panel && named(location.hash) && show(named(location.hash)));
begin();
