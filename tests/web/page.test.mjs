// Every tab of the page in Chromium: type, see the result, hover, choose, slide. Screenshots go to
// $HEED_SCREENSHOTS.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { chromium } from "playwright-core";
import { startServer, startServerWith } from "./heed.mjs";

const pictures = process.env.HEED_SCREENSHOTS;
let server, browser, page, complaints;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  server = await startServer();
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.setDefaultTimeout(60_000);
  complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    const isOurs = [server.url, "data:", "blob:"].some((start) => request.url().startsWith(start));
    if (!isOurs) complaints.push(`asked ${request.url()}`);
  });
  await page.goto(server.url);
});
after(async () => {
  await browser?.close();
  assert.equal(await server.stop(), 0);
});
afterEach(() => assert.deepEqual(complaints.splice(0), []));

const open = (tab) => page.click(`#tab-${tab}`);
const shoot = (name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });

// Whether hovering over some word of one side highlights words of the other. Not every word does: one
// that is aligned with a special token has no partner.
async function lightsUp(from, to) {
  for (const word of await page.locator(`${from} span[tabindex]`).all()) {
    await word.hover();
    if (await page.locator(`${to} span.lit`).count()) return true;
  }
  return false;
}

test("Lens: an example is shown before anything is typed", async () => {
  await open("lens");
  await page.waitForSelector("#lens-map g");
  assert.match(await page.inputValue("#lens-input"), /man in a blue shirt/);
  assert.match(await page.textContent("#lens-pattern"), /\d/);
  assert.ok((await page.locator("#panel-lens figure svg path.curve").count()) >= 3); // sinusoids
  await shoot("lens-first");
});

test("Translate: example sentences", async () => {
  await open("translate");
  assert.equal(await page.inputValue("#translate-input"), "");
  await page.locator("#panel-translate .chips button").nth(1).click();
  await page.waitForSelector("#panel-translate td.score");
  assert.match(await page.inputValue("#translate-input"), /snow/);
  // What a small model is for.
  await page.waitForFunction(() => /everyday sentences/.test(document.getElementById("translate-about").textContent));
});

test("Translate: n-best list and highlighted alignment", async () => {
  await open("translate");
  await page.fill("#translate-input", "the cat sat on the mat");
  await page.waitForFunction(() => document.getElementById("words-source")?.textContent === "the cat sat on the mat");
  assert.equal(await page.locator("#panel-translate td.score").count(), 4);
  assert.ok(await lightsUp("#words-target", "#words-source"));
  assert.ok(await lightsUp("#words-source", "#words-target"));
  await shoot("translate");
});

// Whole words are highlighted, not subword tokens, with labels for screen readers.
test("Translate: words by keyboard", async () => {
  await page.fill("#translate-input", "the dogs sat.");
  await page.waitForFunction(() => document.getElementById("words-source")?.textContent === "the dogs sat.");
  const words = page.locator("#words-source span");
  assert.deepEqual(await words.allTextContents(), ["the", "dogs", "sat", "."]);
  assert.equal(await page.locator("#words-source [tabindex='0']").count(), 1);
  await page.focus("#words-source [tabindex='0']");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "dogs");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^dogs(: \S.*)?$/);
  const labels = await page
    .locator("#panel-translate .words span")
    .evaluateAll((list) => list.map((e) => e.getAttribute("aria-label")));
  assert.ok(
    labels.some((label) => /^\S+: \S/.test(label)),
    labels.join("; "),
  );
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.closest("#words-source")), null);
  await page.fill("#translate-input", "the cat sat on the mat");
});

test("Translate: terminology", async () => {
  await page.click("#panel-translate summary");
  await page.fill("#translate-terms", "cat = new york\nhorse = fast");
  await page.waitForSelector("#panel-translate .terms li");
  assert.deepEqual(await page.locator("#panel-translate .terms li").allTextContents(), ["cat → new york"]);
  assert.match(await page.textContent("#translate-output"), /new york/);
  await shoot("translate-terms");
});

test("Lens: the grid of heads, one head enlarged, hover on tokens", async () => {
  await open("lens");
  await page.waitForSelector("#lens-map g"); // what was typed before is here already
  const heads = page.locator("#panel-lens .heads button");
  assert.ok((await heads.count()) >= 4);
  await heads.last().click();
  assert.equal(await heads.last().getAttribute("aria-pressed"), "true");
  await page.locator("#lens-map g").first().hover();
  assert.match(await page.textContent("#lens-looks"), /attends to/);
  await page.locator("#lens-map .column").nth(1).hover();
  assert.match(await page.textContent("#lens-looks"), /is attended to by/);
  await page.selectOption("#lens-kind", "encoder");
  await page.waitForSelector("#lens-map g");
  await page.locator("#lens-map g").first().hover();
  await shoot("lens");
});

test("Lens: heads and tokens by keyboard, and lines instead of a map", async () => {
  const pressed = () => page.getAttribute("#panel-lens .heads button[aria-pressed=true]", "aria-label");
  await page.locator("#panel-lens .heads button").first().click();
  await page.keyboard.press("ArrowRight");
  assert.match(await pressed(), /^Layer 1, head 2/);
  await page.keyboard.press("ArrowDown");
  assert.match(await pressed(), /^Layer 2, head 2/);
  assert.equal(await page.textContent("#panel-lens .lens > .card:last-child h3"), "Layer 2, head 2");
  await page.focus("#lens-map g[tabindex='0']");
  const first = await page.textContent("#lens-looks");
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await page.textContent("#lens-looks"), first);
  await page.click("#panel-lens button:text-is('Lines')");
  await page.locator("#lens-lines g text").nth(1).hover();
  assert.ok((await page.locator("#lens-lines g.gone").count()) > 0);
  assert.match(await page.textContent("#lens-looks"), /attends to/);
  await shoot("lens-lines");
});

// Large weights stay visible in small pictures of heads.
test("Lens: heads of long texts", async () => {
  await page.click("#panel-lens button:text-is('Map')");
  await page.selectOption("#panel-lens select", "mlm");
  await page.fill("#lens-input", "the cat sat on the mat ".repeat(10));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#lens-map g").length > 20);
  const heads = await page.locator("#panel-lens .heads canvas").evaluateAll((list) =>
    list.map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return {
        pixels: canvas.width,
        shown: canvas.clientWidth * devicePixelRatio,
        strongest: Math.max(...data.filter((_, i) => i % 4 === 3)),
        weight: Math.max(...canvas.weights.flat()),
      };
    }),
  );
  for (const { pixels, shown, strongest, weight } of heads) {
    assert.ok(pixels <= Math.ceil(shown), `${pixels} on ${shown}`);
    assert.ok(Math.abs(strongest / 255 - Math.sqrt(weight)) < 0.02, `${strongest} for ${weight}`);
  }
  assert.doesNotMatch(await page.textContent("#panel-lens"), /darker/);
  await page.selectOption("#panel-lens select", "en-de");
  await page.waitForSelector("#lens-kind option[value=cross]", { state: "attached" });
  await page.selectOption("#lens-kind", "cross");
  assert.match(await page.textContent("#panel-lens"), /is the decoder start token/);
});

// The downloads are valid: an SVG with a cell for each weight, a PNG.
test("Lens: downloads", async () => {
  const saved = async (label) => {
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.click(`#panel-lens [aria-label="${label}"]`),
    ]);
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
  };
  await page.click("#panel-lens button:text-is('Map')");
  const svg = await saved("Download this head as SVG");
  assert.match(svg.name, /\.svg$/);
  assert.equal(svg.bytes.toString().match(/class="cell"/g).length, await page.locator("#lens-map .cell").count());
  assert.match(svg.bytes.toString(), /fill="#[0-9a-f]{6}"/);
  const png = await saved("Download this head as PNG");
  assert.match(png.name, /\.png$/);
  assert.equal(png.bytes.toString("latin1", 1, 4), "PNG");
  const width = Number(svg.bytes.toString().match(/width="(\d+)/)[1]);
  assert.ok(Math.abs(png.bytes.readUInt32BE(16) - 2 * width) <= 2);
  const all = await saved("Download all heads as SVG");
  assert.match(all.bytes.toString(), /^<\?xml|^<svg/);
});

test("Lens: position encodings", async () => {
  for (const [name, words] of [
    ["gpt", /Learned/],
    ["alibi", /slope/],
    ["rope", /Rotary/],
  ]) {
    await page.selectOption("#panel-lens select", name);
    await page.waitForFunction(
      (pattern) =>
        new RegExp(pattern).test(document.querySelector("#panel-lens .stack > .card:last-child").textContent),
      words.source,
    );
    if (name !== "gpt") assert.ok((await page.locator("#panel-lens figure path.curve").count()) >= 1);
    await page.waitForSelector("#lens-map g");
    await shoot(`lens-${name}`);
  }
  await page.selectOption("#panel-lens select", "en-de");
  await page.waitForSelector("#lens-kind option[value=cross]", { state: "attached" });
});

test("Generate: bars, sliders, streaming, alternatives", async () => {
  await open("generate");
  await page.fill("#generate-input", "the cat");
  await page.waitForSelector("#generate-next li");
  const before = await page.locator("#generate-next .value").first().textContent();
  const slide = (index, value) => page.locator("#panel-generate input[type=range]").nth(index).fill(value);
  await slide(0, "0.2");
  assert.notEqual(await page.locator("#generate-next .value").first().textContent(), before);
  // The bars show the distribution after temperature and top-k.
  const { next } = await (
    await fetch(`${server.url}v1/heed/predict`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ model: "gpt", input: "the cat", top: 3, temperature: 0.2 }),
    })
  ).json();
  await slide(1, "3");
  const expected = (100 * next[0].probability) / next.reduce((sum, token) => sum + token.probability, 0);
  await page.waitForFunction(
    (p) => Math.abs(parseFloat(document.querySelector("#generate-next .value").textContent) - p) < 0.06,
    expected,
  );
  assert.equal(await page.locator("#generate-next li").count(), 3);
  await slide(2, "0.05");
  assert.equal(await page.locator("#generate-next li").count(), 1);
  await slide(1, "0");
  await slide(2, "1");
  let asked = 0;
  const count = (request) => (asked += request.url().endsWith("/predict"));
  page.on("request", count);
  await page.click("#generate-go");
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("tokens"));
  page.off("request", count);
  assert.ok(asked >= 1); // the bars went along
  assert.ok((await page.inputValue("#generate-input")).startsWith("the cat"));
  await page.waitForSelector("#generate-tokens button");
  await page.locator("#generate-tokens button").nth(1).click();
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("Alternatives"));
  await page.locator("#generate-next button").first().click();
  await page.waitForFunction(() => document.getElementById("generate-input").value.startsWith("the "));
  await shoot("generate");
});

// A text longer than the context is cut at its start.
test("Generate: beyond the context length", async () => {
  const { data } = await (await fetch(`${server.url}v1/models`)).json();
  const most = data.find((model) => model.id === "gpt").max_positions;
  const length = page.locator("#panel-generate input[type=range]").nth(3);
  assert.ok(Number(await length.getAttribute("max")) <= most / 2);
  await length.fill("8");
  await page.fill("#generate-input", "the cat sat on the mat ".repeat(Math.ceil(most / 6)));
  for (let i = 0; i < 3; ++i) {
    const before = (await page.inputValue("#generate-input")).length;
    await page.click("#generate-go");
    await page.waitForFunction(() => /^\d+ tokens in/.test(document.getElementById("status").textContent));
    assert.ok((await page.inputValue("#generate-input")).length > before);
    assert.equal(await page.locator("#status.bad").count(), 0);
    await page.evaluate(() => (document.getElementById("status").textContent = ""));
  }
});

test("Generate: bars and tokens by keyboard", async () => {
  await page.fill("#generate-input", "the cat sat");
  await page.waitForFunction(() => document.getElementById("generate-tokens").textContent === "the cat sat");
  for (const part of ["#generate-next", "#generate-tokens"]) {
    assert.equal(await page.locator(`${part} button[tabindex='0']`).count(), 1, part);
    await page.focus(`${part} button[tabindex='0']`);
    await page.keyboard.press("ArrowDown");
    assert.equal(
      await page.evaluate((id) => [...document.querySelectorAll(`${id} button`)].indexOf(document.activeElement), part),
      1,
      part,
    );
    assert.equal(await page.locator(`${part} button[tabindex='0']`).count(), 1, part);
  }
});

test("Fill: candidates, and inserting one", async () => {
  await open("fill");
  await page.fill("#fill-input", "the [MASK] sat");
  await page.waitForSelector("#fill-results li");
  assert.equal(await page.locator("#fill-results li").count(), 8);
  await shoot("fill");
  await page.locator("#fill-results button").first().click();
  assert.ok(!(await page.inputValue("#fill-input")).includes("[MASK]"));
});

test("Translate: languages by name, swap and copy", async () => {
  await open("translate");
  assert.deepEqual(await page.locator("#translate-from option").allTextContents(), ["English"]);
  assert.deepEqual(await page.locator("#translate-into option").allTextContents(), ["German"]);
  assert.ok(await page.isDisabled("#translate-swap")); // no model for it
  assert.match(await page.getAttribute("#translate-swap", "title"), /German into English/);
  await page.fill("#translate-input", "the cat sat.");
  await page.waitForFunction(() => document.getElementById("words-source")?.textContent === "the cat sat.");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click("#panel-translate [aria-label='Copy the translation']");
  await page.waitForSelector("#panel-translate button:text-is('Copied')");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.textContent("#translate-output"));

  const own = await startServerWith({ models: ["en-de", "de-en"], hasRuns: false });
  const other = await browser.newPage();
  try {
    await other.goto(own.url);
    await other.fill("#translate-input", "the cat");
    await other.waitForSelector("#panel-translate td.score");
    const text = await other.textContent("#translate-output");
    await other.click("#translate-swap");
    assert.equal(await other.inputValue("#panel-translate label:has-text('Model') select"), "de-en");
    assert.equal(await other.textContent("#translate-from option:checked"), "German");
    assert.equal(await other.inputValue("#translate-input"), text);
  } finally {
    await other.close();
    assert.equal(await own.stop(), 0);
  }
});

// The source is never a small box beside a long translation.
test("Translate: the source box grows", async () => {
  await open("translate");
  const heights = () =>
    page.evaluate(() => ["input", "output"].map((id) => document.getElementById(`translate-${id}`).offsetHeight));
  await page.fill("#translate-input", "the cat");
  const [low] = await heights();
  await page.fill("#translate-input", "the cat sat on the mat.\n".repeat(12));
  await page.waitForFunction(() => /^Translated/.test(document.getElementById("status").textContent));
  const [high, output] = await heights();
  assert.ok(high > 1.8 * low, `${high} after ${low}`);
  assert.ok(high >= output - 1, `${high} beside ${output}`);
  const { clientHeight, scrollHeight } = await page.evaluate(() => {
    const { clientHeight, scrollHeight } = document.getElementById("translate-input");
    return { clientHeight, scrollHeight };
  });
  assert.ok(scrollHeight <= clientHeight + 1, `${scrollHeight} in ${clientHeight}`);
  await page.fill("#translate-input", "the cat sat on the mat");
});

// An error replaces the result of the text before it.
test("errors replace stale results", async () => {
  const own = await startServer("--max-text-bytes", "60");
  const other = await browser.newPage();
  const long = "the cat sat on the mat ".repeat(10);
  const seesError = (selector) =>
    other.waitForFunction(
      (s) => /60/.test(document.querySelector(s)?.textContent ?? "") && document.querySelector("#status.bad"),
      selector,
    );
  try {
    await other.goto(own.url);
    await other.fill("#translate-input", "the cat");
    await other.waitForSelector("#panel-translate td.score");
    await other.fill("#translate-input", long);
    await seesError("#translate-output .failed");
    assert.ok(await other.isHidden("#panel-translate td.score >> nth=0"));
    assert.ok(await other.isHidden("#panel-translate [aria-label='Copy the translation']"));
    await other.click("#tab-lens");
    await seesError("#lens-failure .failed");
    assert.ok(await other.isHidden("#panel-lens .lens"));
    await other.click("#tab-labels");
    await other.waitForSelector("#labels-results li");
    await other.fill("#labels-input", long);
    await seesError("#labels-results .failed");
    assert.equal(await other.locator("#labels-results li").count(), 0);
    await other.click("#tab-fill");
    await other.waitForSelector("#fill-results li");
    await other.fill("#fill-input", `[MASK] ${long}`);
    await seesError("#fill-results .failed");
    await other.fill("#fill-input", "the [MASK] sat");
    await other.waitForSelector("#fill-results li"); // and a result replaces the error
    assert.equal(await other.locator("#fill-results .failed").count(), 0);
  } finally {
    await other.close();
    assert.equal(await own.stop(), 0);
  }
});

test("Classify & tag", async () => {
  await open("labels");
  await page.waitForSelector("#labels-results li");
  assert.equal(await page.locator("#labels-results li").count(), 3);
  assert.ok(await page.isHidden("#labels-second"));
  // A bar is as long as its probability, not as its share of the largest.
  const bars = await page.locator("#labels-results li").evaluateAll((list) =>
    list.map((row) => ({
      share: row.querySelector(".fill").offsetWidth / row.querySelector(".track").offsetWidth,
      value: parseFloat(row.querySelector(".value").textContent) / 100,
    })),
  );
  for (const { share, value } of bars) assert.ok(Math.abs(share - value) < 0.02, `${share} for ${value}`);
  await page.selectOption("#panel-labels select", "tags");
  await page.waitForSelector("#labels-results .tags");
  await page.fill("#labels-input", "the cat sat on the mat .");
  await page.waitForFunction(() => document.querySelectorAll("#labels-results mark").length === 7);
  // Neighbours with the same part of speech are two words.
  assert.deepEqual(
    await page.locator("#labels-results mark").evaluateAll((list) => list.map((mark) => mark.firstChild.textContent)),
    ["the", "cat", "sat", "on", "the", "mat", "."],
  );
  await shoot("labels");
});

test("Classify & tag: pairs of texts", async () => {
  await page.selectOption("#panel-labels select", "pairs");
  await page.waitForSelector("#labels-second", { state: "visible" });
  await page.waitForSelector("#labels-results li");
  let sent;
  const look = (request) => request.url().endsWith("/classify") && (sent = request.postDataJSON());
  page.on("request", look);
  await page.fill("#labels-input", "the cat");
  await page.fill("#labels-second", "a dog is fast");
  await page.waitForResponse((reply) => reply.url().endsWith("/classify"));
  page.off("request", look);
  assert.deepEqual([sent.input, sent.second], ["the cat", "a dog is fast"]);
  await shoot("labels-pairs");
  await page.fill("#labels-second", "");
  await page.waitForFunction(() => /both/.test(document.getElementById("labels-results").textContent));
  await page.selectOption("#panel-labels select", "labels");
  assert.ok(await page.isHidden("#labels-second"));
});

test("Parse: a tree with the words as leaves", async () => {
  await open("parse");
  assert.deepEqual(await page.locator("#panel-parse option").allTextContents(), ["parser"]); // no translator
  await page.fill("#parse-input", "the cat sat");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#parse-results svg");
  assert.deepEqual(await page.locator("#parse-results text.leaf").allTextContents(), ["the", "cat", "sat"]);
  await shoot("parse");
});

test("Train: live curves, samples, and the table of a sweep", async () => {
  await open("train");
  await page.selectOption("#train-run", "live");
  await page.waitForSelector("#train-charts svg");
  assert.match(await page.textContent("#train-facts"), /200 of 300/);
  assert.deepEqual(await page.locator("#train-charts h3").allTextContents(), [
    "Loss",
    "BLEU",
    "Learning rate",
    "Tokens per second",
    "Gradient norm",
  ]);
  await page
    .locator("#train-charts svg")
    .first()
    .hover({ position: { x: 60, y: 40 } });
  assert.match(await page.locator("#train-charts figcaption").first().textContent(), /step (10|20|30)$/);
  await page.locator("#panel-train input[type=range]").fill("0");
  assert.match(await page.textContent("#train-samples"), /step 50/);
  await shoot("train");
  appendFileSync(
    join(server.folder, "runs/live/log.jsonl"),
    `${JSON.stringify({ kind: "train", step: 210, loss: 1.1, seconds: 210, tokens_per_second: 9000 })}\n`,
  );
  await page.waitForFunction(() => document.getElementById("train-facts").textContent.includes("210 of 300"));
  assert.match(await page.textContent("#train-samples"), /step 50/); // what was chosen stays
  // An open table stays open, and the age of the last update is refreshed.
  await page.click("#panel-train summary");
  const state = await page.textContent("#train-state");
  await page.waitForFunction((before) => document.getElementById("train-state").textContent !== before, state);
  appendFileSync(
    join(server.folder, "runs/live/log.jsonl"),
    `${JSON.stringify({ kind: "train", step: 220, loss: 1.1, seconds: 220, tokens_per_second: 9000 })}\n`,
  );
  await page.waitForFunction(() => document.getElementById("train-facts").textContent.includes("220 of 300"));
  assert.equal(await page.locator("#panel-train details[open]").count(), 1);
  // No label of a chart is cut off.
  const clipped = await page.locator("#train-charts svg").evaluateAll((list) =>
    list.flatMap((picture) =>
      [...picture.querySelectorAll("text")]
        .filter((text) => {
          const a = text.getBoundingClientRect(),
            b = picture.getBoundingClientRect();
          return a.left < b.left - 0.5 || a.right > b.right + 0.5;
        })
        .map((text) => text.textContent),
    ),
  );
  assert.deepEqual(clipped, []);
  // Labels of ticks differ, steps are whole, and a single point is inside of the chart.
  for (const run of ["live", "level", "one"]) {
    await page.selectOption("#train-run", run);
    await page.waitForFunction(
      (last) => new RegExp(`step ${last}$`).test(document.querySelector("#train-charts figcaption")?.textContent),
      { live: 220, level: 3, one: 5 }[run],
    );
    const charts = await page
      .locator("#train-charts svg")
      .evaluateAll((list) =>
        list.map((picture) =>
          [".level", ".step"].map((kind) => [...picture.querySelectorAll(kind)].map((text) => text.textContent)),
        ),
      );
    for (const [levels, steps] of charts) {
      assert.ok(levels.length >= 2 && new Set(levels).size === levels.length, `${run}: ${levels}`);
      assert.ok(steps.length >= 1 && new Set(steps).size === steps.length, `${run}: ${steps}`);
      assert.ok(
        steps.every((step) => /^\d+$/.test(step)),
        `${run}: ${steps}`,
      );
    }
  }
  const [dot, frame] = await page.evaluate(() =>
    [...document.querySelectorAll("#train-charts svg")].slice(0, 1).flatMap((picture) => {
      const { cx, cy } = Object.fromEntries(
        ["cx", "cy"].map((name) => [name, Number(picture.querySelector("circle").getAttribute(name))]),
      );
      return [[cx, cy], picture.getAttribute("viewBox").split(" ").map(Number)];
    }),
  );
  assert.ok(dot[0] > 0.3 * frame[2] && dot[0] < 0.8 * frame[2] && dot[1] > 20 && dot[1] < 0.8 * frame[3], `${dot}`);
  await page.selectOption("#train-run", "table3");
  await page.waitForSelector("#train-sweep");
  assert.equal(await page.textContent("#train-sweep b"), "24.25");
  await shoot("train-sweep");
  // A row links to its run where that exists.
  assert.deepEqual(await page.locator("#train-sweep button").allTextContents(), ["four"]);
  await page.click("#train-sweep button");
  await page.waitForFunction(() => document.getElementById("train-run").value === "table3/four");
});

test("Model: architecture", async () => {
  await open("model");
  await page.waitForSelector("#panel-model .drawing svg");
  assert.match(await page.textContent("#model-facts"), /Parameters/);
  for (const name of ["gpt", "mlm"]) {
    await page.selectOption("#panel-model select", name);
    await page.waitForFunction(
      (kind) => document.getElementById("model-facts").textContent.includes(kind),
      name === "gpt" ? "gpt2" : "bert",
    );
    // The blocks' parameters sum up to the model's.
    const counts = await page.locator("#panel-model .count").allTextContents();
    const sum = counts.reduce((total, text) => total + (text.match(/^([\d.]+) k parameters/)?.[1] ?? 0) * 1000, 0);
    const all = parseFloat((await page.textContent("#model-facts")).match(/Parameters([\d.]+) k/)[1]) * 1000;
    assert.ok(Math.abs(sum - all) < 0.02 * all, `${name}: ${counts.join("; ")} of ${all}`); // but for final norms
  }
  await shoot("model");
});

// Every control has an accessible name.
test("names for screen readers", async () => {
  for (const tab of ["translate", "lens", "generate", "fill", "labels", "parse", "train", "model"]) {
    await open(tab);
    const nameless = await page.evaluate(
      (id) =>
        [...document.querySelectorAll(`#panel-${id} :is(button, input, select, textarea, summary, [tabindex])`)]
          .filter((e) => !e.getAttribute("aria-label") && !e.labels?.length && !e.textContent.trim())
          .map((e) => e.outerHTML.slice(0, 120)),
      tab,
    );
    assert.deepEqual(nameless, [], tab);
    const pictures = await page.evaluate(
      (id) => [...document.querySelectorAll(`#panel-${id} svg`)].filter((e) => !e.getAttribute("aria-label")).length,
      tab,
    );
    assert.equal(pictures, 0, tab);
  }
});

// WCAG AA: a contrast of at least 4.5 between text and background.
test("contrast of the colours, light and dark", async () => {
  for (const theme of ["light", "dark"]) {
    const low = await page.evaluate((value) => {
      document.documentElement.dataset.theme = value;
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim().slice(1);
        const [r, g, b] = [0, 2, 4]
          .map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
          .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
      const pairs = ["--paper", "--card", "--wash"].flatMap((ground) =>
        ["--ink", "--soft", "--bad", "--accent"].map((text) => [text, ground]),
      );
      return [...pairs, ["--ink", "--mark"], ["--accent-ink", "--accent"]]
        .filter(([a, b]) => !(ratio(a, b) >= 4.5))
        .map(([a, b]) => `${a} on ${b}: ${ratio(a, b).toFixed(2)}`);
    }, theme);
    await page.evaluate(() => delete document.documentElement.dataset.theme);
    assert.deepEqual(low, [], theme);
  }
});

test("API key, and a server that has stopped", async () => {
  const own = await startServer("--api-key", "sesame");
  const other = await browser.newPage();
  try {
    await other.goto(own.url);
    // A form of its own, with space between field and button.
    await other.waitForSelector("#key", { state: "visible" });
    const [form, field, button] = await other.evaluate(() =>
      ["#key", "#key input", "#key button"].map((s) => document.querySelector(s).getBoundingClientRect().toJSON()),
    );
    assert.ok(form.width < 500 && button.top - field.bottom >= 8, `${form.width}, ${button.top - field.bottom}`);
    await other.screenshot({ path: join(pictures, "key.png") });
    await other.fill("#key input", "wrong");
    await other.click("#key button");
    await other.waitForFunction(() => document.getElementById("status").textContent.includes("Invalid API key"));
    await other.fill("#key input", "sesame");
    await other.click("#key button");
    await other.waitForSelector("#tab-translate");
    assert.ok(await other.isHidden("#key"));
    await other.click("#tab-generate");
    await other.fill("#generate-input", "the cat");
    await other.waitForSelector("#generate-next li");
  } finally {
    assert.equal(await own.stop(), 0);
  }
  await other.fill("#generate-input", "the cat sat");
  await other.waitForFunction(() => document.getElementById("status").textContent === "The server does not respond.");
  await other.close();
});

// Tabs are those of the loaded models; without any, the page says what to do.
test("tabs of the loaded models only", async () => {
  for (const [models, expected] of [
    [["en-de"], ["Translate", "Lens", "Model"]],
    [
      ["gpt", "tags"],
      ["Lens", "Generate", "Classify & tag", "Model"],
    ],
  ]) {
    const own = await startServerWith({ models, hasRuns: false });
    const other = await browser.newPage();
    try {
      await other.goto(`${own.url}#fill`); // a tab that it does not have
      await other.waitForSelector("[role=tab]");
      assert.deepEqual(await other.locator("[role=tab]").allTextContents(), expected);
      assert.equal(await other.getAttribute("[role=tab] >> nth=0", "aria-selected"), "true");
    } finally {
      await other.close();
      assert.equal(await own.stop(), 0);
    }
  }
  const other = await browser.newPage();
  await other.route("**/v1/models", (route) => route.fulfill({ json: { object: "list", data: [] } }));
  await other.route("**/v1/heed/runs", (route) => route.fulfill({ json: { is_enabled: false, data: [] } }));
  await other.goto(server.url);
  await other.waitForSelector("#welcome");
  assert.match(await other.textContent("#welcome"), /heed serve --model/);
  await other.close();
});

test("choosing a tab does not move the others", async () => {
  const places = () =>
    page.locator("[role=tab]").evaluateAll((list) => list.map((tab) => Math.round(tab.getBoundingClientRect().left)));
  await open("translate");
  const before = await places();
  for (const tab of ["labels", "model"]) {
    await open(tab);
    assert.deepEqual(await places(), before, tab);
  }
});

test("one font, and no serif", async () => {
  const fonts = await page.evaluate(() => [
    ...new Set([...document.querySelectorAll("h1, h2, h3, p, button, td")].map((e) => getComputedStyle(e).fontFamily)),
  ]);
  assert.equal(fonts.length, 1, fonts.join("; "));
  assert.match(fonts[0], /^system-ui,.*sans-serif$/);
});

test("the position chart fills its card", async () => {
  await open("lens");
  await page.waitForSelector("#panel-lens figure svg");
  const [chart, card] = await page.evaluate(() => {
    const chart = document.querySelector("#panel-lens figure svg");
    return [chart, chart.closest(".card")].map((e) => e.getBoundingClientRect().width);
  });
  assert.ok(chart > 0.9 * card, `${chart} of ${card}`);
});

test("the API as a page", async () => {
  const other = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  const bad = [];
  other.on("console", (message) => message.type() === "error" && bad.push(message.text()));
  other.on("pageerror", (error) => bad.push(error.message));
  await other.goto(`${server.url}docs`);
  await other.waitForSelector(".route");
  const { paths } = await (await fetch(`${server.url}openapi.json`)).json();
  const expected = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const found = await other
    .locator(".route h3")
    .evaluateAll((list) =>
      list.map((h) => `${h.querySelector(".method").textContent} ${h.querySelector("code").textContent}`),
    );
  assert.deepEqual([...found].sort(), expected.sort());
  // Every field of a request is there, with its meaning.
  const fields = Object.keys(paths["/translate"].post.requestBody.content["application/json"].schema.properties);
  assert.deepEqual(await other.locator("#post-translate details[open] td:first-child code").allTextContents(), fields);
  // The lines run as they are.
  for (const id of ["post-translate", "get-v1-models", "post-v1-heed-tokenize"]) {
    const line = await other.textContent(`#${id} .try pre`);
    const reply = JSON.parse(execFileSync("sh", ["-c", `${line} -s`], { encoding: "utf8" }));
    assert.ok(!reply.error, `${line}: ${JSON.stringify(reply)}`);
  }
  await other.screenshot({ path: join(pictures, "docs.png"), fullPage: true });
  await other.setViewportSize({ width: 380, height: 800 });
  assert.ok((await other.evaluate(() => document.documentElement.scrollWidth)) <= 380);
  await other.screenshot({ path: join(pictures, "phone-docs.png"), fullPage: true });
  assert.deepEqual(bad, []);
  await other.close();
});

// Hints say "Tap" where nothing hovers, and a tap does what hovering does; arrows lead to the tabs that are cut off.
test("a touch screen", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const phone = await context.newPage();
  await phone.goto(`${server.url}#translate`);
  await phone.fill("#translate-input", "the cat sat on the mat");
  await phone.waitForSelector("#words-source span");
  assert.match(await phone.textContent("#panel-translate > p"), /Tap a word/);
  assert.doesNotMatch(await phone.textContent("#panel-translate"), /Hover|Click/);
  let isLit = false;
  for (const word of await phone.locator("#words-source span[tabindex]").all()) {
    await word.tap();
    if (await phone.locator("#words-target span.lit").count()) isLit = true;
  }
  assert.ok(isLit);
  const last = phone.locator("[role=tab]").last();
  const isVisible = () =>
    last.evaluate((tab) => {
      const box = tab.getBoundingClientRect();
      return tab.contains(document.elementFromPoint(box.right - 4, box.top + box.height / 2));
    });
  assert.ok(!(await isVisible()));
  for (let i = 0; i < 5 && (await phone.isVisible("#tabs-after")); ++i) {
    await phone.tap("#tabs-after");
    await phone.waitForTimeout(600);
  }
  assert.ok(await isVisible());
  await last.tap();
  assert.equal(await last.getAttribute("aria-selected"), "true");
  await context.close();
});

test("the skip link", async () => {
  await open("fill");
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.id === "panels");
  assert.equal(await page.getAttribute("#tab-fill", "aria-selected"), "true");
});

// Also at the top of a long page.
test("the status line is always visible", async () => {
  await open("lens");
  await page.waitForSelector("#lens-map g");
  await page.evaluate(() => {
    document.getElementById("status").textContent = "Something.";
    scrollTo(0, 0);
  });
  const {
    bottom,
    height,
    page: long,
  } = await page.evaluate(() => ({
    bottom: document.getElementById("status").getBoundingClientRect().bottom,
    height: innerHeight,
    page: document.documentElement.scrollHeight,
  }));
  assert.ok(long > height && bottom <= height, `${bottom} of ${height}`);
});

test("keyboard, dark mode and a phone's width", async () => {
  await page.focus("#tab-model");
  await page.keyboard.press("ArrowRight"); // round to the first
  assert.equal(await page.getAttribute("#tab-translate", "aria-selected"), "true");
  const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.click("#theme");
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), light);
  await page.setViewportSize({ width: 380, height: 800 });
  for (const tab of ["translate", "lens", "generate", "fill", "labels", "parse", "train", "model"]) {
    await open(tab);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 380, `${tab} is ${width} wide`);
    if (tab === "model") {
      // all of it, without scrolling to the side
      await page.waitForFunction(
        () => document.querySelector("#panel-model .drawing svg")?.getBoundingClientRect().right < 380,
      );
    }
    await shoot(`phone-${tab}`);
  }
});
