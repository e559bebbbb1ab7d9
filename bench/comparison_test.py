"""Tests of comparison.py and comparison_chart.py on fixed measurements."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

import comparison
import comparison_chart
import peers

SCRIPT = os.path.join(peers.HERE, "../scripts/bench")
MACHINE = {"cpu": "Some CPU family 1 model 2", "instruction_set": "AVX2", "threads": 2}
MEASUREMENT = {
    "machine": MACHINE, "date": "2026-01-02", "quick": False,
    "train": {"tiny": {
        "heed": {"tokens_per_second": 24000.0, "gflops": 66.0, "gemm_limit_gflops": 100.0, "peak_rss_bytes": 400e6},
        "heed-bf16": {"tokens_per_second": 23000.0, "peak_rss_bytes": 250e6},
        "tuned": {"tokens_per_second": 10000.0, "peak_rss_bytes": 600e6}}},
    "encode": {"f32-8": {
        "heed": {"tokens_per_second": 1000.0, "gflops": 80.0, "gemm_limit_gflops": 100.0, "peak_rss_bytes": 500e6},
        "onnxruntime": {"tokens_per_second": 800.0, "peak_rss_bytes": 1000e6}}},
    "generate": {"int8": {
        "heed": {"tokens_per_second": 100.0, "prompt_tokens_per_second": 900.0, "gbs": 9.0, "prompt_gflops": 150.0,
                 "bandwidth_limit_gbs": 10.0, "gemm_limit_gflops": 100.0, "peak_rss_bytes": 200e6,
                 "fraction_of_bandwidth": 0.95},
        "llama.cpp": {"tokens_per_second": 125.0, "prompt_tokens_per_second": 300.0, "peak_rss_bytes": 300e6}}},
    "translate": {
        "base-f32-1": {"heed": {"gbs": 8.0, "bandwidth_limit_gbs": 10.0, "gflops": 3.0, "gemm_limit_gflops": 100.0,
                                "parameters": 60e6, "peak_rss_bytes": 300e6}},
        "tiny-int8-32-beam": {"heed": {"gbs": 8.0, "bandwidth_limit_gbs": 10.0, "gflops": 40.0,
                                       "gemm_limit_gflops": 100.0}}},
    "long": {
        "causal-512": {"heed": {"ms": 3.0, "gflops": 70.0, "gemm_limit_gflops": 100.0, "fraction_of_limit": 0.65}},
        "window-2048": {"heed": {"ms": 2.5, "half_length_ms": 1.0, "gflops": 70.0,
                                 "gemm_limit_gflops": 100.0, "fraction_of_limit": 0.7}},
        "window-4096": {"heed": {"ms": 2.5, "half_length_ms": 1.0, "gflops": 70.0, "gemm_limit_gflops": 100.0,
                                 "fraction_of_limit": 0.7, "doubling_fraction": 0.95}}},
}
RATIOS = {
    "train tiny, speed": 2.4, "train tiny, memory": 1.5, "train tiny, share": 0.66,
    "train tiny, speed in bf16": 2.3, "train tiny, memory in bf16": 2.4,
    "encode f32-8, speed": 1.25, "encode f32-8, memory": 2.0, "encode f32-8, share": 0.8,
    "generate int8, speed": 0.8, "generate int8, prompt speed": 3.0, "generate int8, memory": 1.5,
    "generate int8, share": 0.95, "generate int8, prompt share": 1.5,
    "translate base-f32-1, share": 0.8, "translate base-f32-1, memory": 0.8, "translate tiny-int8-32-beam, share": 0.4,
    "long causal-512, share": 0.65, "long window-2048, doubling": 0.8,
    "long window-4096, doubling": 0.95,
}
BELOW_AIM = ["train tiny, memory", "encode f32-8, share", "generate int8, speed", "translate base-f32-1, share",
             "translate tiny-int8-32-beam, share", "long window-2048, doubling"]


def named(rows, name):
    return next(r for r in rows if r["name"] == name)


class Rows(unittest.TestCase):
    def test_each_figure_is_a_ratio_of_which_more_is_better(self):
        rows = comparison.rows_of(MEASUREMENT)
        self.assertEqual({r["name"]: round(r["ratio"], 6) for r in rows}, RATIOS)

    def test_a_missing_program_leaves_the_shares(self):
        measurement = copy.deepcopy(MEASUREMENT)
        for group, config, program in (("train", "tiny", "tuned"), ("encode", "f32-8", "onnxruntime"),
                                       ("generate", "int8", "llama.cpp")):
            del measurement[group][config][program]
        self.assertEqual([r["name"] for r in comparison.rows_of(measurement)],
                         [name for name in RATIOS if name.endswith("share") or name[:4] in ("long", "tran")])

    def test_a_missing_group_is_left_out(self):
        measurement = {key: value for key, value in MEASUREMENT.items() if key != "train"}
        self.assertEqual([r["name"] for r in comparison.rows_of(measurement)],
                         [name for name in RATIOS if not name.startswith("train")])


class Best(unittest.TestCase):
    def test_the_best_of_each_figure_the_most_memory_and_the_typical_share(self):
        runs = [{"tokens_per_second": 5, "cpu_ms": 7.0, "peak_rss_bytes": 1, "fraction_of_limit": 0.9, "cpu": "a"},
                {"tokens_per_second": 6, "cpu_ms": 8.0, "peak_rss_bytes": 2, "fraction_of_limit": 0.5, "cpu": "a"}]
        self.assertEqual(peers.best(runs), {"tokens_per_second": 6, "cpu_ms": 7.0, "peak_rss_bytes": 2,
                                            "fraction_of_limit": 0.7, "cpu": "a"})


class Evaluate(unittest.TestCase):
    def evaluated(self, ratios, machine=MACHINE):
        stored = [{"machine": machine, "date": "2026-01-01", "ratios": ratios}]
        return comparison.evaluate(comparison.rows_of(MEASUREMENT), comparison.find_stored(stored, MACHINE))

    def test_aims(self):
        rows = self.evaluated({})
        self.assertEqual([r["name"] for r in rows if r["verdict"] == "below aim"], BELOW_AIM)
        self.assertEqual(comparison.regressed(rows), [])

    def test_more_than_15_percent_below_the_stored_ratio_is_a_regression(self):
        rows = self.evaluated({"train tiny, speed": 2.4 / 0.84, "encode f32-8, speed": 1.25 / 0.86,
                            "generate int8, memory": 0.1})
        self.assertEqual([r["name"] for r in comparison.regressed(rows)], ["train tiny, speed"])
        self.assertAlmostEqual(named(rows, "encode f32-8, speed")["stored"], 1.25 / 0.86)
        self.assertIsNone(named(rows, "train tiny, share")["stored"])

    def test_other_machines_are_not_compared_with(self):
        for change in ({"cpu": "Another"}, {"instruction_set": "AVX3"}, {"threads": 8}):
            rows = self.evaluated({"train tiny, speed": 100.0}, {**MACHINE, **change})
            self.assertEqual(comparison.regressed(rows), [])
            self.assertIsNone(named(rows, "train tiny, speed")["stored"])


class Storing(unittest.TestCase):
    def test_own_ratios_change_and_all_others_stay(self):
        other = {"machine": {**MACHINE, "threads": 8}, "date": "2025-01-01", "ratios": {"train tiny, speed": 9.0}}
        own = {"machine": MACHINE, "date": "2025-01-01", "ratios": {"train tiny, speed": 1.0, "train big, speed": 3.0}}
        fresh = comparison.with_stored([other, own], MEASUREMENT, comparison.rows_of(MEASUREMENT))
        self.assertEqual(comparison.find_stored(fresh, other["machine"]), other)
        kept = comparison.find_stored(fresh, MACHINE)
        self.assertEqual(kept["date"], "2026-01-02")
        self.assertEqual(kept["ratios"], {**RATIOS, "train big, speed": 3.0})
        self.assertEqual(len(fresh), 2)


class Pictures(unittest.TestCase):
    def test_a_bar_for_each_row(self):
        rows = comparison.evaluate(comparison.rows_of(MEASUREMENT), None)
        for svg, bars in ((comparison_chart.peers_svg(rows), 4), (comparison_chart.limits_svg(rows), 7)):
            self.assertEqual(len(xml.fromstring(svg).findall("{http://www.w3.org/2000/svg}rect")), bars)

    def test_a_line_of_markdown_for_each_row(self):
        rows = comparison.evaluate(comparison.rows_of(MEASUREMENT), None)
        text = comparison_chart.markdown(rows)
        self.assertIn("| tiny | speed | 24,000 | 10,000 | tokens/s, PyTorch tuned | 2.40 | 2.00 |\n", text)
        self.assertIn("| int8 | speed | 100 | 125 | tokens/s, llama.cpp | 0.80 (missed) | 1.00 |\n", text)
        self.assertEqual(text.count("\n| ") + 1, len(rows) + 2 * 5)  # a heading and a rule for each of five groups


class Script(unittest.TestCase):
    def run_script(self, *flags):
        return subprocess.run([sys.executable, SCRIPT, *flags], text=True, capture_output=True)

    def test_table_status_and_storing(self):
        with tempfile.TemporaryDirectory() as folder:
            measured, stored = os.path.join(folder, "bench.json"), os.path.join(folder, "ratios.json")
            with open(measured, "w", encoding="utf-8") as file:
                json.dump(MEASUREMENT, file)
            flags = ["--from", measured, "--stored", stored]

            first = self.run_script(*flags, "--store")
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertRegex(first.stdout, r"(?m)^train tiny, speed +24,000 +10,000 +tokens/s, PyTorch tuned +2.40 +2.00 +–$")
            self.assertRegex(first.stdout, r"(?m)^generate int8, speed .* 0.80 +1.00 +– +below aim$")
            self.assertIn("10 of 16 aims are reached", first.stdout)
            self.assertIn("No ratios are stored for a machine like this", first.stdout)

            same = self.run_script(*flags)
            self.assertEqual(same.returncode, 0)
            self.assertRegex(same.stdout, r"(?m)^train tiny, speed .* 2.40 +2.00 +2.40$")

            slower = copy.deepcopy(MEASUREMENT)
            slower["train"]["tiny"]["heed"]["tokens_per_second"] = 20000.0
            with open(measured, "w", encoding="utf-8") as file:
                json.dump(slower, file)
            worse = self.run_script(*flags)
            self.assertEqual(worse.returncode, 1)
            self.assertIn("regressed: train tiny, speed: ratio 2.00, stored 2.40", worse.stdout)

    def test_groups_of_later_files_replace_those_of_earlier_ones(self):
        later = {key: MEASUREMENT[key] for key in ("machine", "date", "quick")}
        later["translate"] = {"base-f32-1": MEASUREMENT["translate"]["base-f32-1"]}
        elsewhere = {**later, "machine": {**MACHINE, "threads": 8}}
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in "abc"]
            for path, content in zip(paths, (MEASUREMENT, later, elsewhere)):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(content, file)
            both = self.run_script("--from", *paths[:2])
            self.assertIn("train tiny, speed", both.stdout)
            self.assertIn("translate base-f32-1", both.stdout)
            self.assertNotIn("translate tiny-int8-32-beam", both.stdout)
            self.assertEqual(self.run_script("--from", *paths).returncode, 2)

    def test_stored_rows_that_were_not_measured_are_listed(self):
        entry = {"machine": MACHINE, "date": "2026-01-01", "ratios": {
            "train tiny, speed": 2.4, "train small, speed": 1.5, "encode f32-1, share": 0.9}}
        measurement = {key: value for key, value in MEASUREMENT.items() if key != "encode"}
        rows = comparison.evaluate(comparison.rows_of(measurement), entry)
        text = comparison.summary_text(measurement, rows, entry)
        self.assertIn("not measured, but stored (1):\n  train small, speed: 1.50", text)  # encode was not requested

    def test_nothing_quick_is_stored(self):
        with tempfile.TemporaryDirectory() as folder:
            measured, stored = os.path.join(folder, "bench.json"), os.path.join(folder, "ratios.json")
            with open(measured, "w", encoding="utf-8") as file:
                json.dump({**MEASUREMENT, "quick": True}, file)
            for flags in (["--quick"], ["--from", measured]):
                done = self.run_script("--store", "--stored", stored, *flags)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, "^error: --store .*\nhint: .*\n$")
            self.assertFalse(os.path.exists(stored))

    def test_other_json_is_a_mistake_too(self):
        broken = copy.deepcopy(MEASUREMENT)
        del broken["train"]["tiny"]["heed"]["gflops"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "other.json")
            for content in ({}, [], 3, {"machine": {}}, {**MEASUREMENT, "machine": {}}, {**MEASUREMENT, "long": 5}, broken):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(content, file)
                done = self.run_script("--from", path)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, "^error: .*other.json is no measurement.*\nhint: .*\n$")

    def test_a_mistake_is_told_from_a_regression(self):
        done = self.run_script("--heed", "/no/such/heed")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
