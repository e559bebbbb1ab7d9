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
        "torch-eager-f32": {"tokens_per_second": 8000.0, "peak_rss_bytes": 700e6, "version": "2.9.1"},
        "torch-compiled-f32": {"tokens_per_second": 9600.0, "peak_rss_bytes": 900e6, "version": "2.9.1"},
        "torch-compiled-bf16": {"tokens_per_second": 10000.0, "peak_rss_bytes": 600e6, "version": "2.9.1"}}},
    "encode": {"f32-8": {
        "heed": {"tokens_per_second": 1000.0, "gflops": 80.0, "gemm_limit_gflops": 100.0, "peak_rss_bytes": 500e6},
        "onnxruntime": {"tokens_per_second": 800.0, "peak_rss_bytes": 1000e6}}},
    "generate": {"int8": {
        "heed": {"tokens_per_second": 100.0, "prompt_tokens_per_second": 900.0, "gbs": 9.0, "prompt_gflops": 150.0,
                 "bandwidth_limit_gbs": 10.0, "gemm_limit_gflops": 100.0, "peak_rss_bytes": 200e6,
                 "fraction_of_bandwidth": 0.95},
        "llama.cpp": {"tokens_per_second": 125.0, "prompt_tokens_per_second": 300.0, "peak_rss_bytes": 300e6}}},
    "translate": {
        "base-int8-1-beam": {"heed": {"tokens_per_second": 300.0, "gbs": 8.0, "bandwidth_limit_gbs": 10.0,
                                      "gflops": 40.0, "gemm_limit_gflops": 100.0, "peak_rss_bytes": 100e6},
                             "ctranslate2": {"tokens_per_second": 200.0, "peak_rss_bytes": 150e6, "version": "4.8.4"}},
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
    "train tiny, speed in bf16": 2.3, "train tiny, memory in bf16": 2.4, "train tiny, speed, both in f32": 2.5,
    "encode f32-8, speed": 1.25, "encode f32-8, memory": 2.0, "encode f32-8, share": 0.8,
    "generate int8, speed": 0.8, "generate int8, prompt speed": 3.0, "generate int8, memory": 1.5,
    "generate int8, share": 0.95, "generate int8, prompt share": 1.5,
    "translate base-int8-1-beam, speed": 1.5, "translate base-int8-1-beam, share": 0.8,
    "translate base-int8-1-beam, memory": 1.5, "translate base-f32-1, share": 0.8, "translate base-f32-1, memory": 0.8, "translate tiny-int8-32-beam, share": 0.4,
    "long causal-512, share": 0.65, "long window-2048, doubling": 0.8,
    "long window-4096, doubling": 0.95,
}
BELOW_AIM = ["train tiny, memory", "encode f32-8, share", "generate int8, speed", "translate base-int8-1-beam, speed",
             "translate base-f32-1, share", "translate tiny-int8-32-beam, share", "long window-2048, doubling"]
PROGRAMS = {"train": "PyTorch 2.9.1", "encode": "ONNX Runtime", "generate": "llama.cpp",
            "translate": "CTranslate2 4.8.4"}


def as_stored(ratios):
    """With the program in the name, as it is stored; limits have none."""
    def stored_name(name):
        if name.endswith(("share", "doubling")) or name == "translate base-f32-1, memory":
            return name
        return f"{name} ({PROGRAMS[name.split()[0]]})"

    return {stored_name(name): ratio for name, ratio in ratios.items()}


def named(rows, name):
    return next(r for r in rows if r["name"] == name)


class Rows(unittest.TestCase):
    def test_each_figure_is_a_ratio_of_which_more_is_better(self):
        rows = comparison.rows_of(MEASUREMENT)
        self.assertEqual({r["name"]: round(r["ratio"], 6) for r in rows}, RATIOS)

    def test_a_missing_program_leaves_the_shares(self):
        measurement = copy.deepcopy(MEASUREMENT)
        for group, config in (("train", "tiny"), ("encode", "f32-8"), ("generate", "int8")):
            measurement[group][config] = {"heed": measurement[group][config]["heed"]}
        self.assertEqual([r["name"] for r in comparison.rows_of(measurement)],
                         [name for name in RATIOS if name.endswith("share") or name[:4] in ("long", "tran")])

    def test_the_fastest_variant_counts(self):
        measurement = copy.deepcopy(MEASUREMENT)
        found = named(comparison.rows_of(measurement), "train tiny, speed")
        self.assertEqual((found["peer"], found["peer_name"], found["variant"]), (10000, "PyTorch 2.9.1", "compiled bf16"))
        measurement["train"]["tiny"]["torch-eager-f32"]["tokens_per_second"] = 12000.0
        rows = comparison.rows_of(measurement)
        self.assertEqual(named(rows, "train tiny, speed")["variant"], "eager f32")
        self.assertEqual(named(rows, "train tiny, memory")["peer"], 700)
        self.assertNotIn("train tiny, speed, both in f32", [r["name"] for r in rows])  # it is the row above

    def test_files_of_earlier_programs_are_read(self):
        measurement = copy.deepcopy(MEASUREMENT)
        programs = measurement["train"]["tiny"]
        measurement["train"]["tiny"] = {"heed": programs["heed"], "tuned": programs["torch-compiled-bf16"]}
        del measurement["train"]["tiny"]["tuned"]["version"]
        self.assertEqual(named(comparison.rows_of(measurement), "train tiny, speed")["peer_name"], "PyTorch tuned")

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
        stored = [{"machine": machine, "date": "2026-01-01", "ratios": as_stored(ratios)}]
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


    def test_other_versions_of_a_program_are_not_compared_with(self):
        stored = [{"machine": MACHINE, "date": "2026-01-01", "ratios": {"train tiny, speed (PyTorch tuned)": 100.0}}]
        rows = comparison.evaluate(comparison.rows_of(MEASUREMENT), stored[0])
        self.assertIsNone(named(rows, "train tiny, speed")["stored"])
        self.assertEqual(comparison.not_measured(MEASUREMENT, rows, stored[0]), [])
        fresh = comparison.with_stored(stored, MEASUREMENT, rows)[0]["ratios"]
        self.assertEqual([name for name in fresh if name.startswith("train tiny, speed (")],
                         ["train tiny, speed (PyTorch 2.9.1)"])


class Storing(unittest.TestCase):
    def test_own_ratios_change_and_all_others_stay(self):
        other = {"machine": {**MACHINE, "threads": 8}, "date": "2025-01-01", "ratios": {"train tiny, speed": 9.0}}
        own = {"machine": MACHINE, "date": "2025-01-01", "ratios": as_stored({
            "train tiny, speed": 1.0, "train big, speed": 3.0})}
        fresh = comparison.with_stored([other, own], MEASUREMENT, comparison.rows_of(MEASUREMENT))
        self.assertEqual(comparison.find_stored(fresh, other["machine"]), other)
        kept = comparison.find_stored(fresh, MACHINE)
        self.assertEqual(kept["date"], "2026-01-02")
        self.assertEqual(kept["ratios"], as_stored({**RATIOS, "train big, speed": 3.0}))
        self.assertEqual(len(fresh), 2)


class Pictures(unittest.TestCase):
    def test_a_bar_for_each_row(self):
        rows = comparison.evaluate(comparison.rows_of(MEASUREMENT), None)
        for svg, bars in ((comparison_chart.peers_svg(rows), 5), (comparison_chart.limits_svg(rows), 8)):
            self.assertEqual(len(xml.fromstring(svg).findall("{http://www.w3.org/2000/svg}rect")), bars)

    def test_a_line_of_markdown_for_each_row(self):
        rows = comparison.evaluate(comparison.rows_of(MEASUREMENT), None)
        text = comparison_chart.markdown(rows)
        self.assertIn("| tiny | speed | 24,000 | 10,000 | tokens/s, PyTorch 2.9.1 (compiled bf16) | 2.40 | 2.00 |\n", text)
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
            self.assertRegex(first.stdout, r"(?m)^train tiny, speed +24,000 +10,000 +tokens/s, PyTorch 2.9.1 \(compiled bf16\) +2.40 +2.00 +–$")
            self.assertRegex(first.stdout, r"(?m)^generate int8, speed .* 0.80 +1.00 +– +below aim$")
            self.assertIn("11 of 18 aims are reached", first.stdout)
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
        entry = {"machine": MACHINE, "date": "2026-01-01", "ratios": as_stored({
            "train tiny, speed": 2.4, "train small, speed": 1.5, "encode f32-1, share": 0.9})}
        measurement = {key: value for key, value in MEASUREMENT.items() if key != "encode"}
        rows = comparison.evaluate(comparison.rows_of(measurement), entry)
        text = comparison.summary_text(measurement, rows, entry)
        self.assertIn("not measured, but stored (1):\n  train small, speed (PyTorch 2.9.1): 1.50", text)  # encode was not requested

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


class Programs(unittest.TestCase):
    """The comparisons run without the other programs, and say so."""

    def test_without_the_virtual_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            heed = os.path.join(folder, "heed")
            with open(heed, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho '{\"tokens_per_second\": 5, \"batch_ms\": 1}'\n")
            os.chmod(heed, 0o755)
            for script, config, program in (("train_peers", "tiny", "PyTorch"), ("encode_peers", "f32-1", "ONNX Runtime"),
                                            ("translate_peers", "tiny-f32-1", "CTranslate2")):
                with self.subTest(script):
                    done = subprocess.run([sys.executable, "-B", os.path.join(peers.HERE, script), "--json", "--rounds", "1",
                                           "--heed", heed, "--venv", os.path.join(folder, "none"), config],
                                          text=True, capture_output=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(json.loads(done.stdout)["configs"], {config: {"heed": {"tokens_per_second": 5, "batch_ms": 1}}})
                    self.assertRegex(done.stderr, f"note: without {program}: .*scripts/bench --install")

    def test_versions_are_pinned(self):
        with open(peers.PINNED, encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
        self.assertLessEqual({"torch", "ctranslate2", "onnxruntime"}, {line.split("==")[0] for line in lines})
        for line in lines:
            self.assertRegex(line, r"^[a-z0-9-]+==[0-9.]+$")


if __name__ == "__main__":
    unittest.main()
