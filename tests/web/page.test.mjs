// Every tab of the page in Chromium: type, see the result, hover, choose, slide. Screenshots go to
// $HEED_SCREENSHOTS.
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { chromium } from "playwright-core";
import { startServer } from "./heed.mjs";

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

// Whether pointing at some word of one side lights up words of the other. Not every word need: what
// comes from a special token comes from no word.
async function lightsUp(from, to) {
  for (const word of await page.locator(`${from} span[tabindex]`).all()) {
    await word.hover();
    if (await page.locator(`${to} span.lit`).count()) return true;
  }
  return false;
}

test("Translate: candidates, and words that light up together", async () => {
  await open("translate");
  await page.fill("#translate-input", "the cat sat on the mat");
  await page.waitForSelector("#panel-translate td.score");
  assert.equal(await page.locator("#panel-translate td.score").count(), 4);
  assert.ok(await lightsUp("#words-target", "#words-source"));
  assert.ok(await lightsUp("#words-source", "#words-target"));
  await shoot("translate");
});

test("Translate: a term is used, and shown to be", async () => {
  await page.click("#panel-translate summary");
  await page.fill("#translate-terms", "cat = new york\nhorse = fast");
  await page.waitForSelector("#panel-translate .terms li");
  assert.deepEqual(await page.locator("#panel-translate .terms li").allTextContents(), ["cat → new york"]);
  assert.match(await page.textContent("#translate-output"), /new york/);
  await shoot("translate-terms");
});

test("Lens: every head, one large, where a token looks", async () => {
  await open("lens");
  await page.waitForSelector("#lens-map g"); // what was typed before is here already
  const heads = page.locator("#panel-lens .heads button");
  assert.ok((await heads.count()) >= 4);
  await heads.last().click();
  assert.equal(await heads.last().getAttribute("aria-pressed"), "true");
  await page.locator("#lens-map g").first().hover();
  assert.match(await page.textContent("#lens-looks"), /looks at/);
  await page.selectOption("#lens-kind", "encoder");
  await page.waitForSelector("#lens-map g");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("text=SVG")]);
  assert.match(saved.suggestedFilename(), /\.svg$/);
  const [png] = await Promise.all([page.waitForEvent("download"), page.click("text=PNG")]);
  assert.match(png.suggestedFilename(), /\.png$/);
  await shoot("lens");
});

test("Generate: bars, sliders, a text that grows, another way", async () => {
  await open("generate");
  await page.fill("#generate-input", "the cat");
  await page.waitForSelector("#generate-next li");
  const before = await page.locator("#generate-next .value").first().textContent();
  await page.locator("#panel-generate input[type=range]").first().fill("0.2");
  assert.notEqual(await page.locator("#generate-next .value").first().textContent(), before);
  await page.click("#generate-go");
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("pieces"));
  assert.ok((await page.inputValue("#generate-input")).startsWith("the cat"));
  await page.waitForSelector("#generate-tokens button");
  await page.locator("#generate-tokens button").nth(1).click();
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("could have"));
  await page.locator("#generate-next button").first().click();
  await page.waitForFunction(() => document.getElementById("generate-input").value.startsWith("the "));
  await shoot("generate");
});

test("Fill: candidates, and one that is put in", async () => {
  await open("fill");
  await page.fill("#fill-input", "the [MASK] sat");
  await page.waitForSelector("#fill-results li");
  assert.equal(await page.locator("#fill-results li").count(), 8);
  await shoot("fill");
  await page.locator("#fill-results button").first().click();
  assert.ok(!(await page.inputValue("#fill-input")).includes("[MASK]"));
});

test("Classify & tag", async () => {
  await open("labels");
  await page.waitForSelector("#labels-results li");
  assert.equal(await page.locator("#labels-results li").count(), 3);
  await page.selectOption("#panel-labels select", "tags");
  await page.waitForSelector("#labels-results .tags");
  await shoot("labels");
});

test("Parse: a tree with the words as leaves", async () => {
  await open("parse");
  await page.fill("#parse-input", "the cat sat");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#parse-results svg");
  assert.deepEqual(await page.locator("#parse-results text.leaf").allTextContents(), ["the", "cat", "sat"]);
  await shoot("parse");
});

test("Train: curves that grow with the training, samples, and a sweep's table", async () => {
  await open("train");
  await page.selectOption("#train-run", "live");
  await page.waitForSelector("#train-charts svg");
  assert.match(await page.textContent("#train-facts"), /200 of 300/);
  assert.deepEqual(await page.locator("#train-charts h3").allTextContents(), ["Loss", "BLEU", "Learning rate", "Tokens per second", "Gradient norm"]);
  await page.locator("#train-charts svg").first().hover({ position: { x: 60, y: 40 } });
  assert.match(await page.locator("#train-charts figcaption").first().textContent(), /step (10|20|30)$/);
  await page.locator("#panel-train input[type=range]").fill("0");
  assert.match(await page.textContent("#train-samples"), /step 50/);
  await shoot("train");
  appendFileSync(join(server.folder, "runs/live/log.jsonl"), `${JSON.stringify({ kind: "train", step: 210, loss: 1.1, seconds: 210, tokens_per_second: 9000 })}\n`);
  await page.waitForFunction(() => document.getElementById("train-facts").textContent.includes("210 of 300"));
  assert.match(await page.textContent("#train-samples"), /step 50/); // what was chosen stays
  await page.selectOption("#train-run", "table3");
  await page.waitForSelector("#train-sweep");
  assert.equal(await page.textContent("#train-sweep b"), "24.25");
  await shoot("train-sweep");
});

test("Model: the architecture of each", async () => {
  await open("model");
  await page.waitForSelector("#panel-model .drawing svg");
  assert.match(await page.textContent("#model-facts"), /Parameters/);
  for (const name of ["gpt", "mlm"]) {
    await page.selectOption("#panel-model select", name);
    await page.waitForFunction((kind) => document.getElementById("model-facts").textContent.includes(kind), name === "gpt" ? "gpt2" : "bert");
  }
  await shoot("model");
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
    await shoot(`phone-${tab}`);
  }
});
