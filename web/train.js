// Train: the curves of a training run, live or finished, and the table of a sweep.
import { bars, call, el, latestOnly, pointAt, replaceChildrenKeepingFocus, setStatus } from "./heed.js";
import { lineChart, shortNumber } from "./chart.js";

const pollMs = 3000;
const titles = {
  bleu: "BLEU",
  chrf: "chrF",
  ter: "TER",
  accuracy: "Accuracy",
  perplexity: "Perplexity",
  f1: "F1",
  brackets: "Brackets F1",
  bits_per_character: "Bits per character",
};
const sampleNames = { wanted: "reference", expected: "reference", predicted: "output" };
const lowerIsBetter = new Set(["loss", "perplexity", "ter", "bits_per_character"]);
const title = (name) => titles[name] ?? name.replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase());

export function makeTrain(panel) {
  panel.append(
    el("h2", {}, "Train"),
    el("p", { class: "soft" }, `Curves of training runs, live or finished. ${pointAt()} a chart to see its values.`),
  );
  const select = el("select", { id: "train-run", onchange: () => open(select.value) });
  const chooser = el("div", { class: "bar", hidden: true }, el("label", {}, "Run", select));
  const body = el("div", { class: "stack", id: "train-body" });
  panel.append(el("div", { class: "stack" }, chooser, body));

  let name = "",
    version = "",
    timer,
    chosenSample = null,
    isTableOpen = false,
    tellState = () => {};
  setInterval(() => panel.hidden || tellState(), 1000);

  const list = latestOnly(async (signal) => {
    const runs = (await call("/v1/heed/runs", undefined, signal)).data;
    chooser.hidden = !runs.length;
    if (!runs.length) {
      clearTimeout(timer);
      timer = setTimeout(() => panel.hidden || list(), pollMs);
      return body.replaceChildren(
        el(
          "div",
          { class: "note" },
          el("h3", {}, "No training yet"),
          el("p", {}, "This folder has no runs. Start one whose --out is in it; its curves appear here at once:"),
          el("pre", {}, "heed train RECIPE.toml --out RUNS/NAME"),
        ),
      );
    }
    select.replaceChildren(
      ...runs.map((run) =>
        el(
          "option",
          { value: run.name },
          `${run.name === "." ? "this folder" : run.name}${run.kind === "sweep" ? " (sweep)" : ""}`,
        ),
      ),
    );
    if (runs.some((run) => run.name === name)) select.value = name;
    open(select.value);
  });

  function open(run) {
    if (run !== name) {
      version = "";
      chosenSample = null;
    }
    name = select.value = run;
    refresh();
  }

  const refresh = latestOnly(async (signal) => {
    clearTimeout(timer);
    const run = await call("/v1/heed/run", version ? { name, version } : { name }, signal);
    if (!run.unchanged) {
      version = run.version;
      tellState = () => {};
      replaceChildrenKeepingFocus(
        body,
        "input, summary, button",
        ...(run.kind === "sweep" ? sweep(run.table) : training(run)),
      );
      body.dataset.finished = String(Boolean(run.is_finished));
    }
    // Poll while the tab is visible and the run is not finished.
    if (body.dataset.finished !== "true")
      timer = setTimeout(() => (panel.hidden || document.hidden ? wait() : refresh()), pollMs);
    setStatus("");
  });
  function wait() {
    timer = setTimeout(() => (panel.hidden || document.hidden ? wait() : refresh()), pollMs);
  }

  function training(run) {
    const of = (kind) => run.records.filter((record) => record.kind === kind);
    const trained = of("train"),
      validated = of("validate"),
      start = of("start").at(-1) ?? {};
    const points = (records, key) => records.filter((r) => Number.isFinite(r[key])).map((r) => [r.step, r[key]]);
    const last = trained.at(-1) ?? {},
      step = run.records.at(-1)?.step ?? 0;
    const fact = (key, value) => el("div", {}, el("dt", {}, key), el("dd", {}, value));
    const facts = [
      fact(
        "Step",
        start.steps ? `${step.toLocaleString("en")} of ${start.steps.toLocaleString("en")}` : step.toLocaleString("en"),
      ),
    ];
    if (start.parameters) facts.push(fact("Parameters", shortNumber(start.parameters)));
    if (last.loss !== undefined) facts.push(fact("Loss", last.loss.toFixed(3)));
    const metrics = [...new Set(validated.flatMap((r) => Object.keys(r)))].filter(
      (k) => !["kind", "step", "samples", "loss", "text"].includes(k),
    );
    for (const key of ["bleu", "accuracy", "f1", "perplexity"].filter((k) => metrics.includes(k)).slice(0, 2))
      facts.push(
        fact(
          `${title(key)}, best`,
          shortNumber(
            best(
              validated.map((r) => r[key]),
              key,
            ),
          ),
        ),
      );
    if (last.tokens_per_second) facts.push(fact("Tokens/s", shortNumber(last.tokens_per_second)));
    if (last.seconds) facts.push(fact("Time", duration(last.seconds)));
    const charts = [
      lineIf("Loss", [
        ["training", trained, "loss"],
        ["validation", validated, "loss"],
      ]),
    ];
    for (const key of metrics.sort((a, b) => (b === "bleu") - (a === "bleu")))
      charts.push(lineIf(title(key), [["validation", validated, key]]));
    for (const key of ["learning_rate", "tokens_per_second", "gradient_norm"])
      charts.push(lineIf(title(key), [["training", trained, key]]));
    function lineIf(name, series) {
      const own = series.map(([label, records, key]) => ({ name: label, points: points(records, key) }));
      return own.some((s) => s.points.length) ? lineChart(name, own) : null;
    }
    const parts = [
      state(run, step, start.steps),
      el("dl", { class: "facts", id: "train-facts" }, facts),
      el("div", { class: "charts", id: "train-charts" }, charts),
    ];
    if (validated.some((r) => r.samples?.length)) parts.push(samples(validated.filter((r) => r.samples?.length)));
    if (validated.length) parts.push(values(validated, ["loss", ...metrics]));
    return parts;
  }

  function state(run, step, steps) {
    const line = el("p", { class: "soft", id: "train-state" }, "Finished.");
    if (!run.is_finished) {
      tellState = () => (line.textContent = `Last update ${ago(run.updated_at)}.`);
      tellState();
    }
    if (!steps || run.is_finished) return line;
    return el("div", {}, line, el("progress", { max: steps, value: step, "aria-label": `Step ${step} of ${steps}` }));
  }

  // Sample outputs of each validation.
  function samples(validated) {
    const at = Math.max(
      0,
      chosenSample === null ? validated.length - 1 : validated.findIndex((r) => r.step === chosenSample),
    );
    const shown = el("div", { class: "stack", id: "train-samples" });
    const number = el("span", { class: "number" });
    const slider = el("input", { type: "range", min: 0, max: validated.length - 1, step: 1, value: at });
    const show = () => {
      const record = validated[Number(slider.value)];
      number.textContent = `step ${record.step.toLocaleString("en")}`;
      shown.replaceChildren(
        ...record.samples.map((sample) => {
          const lines = sample
            .split("\n")
            .map((text) => text.match(/^\s*(source|output|predicted|wanted|expected|reference|prompt|text): (.*)$/));
          return lines.every(Boolean)
            ? el(
                "dl",
                { class: "sample" },
                lines.flatMap(([, key, text]) => [el("dt", {}, sampleNames[key] ?? key), el("dd", {}, text)]),
              )
            : el("pre", {}, sample);
        }),
      );
    };
    slider.addEventListener("input", () => {
      const index = Number(slider.value);
      // At the end of the slider: follow new validations.
      chosenSample = index === validated.length - 1 ? null : validated[index].step;
      show();
    });
    show();
    return el(
      "div",
      { class: "card" },
      el("h3", {}, "Samples"),
      el("label", {}, el("span", {}, "At ", number), slider),
      shown,
    );
  }

  function values(validated, keys) {
    const details = el(
      "details",
      { class: "card", open: isTableOpen, ontoggle: () => (isTableOpen = details.open) },
      el("summary", {}, "Validation results as a table"),
      el(
        "div",
        { class: "wide" },
        el(
          "table",
          {},
          el(
            "tr",
            {},
            ["step", ...keys].map((key) => el("th", { scope: "col" }, key === "step" ? "Step" : title(key))),
          ),
          validated.map((r) =>
            el(
              "tr",
              {},
              [
                r.step.toLocaleString("en"),
                ...keys.map((key) => (Number.isFinite(r[key]) ? shortNumber(r[key]) : "–")),
              ].map((v) => el("td", { class: "number" }, v)),
            ),
          ),
        ),
      ),
    );
    return details;
  }

  function sweep(table) {
    if (!table) return [el("p", { class: "soft" }, "The table of the sweep cannot be read yet.")];
    const keys = [...new Set(table.rows.flatMap((row) => Object.keys(row.changes ?? {})))];
    const bests = Object.fromEntries(
      table.columns.map((c) => [
        c,
        best(
          table.rows.map((row) => row.validation?.[c]),
          c,
        ),
      ]),
    );
    // A row's run is in the folder of the sweep; other sweeps may have rows of the same name.
    const known = (row) => {
      const expected = `${name === "." ? "" : `${name}/`}${row.folder.split("/").at(-1)}`;
      return [...select.options].find((option) => option.value === expected)?.value;
    };
    const cells = (row) => [
      known(row)
        ? el("button", { type: "button", class: "link", onclick: () => open(known(row)) }, row.name)
        : row.name,
      ...keys.map((key) => row.changes?.[key] ?? ""),
      row.parameters ? shortNumber(row.parameters) : "",
      row.steps?.toLocaleString("en") ?? "",
      ...table.columns.map((c) => {
        const value = row.validation?.[c];
        return value === undefined ? "" : value === bests[c] ? el("b", {}, shortNumber(value)) : shortNumber(value);
      }),
      row.tokens && row.seconds ? shortNumber(row.tokens / row.seconds) : "",
      row.error ?? row.status,
    ];
    const first = table.columns[0];
    const done = table.rows.filter((row) => Number.isFinite(row.validation?.[first]));
    const parts = [
      el(
        "div",
        { class: "card" },
        el("h3", {}, `Variations of ${table.recipe}`),
        el(
          "div",
          { class: "wide" },
          el(
            "table",
            { id: "train-sweep" },
            el(
              "tr",
              {},
              [
                "Row",
                ...keys.map((key) => key.split(".").at(-1)),
                "Parameters",
                "Steps",
                ...table.columns.map(title),
                "Tokens/s",
                "Status",
              ].map((t) => el("th", { scope: "col" }, t)),
            ),
            table.rows.map((row) =>
              el(
                "tr",
                {},
                cells(row).map((cell) => el("td", { class: "number" }, cell)),
              ),
            ),
          ),
        ),
      ),
    ];
    if (done.length) {
      parts.push(
        el(
          "div",
          { class: "card" },
          el("h3", {}, title(first)),
          bars(
            done.map((row) => ({
              name: row.name,
              p: row.validation[first],
              value: shortNumber(row.validation[first]),
            })),
            Math.max(...done.map((row) => row.validation[first]), Number.MIN_VALUE),
          ),
        ),
      );
    }
    return parts;
  }

  return list;
}

function best(list, key) {
  const numbers = list.filter(Number.isFinite);
  if (!numbers.length) return NaN;
  return lowerIsBetter.has(key) ? Math.min(...numbers) : Math.max(...numbers);
}

function duration(seconds) {
  const minutes = Math.floor(seconds / 60),
    hours = Math.floor(minutes / 60);
  return hours ? `${hours} h ${minutes % 60} min` : minutes ? `${minutes} min` : `${Math.round(seconds)} s`;
}

function ago(time) {
  const seconds = Math.max(0, Date.now() / 1000 - time);
  return seconds > 172_800 ? `${Math.round(seconds / 86_400)} days ago` : `${duration(seconds)} ago`;
}
