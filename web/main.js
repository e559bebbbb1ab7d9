// The tabs, the theme and the key.
import { call, el, generates, hasKey, setStatus, useKey, withAbility } from "./heed.js";
import { makeTranslate } from "./translate.js";
import { makeLens } from "./lens.js";
import { makeGenerate } from "./generate.js";
import { makeFill } from "./fill.js";
import { makeLabels } from "./labels.js";
import { makeParse } from "./parse.js";
import { makeTrain } from "./train.js";
import { makeModel } from "./model.js";

// Each tab is shown only if a loaded model, or the folder of --runs, has something for it.
const allTabs = [
  { id: "translate", name: "Translate", make: makeTranslate, fits: (model) => can(model, "translate") },
  { id: "lens", name: "Lens", make: makeLens, fits: (model) => can(model, "attend") && can(model, "tokenize") },
  {
    id: "generate",
    name: "Generate",
    make: makeGenerate,
    fits: (model) => generates(model) && can(model, "tokenize") && model.family === "decoder_only",
  },
  { id: "fill", name: "Fill", make: makeFill, fits: (model) => can(model, "fill") },
  {
    id: "labels",
    name: "Classify & tag",
    make: makeLabels,
    fits: (model) => can(model, "classify") || can(model, "tag"),
  },
  { id: "parse", name: "Parse", make: makeParse, fits: (model) => can(model, "parse") },
  { id: "train", name: "Train", make: makeTrain },
  { id: "model", name: "Model", make: makeModel, fits: () => true },
];
const can = (model, ability) => withAbility([model], ability).length > 0;

// Text typed in one tab is shown in the others.
const shared = { text: "", target: "" };
let models = [],
  tabs = [];

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
        "data-name": tab.name,
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
  markMore();
}

// On a narrow screen an arrow says that there are more tabs on that side.
const tabList = document.getElementById("tabs");
const arrows = { "tabs-before": -1, "tabs-after": 1 };
function markMore() {
  const hidden = tabList.scrollWidth - tabList.clientWidth;
  document.getElementById("tabs-before").hidden = tabList.scrollLeft < 2;
  document.getElementById("tabs-after").hidden = tabList.scrollLeft > hidden - 2;
}
for (const [id, side] of Object.entries(arrows))
  document.getElementById(id).addEventListener("click", () => {
    tabList.scrollBy({ left: side * 0.7 * tabList.clientWidth, behavior: "smooth" });
  });
tabList.addEventListener("scroll", markMore);
addEventListener("resize", markMore);

async function begin() {
  const form = document.getElementById("key");
  let runs;
  try {
    [models, runs] = (await Promise.all([call("/v1/models"), call("/v1/heed/runs")])).map((reply, i) =>
      i ? reply : reply.data,
    );
    form.hidden = true;
    setStatus("");
  } catch (error) {
    form.hidden = error.status !== 401;
    if (error.status !== 401) setStatus(error.message, true);
    else if (hasKey()) setStatus("Invalid API key.", true);
    return;
  }
  tabs = allTabs.filter((tab) => (tab.fits ? models.some(tab.fits) : runs.is_enabled));
  if (!tabs.length) return document.getElementById("panels").replaceChildren(welcome());
  buildTabs();
  show(named(location.hash) ?? tabs[0].id);
}

function welcome() {
  return el(
    "div",
    { class: "note", id: "welcome" },
    el("h2", {}, "No model is loaded"),
    el("p", {}, "Start the server with a model folder, for instance one of those that come with Heed:"),
    el("pre", {}, "heed serve --model models/en-de --model models/shakespeare"),
    el("p", {}, "To follow trainings, give the folder that contains them: heed serve --runs DIR"),
  );
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
addEventListener("hashchange", () => named(location.hash) && show(named(location.hash)));
begin();
