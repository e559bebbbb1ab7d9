// Generate: sampling token by token, with the distribution of the next token.
import {
  withAbility,
  bars,
  Bytes,
  call,
  el,
  debounce,
  latestOnly,
  modelChoice,
  noModelNote,
  replaceChildrenKeepingFocus,
  addArrowKeys,
  setStatus,
  slider,
  stream,
  visible,
} from "./heed.js";

const mostNew = 200;

export function makeGenerate(panel, models, shared) {
  const own = withAbility(models, "generate").filter(
    (m) => m.family === "decoder_only" && m.abilities.includes("tokenize"),
  );
  panel.append(
    el("h2", {}, "Generate"),
    el(
      "p",
      { class: "soft" },
      "The bars are the distribution from which the next token is sampled; the sliders change it. Click a bar to " +
        "append that token, or a token of the text to continue from there with another one.",
    ),
  );
  if (!own.length) return void panel.append(noModelNote("generate text", "heed serve --model models/shakespeare"));

  const { select, label } = modelChoice(own, () => {
    fitLength();
    refresh();
  });
  const input = el("textarea", {
    id: "generate-input",
    "aria-label": "Text",
    placeholder: "Once upon a time",
    oninput: () => {
      shared.text = input.value;
      runSoon();
    },
  });
  const temperature = slider(
    "Temperature",
    { min: 0, max: 2, step: 0.05, value: 0.8, format: (v) => v.toFixed(2) },
    () => {
      showNext();
      askAgain();
    },
  );
  const topK = slider("Top k", { min: 0, max: 50, step: 1, value: 0, format: (v) => v || "all" }, () => showNext());
  const topP = slider("Top p", { min: 0.05, max: 1, step: 0.05, value: 1, format: (v) => v.toFixed(2) }, () =>
    showNext(),
  );
  const length = slider("New tokens", { min: 1, max: mostNew, step: 1, value: 40 });
  const go = el("button", { type: "button", id: "generate-go", onclick: () => run() }, "Generate");
  const stop = el("button", { type: "button", class: "quiet", disabled: true, onclick: () => halt() }, "Stop");
  const tokens = el("div", {
    class: "output",
    id: "generate-tokens",
    role: "group",
    "aria-label": "Tokens of the text; arrow keys move between them",
  });
  addArrowKeys(tokens, "button");
  const next = el("div", { id: "generate-next" });
  panel.append(
    el(
      "div",
      { class: "columns" },
      el(
        "div",
        { class: "stack" },
        label,
        input,
        el("div", { class: "card columns" }, temperature.label, topK.label, topP.label, length.label),
        el("div", { class: "bar" }, go, stop),
      ),
      el(
        "div",
        { class: "stack" },
        el("div", { class: "card" }, el("h3", {}, "Next token"), next),
        el("div", { class: "card" }, el("h3", {}, "Tokens"), tokens),
      ),
    ),
  );

  const positions = () => own.find((model) => model.id === select.value).max_positions;
  // At least half of the context length is for the prompt.
  function fitLength() {
    length.input.max = Math.max(1, Math.min(mostNew, Math.floor(positions() / 2)));
    length.input.dispatchEvent(new Event("input"));
  }

  // The end of the text, cut so that `count` new tokens fit into the context.
  async function fitting(text, count, signal) {
    const {
      results: [{ ids, offsets }],
    } = await call("/v1/heed/tokenize", { model: select.value, input: text }, signal);
    const surplus = ids.length + count - positions();
    if (surplus <= 0) return text;
    const parts = offsets.filter(([begin, end]) => end > begin); // without tokens that the template adds
    const bytes = new Bytes(text);
    if (!parts.length) return text; // nothing can be cut
    // One token more: the first one may be tokenized differently without the text before it.
    return bytes.slice(parts[Math.min(surplus + 1, parts.length - 1)][0], bytes.length);
  }

  // The candidates, the text before them, and the temperature they were requested with.
  let candidates = [],
    before = "",
    askedAt = 1;
  let requested = "",
    requests = 0; // the text of the last request, which may still be running

  // The probabilities after temperature, top-k and top-p.
  function drawn(list) {
    const t = temperature.value;
    if (t === 0) return list.slice(0, 1).map((c) => ({ ...c, p: 1 }));
    // An approximation until the reply for the new temperature has arrived: only the listed tokens are rescaled.
    let rows = list.map((c) => ({ ...c, p: c.probability ** (askedAt / t) }));
    if (askedAt !== t) {
      const sum = rows.reduce((s, r) => s + r.p, 0);
      rows.forEach((r) => (r.p /= sum));
    }
    let all = 1; // the probability mass of all tokens, including those not listed
    if (topK.value) {
      rows = rows.slice(0, topK.value);
      all = rows.reduce((s, r) => s + r.p, 0);
    }
    if (topP.value < 1) {
      let mass = 0;
      rows = rows.filter((r) => {
        const keep = mass < topP.value * all;
        mass += r.p;
        return keep;
      });
      all = Math.max(
        topP.value * all,
        rows.reduce((s, r) => s + r.p, 0),
      );
    }
    return rows.map((r) => ({ ...r, p: r.p / all }));
  }

  function showNext() {
    replaceChildrenKeepingFocus(
      next,
      "button",
      candidates.length
        ? bars(
            drawn(candidates)
              .slice(0, 12)
              .map((c) => ({
                name: visible(c.text || c.piece),
                p: c.p,
                onclick: () => branch(c.text),
              })),
          )
        : el("p", { class: "soft" }, "Enter a prompt."),
    );
  }

  const refresh = latestOnly(async (signal) => {
    if (!input.value) {
      candidates = [];
      tokens.textContent = "";
      return showNext();
    }
    const text = input.value;
    const [, split] = await Promise.all([
      ask(text, signal),
      call("/v1/heed/tokenize", { model: select.value, input: text, special: false }, signal),
    ]);
    showTokens(text, split.results[0].offsets);
  });
  const runSoon = debounce(200, refresh);

  async function ask(text, signal) {
    const t = temperature.value || 1,
      request = ++requests;
    requested = text;
    const predicted = await call(
      "/v1/heed/predict",
      { model: select.value, input: text || " ", top: 100, temperature: t },
      signal,
    );
    if (request !== requests) return; // a newer request was sent
    [candidates, before, askedAt] = [predicted.next, text, t];
    showNext();
  }
  const askAgain = debounce(
    120,
    latestOnly(async (signal) => {
      if (candidates.length) await ask(requested, signal);
    }),
  );

  function showTokens(text, offsets) {
    const bytes = new Bytes(text);
    let at = 0;
    replaceChildrenKeepingFocus(
      tokens,
      "button",
      ...offsets
        .map(([begin, end], i) => {
          // White space between tokens is shown with the token after it.
          const shown = bytes.slice(Math.min(at, begin), end),
            start = begin;
          at = end;
          return el(
            "button",
            {
              type: "button",
              class: "token",
              tabindex: i ? -1 : 0,
              "aria-pressed": "false",
              title: "Show alternatives for this token",
              onclick: (event) => goBack(bytes.slice(0, start), event.currentTarget),
            },
            shown.replaceAll("\n", "⏎"),
          );
        })
        .flatMap((button) => (button.textContent.endsWith("⏎") ? [button, el("br")] : button)),
    );
  }

  const goBack = latestOnly(async (signal, text, button) => {
    for (const other of tokens.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    await ask(text, signal);
    setStatus("Alternatives at this position.");
  });

  function branch(text) {
    input.value = shared.text = before + (needsSpace(text) ? " " : "") + text;
    refresh();
  }
  // Word tokenizers add spaces when they decode, so a single word has none.
  const needsSpace = (text) => /^\w/.test(text) && /\w$/.test(before) && isWordy();
  const isWordy = () => !candidates.some((c) => /^\s/.test(c.text));

  let halt = () => {};
  const run = latestOnly(async (signal) => {
    const stopping = new AbortController();
    signal.addEventListener("abort", () => stopping.abort());
    halt = () => stopping.abort();
    setStatus("Generating …");
    const start = performance.now();
    let count = 0,
      asking = null;
    go.disabled = !(stop.disabled = false);
    try {
      const prompt = await fitting(input.value || " ", length.value, stopping.signal);
      await stream(
        "/v1/completions",
        {
          model: select.value,
          prompt,
          max_tokens: length.value,
          temperature: temperature.value,
          top_k: topK.value,
          top_p: topP.value,
        },
        (event) => {
          const text = event.choices[0]?.text ?? "";
          if (text) ++count;
          input.value += text;
          input.scrollTop = input.scrollHeight;
          // The bars are updated as fast as replies arrive.
          asking ??= ask(input.value, stopping.signal)
            .catch(() => {})
            .finally(() => (asking = null));
        },
        stopping.signal,
      );
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      go.disabled = !(stop.disabled = true);
    }
    await asking;
    shared.text = input.value;
    setStatus(`${count} tokens in ${((performance.now() - start) / 1000).toFixed(1)} s`);
    refresh();
  });

  fitLength();
  showNext();
  return () => {
    if (shared.text && shared.text !== input.value) input.value = shared.text;
    refresh();
  };
}
