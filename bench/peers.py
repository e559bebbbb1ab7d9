"""Shared code of the comparisons with other programs (bench/*_peers)."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = os.path.normpath(os.path.join(HERE, "../build/peers"))  # npm packages and models
PINNED = os.path.join(HERE, "peers.txt")
VENV = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "heed", "peers")
INSTALL = "scripts/bench --install"


def fail(error, hint):
    """Exits as the command heed does on invalid arguments."""
    print(f"error: {error}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def run(command, environment=None):
    """The JSON that a command prints."""
    done = subprocess.run(command, env={**os.environ, **(environment or {})}, text=True,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def run_node(script, *arguments):
    """The JSON that a script of bench/ prints, with the packages of npm_package."""
    return run(["node", os.path.join(HERE, script), *map(str, arguments)],
               {"NODE_PATH": os.path.join(BUILD, "node_modules")})


def python_of(venv):
    return os.path.join(venv, "bin", "python")


def install(venv):
    """Makes the virtual environment with the packages of peers.txt, or completes it."""
    print(f"installing the packages of bench/peers.txt to {venv} …", file=sys.stderr)
    try:
        if not os.path.exists(python_of(venv)):
            subprocess.run([sys.executable, "-m", "venv", venv], stdout=sys.stderr, check=True)
        subprocess.run([python_of(venv), "-m", "pip", "install", "--quiet", "--requirement", PINNED],
                       stdout=sys.stderr, check=True)
    except subprocess.CalledProcessError as error:
        fail(f"{' '.join(error.cmd)} failed", "it needs python3-venv, the registry of pip, and some gigabytes of disk")


def version_of(package, venv, program):
    """The version of a package of the virtual environment; None, with a note, if it cannot be used."""
    code = f"import importlib.metadata, {package}; print(importlib.metadata.version('{package}'))"
    if not os.path.exists(python_of(venv)):
        print(f"note: without {program}: there is no virtual environment {venv}; {INSTALL} makes it", file=sys.stderr)
        return None
    done = subprocess.run([python_of(venv), "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        print(f"note: without {program}: {venv} has no package {package} that runs; {INSTALL} installs it",
              file=sys.stderr)
        return None
    return done.stdout.strip()


def run_python(venv, script, *arguments, environment=None):
    """The JSON that a script of bench/ prints, run in the virtual environment."""
    return run([python_of(venv), "-B", os.path.join(HERE, script), *map(str, arguments)], environment)


def has_npm_package(name, version, *parts):
    """Whether the package is in build/peers; installs it there if not, with only the optional dependencies `parts`.
    Install scripts are disabled."""
    if os.path.isdir(os.path.join(BUILD, "node_modules", name)):
        return True
    os.makedirs(BUILD, exist_ok=True)
    print(f"installing {name} {version} below build/peers …", file=sys.stderr)
    try:
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--omit=optional", "--prefix", BUILD,
                        *(f"{package}@{version}" for package in (name, *parts))], stdout=sys.stderr, check=True)
        return True
    except FileNotFoundError:
        print(f"note: without {name}, which needs node and npm: scripts/install-packages bench", file=sys.stderr)
    except subprocess.CalledProcessError:
        print(f"note: without {name}: npm could not install it; it needs npm's registry once", file=sys.stderr)
    return False


def model_file(interpreter, script, type_name, suffix):
    """The model with random weights that a script of bench/ writes; cached until the script changes."""
    path = os.path.join(BUILD, f"{os.path.splitext(script)[0]}-{type_name}{suffix}")
    writer = os.path.join(HERE, script)
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(writer):
        os.makedirs(BUILD, exist_ok=True)
        for folder in (path, path + ".part"):  # if the model is one
            shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([interpreter, writer, type_name, path + ".part"], check=True)
        os.replace(path + ".part", path)
    return path


def best(results):
    """Of several runs of one program: the best of each figure, the maximum of memory, and the median of shares of a
    limit (the best share would be that of a moment when the limit was slow)."""
    lowest = ("batch_ms", "cpu_ms", "half_length_ms", "ms", "prompt_ms", "step_ms")
    merged = {}
    for key, value in results[0].items():
        values = [result[key] for result in results]
        if not isinstance(value, (int, float)):
            merged[key] = value
        elif "fraction" in key:
            merged[key] = statistics.median(values)
        else:
            merged[key] = min(values) if key in lowest else max(values)
    return merged


class Comparison:
    """Runs programs alternately, so that a busy machine affects all of them alike."""

    def __init__(self, options, figures):
        self.options, self.figures = options, figures
        self.without = set()  # programs that failed

    def measure(self, name, programs):
        results = {program: [] for program in programs}
        for number in range(self.options.rounds):
            for program, measure in programs.items():
                if program in self.without:
                    continue
                print(f"{name}: round {number + 1}, {program} …", file=sys.stderr)
                try:
                    results[program].append(measure())
                except subprocess.CalledProcessError as error:
                    if program == "heed":
                        fail(f"heed failed (status {error.returncode})", "see above, or run: "
                             + " ".join(error.cmd))
                    self.without.add(program)
                    print(f"note: {program} does not run here (status {error.returncode}); what it said is "
                          "above", file=sys.stderr)
        return {program: best(runs) for program, runs in results.items() if runs}

    def print_rows(self, name, row):
        """Each figure, and for other programs the ratio in Heed's favour."""
        for program, result in row.items():
            text = f"{name:17} {program:12}"
            for key, unit, scale, decimals in self.figures:
                value, heed = result.get(key), row["heed"].get(key)
                if value is None or heed is None:
                    continue
                lower_is_better = key.endswith(("_ms", "_bytes"))
                ratio = value / heed if lower_is_better else heed / value
                behind = f"{ratio:5.2f}" if program != "heed" else ""
                text += f" {value / scale:9.{decimals}f} {unit} {behind:5}  "
            print(text.rstrip(), flush=True)

    def run(self, programs_of):
        table = {}
        for name in self.options.configs:
            table[name] = self.measure(name, programs_of(name))
            if not self.options.json:
                self.print_rows(name, table[name])
        if self.options.json:
            print(json.dumps({"threads": self.options.threads, "configs": table}, indent=2))


def parse_flags(document, configs, add_more=None, seconds=3):
    """The common flags, and those that add_more(parser) adds."""
    parser = argparse.ArgumentParser(description=document,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="*", metavar="CONFIG", help=", ".join(configs))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=seconds, help="of each program in each round")
    parser.add_argument("--heed", default=os.path.join(HERE, "../build/release/bin/heed"))
    parser.add_argument("--venv", default=VENV, metavar="DIR", help="virtual environment with other programs")
    parser.add_argument("--json", action="store_true")
    if add_more:
        add_more(parser)
    options = parser.parse_args()
    options.configs = options.configs or list(configs)
    unknown = [c for c in options.configs if c not in configs]
    if unknown:
        fail(f"no configuration {', '.join(unknown)}", f"there are {', '.join(configs)}")
    if not os.path.exists(options.heed):
        fail(f"{options.heed} is not there", "scripts/build makes it")
    return options
