// report.html of a training in Chromium: values at the cursor, log scale, smoothing, light and dark, samples.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { chromium } from "playwright-core";

const pictures = process.env.HEED_SCREENSHOTS;
let folder, browser, page;
const complaints = [];

// Upper case of a few words: a translation that a tiny model learns a little of.
function writeCorpus() {
  const words = ["aba", "bab", "cab", "abc"];
  for (const [name, count] of [
    ["train", 240],
    ["valid", 20],
  ]) {
    const lines = Array.from({ length: count }, (_, i) =>
      Array.from({ length: 2 + (i % 4) }, (_, k) => words[(i * 7 + k * k + (name === "valid")) % 4]).join(" "),
    );
    writeFileSync(join(folder, `${name}.a`), lines.map((line) => `${line}\n`).join(""));
    writeFileSync(join(folder, `${name}.b`), lines.map((line) => `${line.toUpperCase()}\n`).join(""));
  }
}

before(async () => {
  mkdirSync(pictures, { recursive: true });
  folder = mkdtempSync(join(tmpdir(), "heed-report-"));
  writeCorpus();
  const recipe = join(process.env.HEED_GOLDEN, "train/pairs.toml");
  const sets = ["train.steps=60", "train.log_every=1", "train.checkpoint_every=30", "validate.every=20"];
  execFileSync(
    process.env.HEED,
    ["train", recipe, "--threads", "1", "--out", "my-run", ...sets.flatMap((set) => ["--set", set])],
    { cwd: folder, stdio: "pipe" },
  );
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => request.url().endsWith("report.html") || complaints.push(request.url()));
  await page.goto(`file://${folder}/my-run/report.html`);
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});
afterEach(() => assert.deepEqual(complaints.splice(0), []));

test("the run: name, recipe, data, machine, samples", async () => {
  assert.equal(await page.textContent("h1"), "my-run: training report");
  const text = await page.textContent("body");
  for (const part of ["pairs.toml", "240 examples", "train.a", "CPUs", "60 of 60", "peak memory", "train.steps"])
    assert.ok(text.includes(part), part);
  assert.deepEqual(await page.locator(".samples th").allTextContents(), ["source", "output", "reference"]);
  assert.equal(await page.locator(".samples tr:nth-child(2) td").count(), 3);
  assert.deepEqual(
    readdirSync(join(folder, "my-run")).filter((name) => name.includes("tfevents")),
    [],
  );
  await page.screenshot({ path: join(pictures, "report.png"), fullPage: true });
});

test("values at the cursor", async () => {
  const loss = page.locator("figure").first();
  assert.match(await loss.locator(".legend").textContent(), /training .*validation .*step 60$/);
  await loss.locator("svg").hover({ position: { x: 120, y: 60 } });
  const step = Number((await loss.locator(".legend").textContent()).match(/step (\d+)$/)[1]);
  assert.ok(step > 0 && step < 30, String(step));
  assert.equal(await loss.locator(".cursor").getAttribute("visibility"), "visible");
});

test("log scale and smoothing", async () => {
  const curve = () => page.locator("figure path.c0:not(.raw)").first().getAttribute("d");
  const labels = () => page.locator("figure").first().locator("svg text").allTextContents();
  const plain = await curve(),
    before = await labels();
  assert.ok(
    before.every((text, i) => text !== before[i - 1]),
    before.join(),
  );
  await page.check("#log");
  assert.notEqual(await curve(), plain);
  await page.uncheck("#log");
  assert.equal(await curve(), plain);
  await page.locator("#smooth").fill("0.9");
  assert.notEqual(await curve(), plain);
  assert.ok((await page.locator("path.raw").count()) > 0);
  await page.check("#log");
  const levels = await page
    .locator("figure svg")
    .evaluateAll((list) => list.map((svg) => svg.querySelectorAll("text[text-anchor=end]").length));
  assert.ok(
    levels.every((count) => count >= 2),
    levels.join(),
  );
  await page.screenshot({ path: join(pictures, "report-smooth.png"), fullPage: true });
  await page.uncheck("#log");
  await page.locator("#smooth").fill("0");
});

test("dark mode and a phone's width", async () => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.click("#theme");
  assert.notEqual(await ground(), light);
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await page.screenshot({ path: join(pictures, "phone-report.png"), fullPage: true });
});

// The curves are there without scripts, too.
test("without JavaScript", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(`file://${folder}/my-run/report.html`);
  assert.ok((await plain.locator("figure svg path").count()) >= 3);
  assert.ok(await plain.isHidden(".controls"));
  await context.close();
});
