"""The Python package: what it answers is what the command says, and what is wrong is told.

Run by tests/cli/with_models, with the Python that the module was built for.
"""

import ast
import inspect
import json
import operator
import os
import pathlib
import pydoc
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import heed

MODELS = pathlib.Path(os.environ["HEED_MODELS"])
GOLDEN = pathlib.Path(os.environ["HEED_GOLDEN"]).resolve()
TOP = GOLDEN.parent.parent


def command(*arguments, text=""):
    """What `heed` says, as JSON."""
    said = subprocess.run([os.environ["HEED_BINARY"], *map(str, arguments), "--json"],
                          input=text, capture_output=True, encoding="utf-8", errors="replace")
    if said.returncode != 0:
        raise RuntimeError(said.stderr)
    return said.stdout


def load(name, **options):
    return heed.load(MODELS / name, threads=1, **options)


class TestTranslate(unittest.TestCase):
    def setUp(self):
        self.model = load("marian")

    def test_equals_the_command(self):
        texts = ["The cat sat. A dog is fast.", "she lives in new york ."]
        said = json.loads(command("translate", "--model", MODELS / "marian", "--beam", 3, "--nbest", 3,
                                  "--length-penalty", 0.5, text="\n".join(texts)))["translations"]
        found = self.model.translate(texts, beam=3, nbest=3, length_penalty=0.5)
        self.assertEqual([t.alternatives for t in found], [[a["text"] for a in t["alternatives"]] for t in said])
        self.assertEqual([t.scores for t in found], [[a["score"] for a in t["alternatives"]] for t in said])
        self.assertEqual([t.sentences for t in found], [2, 1])

    def test_one_and_many(self):
        one = self.model.translate("the cat sat .")
        self.assertIsInstance(one, heed.Translation)
        self.assertEqual(str(one), one.text)
        self.assertEqual(one.score, one.scores[0])
        self.assertIn(repr(one.text), repr(one))
        many = self.model.translate(t for t in ["a dog", "the cat sat ."])
        self.assertEqual((many[1].text, many[1].score), (one.text, one.score))
        self.assertEqual(self.model.translate([]), [])

    def test_options_reach_the_search(self):
        self.assertIn("dog", self.model.translate("the cat", prefix="the dog").text)
        self.assertEqual(len(self.model.translate("the cat", nbest=4).alternatives), 4)
        self.assertNotEqual(self.model.translate("the cat", max_new_tokens=2).text, self.model.translate("the cat").text)
        with self.assertRaises(heed.Error) as raised:
            self.model.translate("the cat", beam=2, nbest=4)
        self.assertEqual(raised.exception.code, "invalid_argument")

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "no option 'beem'; did you mean 'beam'"):
            self.model.translate("the cat", beem=4)
        with self.assertRaisesRegex(TypeError, "beam: expected an int in its range, found '4'"):
            self.model.translate("the cat", beam="4")
        with self.assertRaisesRegex(TypeError, "beam"):
            self.model.translate("the cat", beam=1 << 40)
        with self.assertRaisesRegex(TypeError, "texts: expected a str, found 5"):
            self.model.translate(["the cat", 5])
        with self.assertRaisesRegex(TypeError, "texts: expected a str or a list of str, found 5"):
            self.model.translate(5)
        with self.assertRaisesRegex(heed.Error, "early_stopping must be no, yes or never, got 'best'"):
            self.model.translate("the cat", early_stopping="best")
        self.assertEqual(self.model.translate("the cat", beam=2, early_stopping=True).text,
                         self.model.translate("the cat", beam=2, early_stopping="yes").text)


class TestGenerate(unittest.TestCase):
    def setUp(self):
        self.model = load("gpt2")

    def test_equals_the_command(self):
        said = json.loads(command("generate", "--model", MODELS / "gpt2", "--prompt", "the cat",
                                  "--temperature", 1.5, "--top-k", 20, "--seed", 3, "--max-new-tokens", 8))
        found = self.model.generate("the cat", temperature=1.5, top_k=20, seed=3, max_new_tokens=8)
        self.assertEqual(found.answers[0].ids, said["sequences"][0])
        self.assertEqual(found.answers[0].score, said["scores"][0])
        self.assertEqual(found.answers[0].finish, said["finish"][0])
        self.assertEqual((found.text, str(found)), (said["texts"][0], said["texts"][0]))

    def test_many_and_nbest(self):
        found = self.model.generate(["the cat", "a dog"], max_new_tokens=5)
        self.assertEqual(found[0].text, self.model.generate("the cat", max_new_tokens=5, greedy=True).text)
        self.assertEqual(found[1].answers[0].new_tokens, 5)
        drawn = self.model.generate("the cat", nbest=3, temperature=1.5, max_new_tokens=8)
        self.assertEqual(len({a.text for a in drawn.answers}), 3)
        beams = self.model.generate("the cat", nbest=3, max_new_tokens=5)
        self.assertGreaterEqual(beams.answers[0].score, beams.answers[2].score)
        with self.assertRaisesRegex(heed.Error, "greedy"):
            self.model.generate("the cat", greedy=True, temperature=0.5)

    def test_stream(self):
        whole = self.model.generate("the cat", max_new_tokens=8).text
        stream = self.model.stream("the cat", max_new_tokens=8)
        pieces = list(stream)
        self.assertGreater(len(pieces), 2)
        self.assertEqual("".join(pieces), whole)
        self.assertEqual(stream.result().text, whole)
        self.assertEqual(list(stream), [])
        # Dropped in the middle, it does not keep the model busy; nor does it need its name to live.
        next(load("gpt2").stream("the cat", max_new_tokens=30))
        with self.assertRaisesRegex(heed.Error, "must be 1 for streaming"):
            self.model.stream("the cat", beam=2)

    def test_stop(self):
        whole = self.model.generate("the cat", max_new_tokens=8)
        found = self.model.generate("the cat", max_new_tokens=8, stop=" ")
        self.assertEqual(found.text, whole.text.split(" ")[0])
        self.assertEqual(found.answers[0].finish, "stop")

    def test_threads_share_a_model(self):
        wanted = [self.model.generate(p, max_new_tokens=8).text for p in ("the cat", "a dog", "she")]
        found = [None] * 3

        def ask(i, prompt):
            found[i] = self.model.generate(prompt, max_new_tokens=8).text

        threads = [threading.Thread(target=ask, args=a) for a in enumerate(("the cat", "a dog", "she"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, wanted)


class TestTasks(unittest.TestCase):
    def test_classify(self):
        model = load("bert-classify")
        said = json.loads(command("classify", "--model", MODELS / "bert-classify", "--pair", text="the cat\ta dog\n"))
        found = model.classify(("the cat", "a dog"))
        self.assertEqual(found.name, said["label"])
        self.assertEqual(found.name, model.labels[found.label])
        self.assertAlmostEqual(sum(found.probabilities), 1)
        many = model.classify(["the cat", ("the cat", "a dog")])
        self.assertEqual(many[1].logits, found.logits)
        self.assertNotEqual(many[0].logits, found.logits)
        with self.assertRaisesRegex(TypeError, "a pair has two str"):
            model.classify(("a", "b", "c"))

    def test_embed(self):
        model = load("bert")
        texts = ["the cat", "she lives in new york ."]
        said = [json.loads(line) for line in command("embed", "--model", MODELS / "bert", text="\n".join(texts)).splitlines()]
        found = model.embed(texts)
        self.assertEqual([list(map(float, v)) for v in found], [v["vector"] for v in said])
        one = model.embed("the cat", normalize=False)
        self.assertEqual(len(one), len(found[0]))
        self.assertNotAlmostEqual(sum(float(x) ** 2 for x in one), 1, places=3)
        with self.assertRaisesRegex(heed.Error, "pooling must be mean, first or last, got 'max'"):
            model.embed("the cat", pooling="max")

    def test_embed_with_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy (python3-numpy)")
        model = load("bert")
        found = model.embed(["the cat", "a dog", "the cat"])
        self.assertIsInstance(found, numpy.ndarray)
        self.assertEqual((found.dtype, found.ndim, found.shape[0]), (numpy.float32, 2, 3))
        self.assertEqual(model.embed("the cat").shape, found.shape[1:])
        self.assertTrue((found[0] == found[2]).all())
        self.assertEqual(model.embed([]).shape, (0, found.shape[1]))

    def test_embed_without_numpy(self):
        code = """if True:
            import sys
            sys.modules["numpy"] = None
            import heed
            model = heed.load(sys.argv[1], threads=1)
            found = model.embed(["the cat", "a dog"])
            assert type(found) is list and type(found[1]) is list and type(found[1][0]) is float
            assert model.embed("a dog") == found[1]
        """
        subprocess.run([sys.executable, "-c", code, MODELS / "bert"], check=True)

    def test_score(self):
        said = json.loads(command("score", "--model", MODELS / "gpt2", text="the cat\n").splitlines()[0])
        found = load("gpt2").score("the cat")
        self.assertEqual(found.log_probability, said["log_probability"])
        self.assertEqual(found.perplexity, said["perplexity"])
        self.assertEqual(found.ids, [t["id"] for t in said["tokens"]])
        pair = load("marian").score([("the cat", "a dog")])[0]
        said = json.loads(command("score", "--model", MODELS / "marian", text="the cat\ta dog\n").splitlines()[0])
        self.assertEqual(pair.log_probability, said["log_probability"])

    def test_tokens(self):
        model = load("bert")
        said = json.loads(command("tokenizer", "encode", "--model", MODELS / "bert", text="the dogs\n"))
        found = model.tokenize("the dogs")
        self.assertEqual((found.ids, found.pieces), (said["ids"], said["pieces"]))
        self.assertEqual(len(found), len(found.ids))
        self.assertEqual(model.detokenize(found.ids), "the dogs")
        self.assertIn("[CLS]", model.detokenize(found.ids, skip_special_tokens=False))
        # Offsets are of characters, not of bytes.
        text = "thé cat \U0001f600 dogs"
        found = model.tokenize(text, special_tokens=False)
        self.assertEqual([text[a:b] for a, b in found.offsets][-2:], ["dog", "s"])
        self.assertEqual(text[slice(*found.offsets[1])], "cat")

    def test_bytes_that_are_no_text(self):
        with tempfile.TemporaryDirectory() as folder:
            train(folder, steps=1)
            model = heed.load(folder, threads=1)
            text = model.generate("To be", temperature=3, max_new_tokens=30, seed=5).text  # bytes, at random
            self.assertIsInstance(text, str)
            self.assertEqual("".join(model.stream("To be", temperature=3, max_new_tokens=30, seed=5)), text)


class TestModel(unittest.TestCase):
    def test_says_what_it_is(self):
        model = load("bert-classify")
        self.assertEqual((model.family, model.head, model.can_generate), ("encoder_only", "classifier", False))
        self.assertEqual(model.folder, str(MODELS / "bert-classify"))
        self.assertEqual(model.vocabulary, 100)
        said = json.loads(command("info", "--model", MODELS / "bert-classify"))
        info = model.info()
        self.assertEqual((info.model_type, info.parameters), ("bert", said["parameters"]))
        self.assertEqual(info.settings["family"], "encoder_only")

    def test_errors(self):
        with self.assertRaises(heed.Error) as raised:
            heed.load("no/such/folder")
        self.assertEqual(raised.exception.code, "not_found")
        self.assertIn("no/such/folder", str(raised.exception))
        self.assertIsInstance(raised.exception, RuntimeError)
        with self.assertRaises(heed.Error) as raised:
            load("bert").generate("the cat")
        self.assertEqual((raised.exception.code, bool(raised.exception.hint)), ("unsupported", True))
        with self.assertRaises(heed.Error) as raised:
            load("bert").classify("the cat")
        self.assertEqual(raised.exception.code, "unsupported")
        with self.assertRaisesRegex(TypeError, "no option 'thread'; did you mean 'threads'"):
            heed.load(MODELS / "bert", thread=2)
        with self.assertRaisesRegex(TypeError, "no option 'special_token'; did you mean 'special_tokens'"):
            load("bert").tokenize("the cat", special_token=False)


def train(out, steps=4, **options):
    return heed.train(GOLDEN / "train" / "tiny.toml", out=out, threads=1,
                      set={"data.folder": str(GOLDEN / "train"), "train.steps": steps}, **options)


class TestTrain(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "run"

    def test_trains(self):
        seen, notes = [], []
        result = train(self.out, progress=lambda p: seen.append((p.step, p.steps, p.loss)), note=notes.append)
        self.assertEqual([s[:2] for s in seen], [(1, 4), (2, 4), (3, 4), (4, 4)])
        self.assertEqual((result.finished, result.steps, result.loss), (True, 4, seen[-1][2]))
        self.assertEqual(result.folder, str(self.out))
        self.assertGreater(result.validation["loss"], 0)
        self.assertTrue(notes)
        said = json.loads(command("train", GOLDEN / "train" / "tiny.toml", "--out", f"{self.out}2",
                                  "--set", f"data.folder={GOLDEN}/train"))
        self.assertEqual(said["loss"], result.loss)
        self.assertIsInstance(heed.load(result.folder).generate("To be", max_new_tokens=4).text, str)

    def test_stops_and_goes_on(self):
        result = train(self.out, progress=lambda p: p.step < 2)
        self.assertEqual((result.finished, result.steps), (False, 2))
        self.assertEqual(train(self.out).steps, 4)

    def test_what_a_callback_raises(self):
        def fail(progress):
            raise KeyError(progress.step)

        with self.assertRaises(KeyError) as raised:
            train(self.out, progress=fail)
        self.assertEqual(raised.exception.args, (1,))
        self.assertTrue(train(self.out).finished)

    def test_interrupt(self):
        with self.assertRaises(KeyboardInterrupt):
            train(self.out, steps=1000, progress=lambda p: os.kill(os.getpid(), signal.SIGINT))
        self.assertTrue((self.out / "checkpoints").exists())

    def test_values_of_settings(self):
        with self.assertRaises(heed.Error) as raised:
            heed.train(GOLDEN / "train" / "tiny.toml", out=self.out, set={"train.stepz": 2})
        self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaisesRegex(heed.Error, "no/such"):
            heed.train(GOLDEN / "train" / "tiny.toml", out=self.out,
                       set={"data.folder": "no/such", "data.train": ["a \"quoted\" name.txt"]})
        with self.assertRaises(TypeError):
            heed.train(GOLDEN / "train" / "tiny.toml", out=self.out, set={5: 2})
        with self.assertRaisesRegex(TypeError, "no option 'sett'; did you mean 'set'"):
            heed.train(GOLDEN / "train" / "tiny.toml", out=self.out, sett={})
        with self.assertRaisesRegex(TypeError, "out: expected a path, found 5"):
            heed.train(GOLDEN / "train" / "tiny.toml", out=5)
        with self.assertRaises(heed.Error):
            train(self.out, memory="4 apples")


class TestInterrupt(unittest.TestCase):
    """Ctrl-C ends a wait, long before the work would be done."""

    def run_interrupted(self, code):
        program = f"""if True:
            import os, signal, sys, threading, heed
            model = heed.load(sys.argv[1], threads=1)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                {code}
            except KeyboardInterrupt:
                print("interrupted", model.generate("the cat", max_new_tokens=2).answers[0].new_tokens)
        """
        said = subprocess.run([sys.executable, "-c", program, MODELS / "gpt2"], check=True, capture_output=True, text=True)
        self.assertEqual(said.stdout, "interrupted 2\n")

    def test_generate(self):
        self.run_interrupted('model.generate(["the cat"] * 100000, max_new_tokens=30, temperature=1.0)')

    def test_stream(self):
        self.run_interrupted('[list(model.stream("the cat", max_new_tokens=30)) for _ in range(100000)]')

    def test_embed(self):
        self.run_interrupted('model.embed(["the cat sat on the mat " * 4] * 50000)')


class TestStub(unittest.TestCase):
    """__init__.pyi has exactly what the module has."""

    def setUp(self):
        file = pathlib.Path(heed.__file__).parent / "__init__.pyi"
        self.tree = ast.parse(file.read_text())

    def test_marked_as_typed(self):
        self.assertTrue((pathlib.Path(heed.__file__).parent / "py.typed").exists())

    def names_of(self, body):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, ast.AnnAssign):
                yield node.target.id

    def public(self, names):
        return {n for n in names if not n.startswith("_")}

    def test_public_names(self):
        self.assertEqual(self.public(self.names_of(self.tree.body)), self.public(vars(heed)))

    def test_members_of_classes(self):
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name != "Error":
                with self.subTest(node.name):
                    found = vars(getattr(heed, node.name))
                    self.assertEqual(self.public(self.names_of(node.body)), self.public(found))

    def functions(self):
        """(name, node) of the functions that take options; of overloads each."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef) and node.args.kwonlyargs:
                yield node.name, node
            elif isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and inner.args.kwonlyargs:
                        yield f"{node.name}.{inner.name}", inner

    def test_signatures(self):
        """inspect has the parameters and defaults of the stub: no **kwargs."""
        found = dict(self.functions())
        self.assertIn("Model.translate", found)
        for name, node in self.functions():
            with self.subTest(name):
                signature = inspect.signature(operator.attrgetter(name)(heed))
                self.assertEqual(list(signature.parameters), [a.arg for a in node.args.args + node.args.kwonlyargs])
                for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults):
                    parameter = signature.parameters[argument.arg]
                    self.assertEqual(parameter.kind, parameter.KEYWORD_ONLY)
                    self.assertEqual(parameter.default, ast.literal_eval(default))

    def test_options(self):
        """What a function takes by keyword is what its signature says, with defaults that it accepts."""
        model = load("marian")
        recipe = GOLDEN / "train" / "tiny.toml"
        for function, arguments in ((heed.load, (MODELS / "marian",)), (model.translate, ("the cat",)),
                                    (model.generate, ("the cat",)), (load("gpt2").stream, ("the cat",)),
                                    (load("bert").embed, ("the cat",)), (model.score, (("the cat", "a dog"),)),
                                    (model.tokenize, ("the cat",)), (model.detokenize, ([5],)), (heed.train, (recipe,))):
            with self.subTest(function.__name__):
                with self.assertRaises(TypeError) as raised:
                    function(*arguments, no_such_option=1)
                options = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()
                           if parameter.kind == parameter.KEYWORD_ONLY}
                self.assertTrue(options)
                known = str(raised.exception).split("it takes ")[1].split(", ")
                self.assertEqual(set(known), set(options))
                if function is not heed.train:
                    function(*arguments, **options)
                    function(*arguments, **{name: None for name in options})


class TestDocs(unittest.TestCase):
    def members(self):
        for name, value in vars(heed).items():
            if name.startswith("_"):
                continue
            yield name, value
            if inspect.isclass(value) and not issubclass(value, Exception):
                for inner in vars(value):
                    if not inner.startswith("_"):
                        yield f"{name}.{inner}", getattr(value, inner)

    def test_docstrings(self):
        names = dict(self.members())
        self.assertIn("Model.translate", names)
        self.assertIn("Translation.text", names)
        for name, value in names.items():
            with self.subTest(name):
                self.assertRegex(value.__doc__ or "", r"^[A-Zexp]")
                self.assertNotIn("kwargs", value.__doc__)
                self.assertNotIn("\n--\n", value.__doc__)

    def test_help_has_every_option_with_its_text(self):
        text = pydoc.plain(pydoc.render_doc(heed.Model.translate))
        self.assertIn("beam: beam size; 1 is greedy (default 4)", text)
        self.assertRegex(text, r'early_stopping: .*; no, yes or never \(default "no"\)')
        self.assertIn("length_penalty_rule=None", text)
        self.assertIn("split_sentences=True", text)
        self.assertNotIn("kwargs", text)
        self.assertIn("beam: beam size; 1 is greedy (default 1)", heed.Model.generate.__doc__)
        text = pydoc.plain(pydoc.render_doc(heed.load))
        self.assertIn("load(folder, *, threads=0, workers=1", text)
        self.assertIn("translate, generate, classify", heed.__doc__)

    def test_reprs(self):
        model = load("marian")
        info = model.info()
        self.assertEqual(repr(info), f"heed.Info(model_type='marian', parameters={info.parameters}, weight_type='f32', "
                                     f"weight_bytes={info.weight_bytes}, flops_per_token={info.flops_per_token:.6g})")
        self.assertEqual(repr(model), f"heed.Model({str(MODELS / 'marian')!r}, model_type='marian', family='encoder_decoder', "
                                      f"head='language_model', parameters={info.parameters}, weight_type='f32')")
        one = model.translate("the cat")
        self.assertEqual(repr(one), f"heed.Translation({one.text!r}, score={one.score:.6g})")
        self.assertIn("alternatives=3", repr(model.translate("the cat", nbest=3)))
        many = load("gpt2").generate("the cat", nbest=2, max_new_tokens=5)
        self.assertEqual(repr(many), f"heed.Result({many.text!r}, score={many.answers[0].score:.6g}, finish='length', answers=2)")
        answer = many.answers[0]
        self.assertEqual(repr(answer), f"heed.Answer({answer.text!r}, score={answer.score:.6g}, new_tokens=5, finish='length')")
        found = load("bert-classify").classify("the cat")
        self.assertEqual(repr(found), f"heed.Classified({found.name!r}, probability={found.probabilities[found.label]:.6g})")
        scored = load("gpt2").score("the cat")
        self.assertEqual(repr(scored), f"heed.Scored(log_probability={scored.log_probability:.6g}, "
                                       f"perplexity={scored.perplexity:.6g}, tokens={scored.tokens})")
        tokens = load("bert").tokenize("the dogs")
        self.assertEqual(repr(tokens), f"heed.Tokens(ids={tokens.ids}, pieces={tokens.pieces})")

    def test_reprs_of_training(self):
        with tempfile.TemporaryDirectory() as out:
            seen = []
            result = train(out, steps=1, progress=lambda p: seen.append(repr(p)))
            self.assertRegex(seen[0], r"^heed\.TrainProgress\(step=1, steps=1, loss=\d")
            self.assertEqual(repr(result), f"heed.TrainResult({out!r}, steps=1, finished=True, loss={result.loss:.6g}, "
                                           f"validation={result.validation})")

    def test_installed_models(self):
        found = heed.models()
        self.assertEqual(set(found), {f.parent.name for f in TOP.glob("models/*/config.json")})
        for folder in found.values():
            self.assertTrue(pathlib.Path(folder, "config.json").exists())


if __name__ == "__main__":
    unittest.main()
