"""Measurements of scripts/bench as one list of rows: a figure of Heed compared with another program or with a limit of
the machine, with the aim and the stored ratio of such a machine.

A measurement is {"machine": {…}, "train": {CONFIG: {PROGRAM: {FIGURE: value}}}, "encode": …}; the groups are what
bench/train_peers, encode_peers, generate_peers, translate_peers and long_sequences print with --json.
"""
import json
import os

# A ratio below this share of the stored one is a regression; smaller changes are noise of a shared machine.
TOLERANCE = 0.85

# Programs by the first part of their name; what follows is a variant: torch-compiled-bf16.
PEERS = {"torch": "PyTorch", "onnxruntime": "ONNX Runtime", "ctranslate2": "CTranslate2", "llama.cpp": "llama.cpp",
         "tuned": "PyTorch tuned"}  # the last one in files before PyTorch 2

# Aims by group, configuration and figure. None: shown only.
TRAIN_SPEED = {"tiny": 2, "small": 1.4, "base": 1.2, "nano": 1.6, "gpt2": 1.2}
TRAIN_SHARE = {"tiny": 0.65, "small": 0.80, "base": 0.85}
TRAIN_MEMORY = 2  # at most half of PyTorch's
ENCODE_SPEED = {"f32": 1.05, "int8": 1.2}
ENCODE_SHARE = {"f32": 0.9}
GENERATE_SPEED = 1
GENERATE_SHARE = {"f32": 0.95, "f16": 0.92, "int8": 0.85, "int4": 0.75}
PROMPT_SHARE = {"f32": 0.85, "int8": 1.5 * 0.85}
# Multiples of CTranslate2's speed, by the model and the weight type of the configuration, and for one sentence.
TRANSLATE_SPEED = {"base-f32": 1, "base-int8": 1.3, "base-int8-1": 2, "tiny-f32": 1.5, "tiny-int8": 1.5}
# Beyond base f32, the shares that CTranslate2 reached on two cores of Zen 3, times these factors.
TRANSLATE_SHARE = {"base-f32-1": 0.85, "base-f32-1-beam": 0.85, "base-f32-32": 0.75, "base-f32-32-beam": 0.75,
                   "base-int8-1": 0.62, "base-int8-1-beam": 0.56, "base-int8-32": 1.26, "base-int8-32-beam": 1.40,
                   "tiny-f32-1": 0.18, "tiny-f32-1-beam": 0.23, "tiny-f32-32": 0.62, "tiny-f32-32-beam": 0.65,
                   "tiny-int8-1": 0.18, "tiny-int8-1-beam": 0.27, "tiny-int8-32": 0.87, "tiny-int8-32-beam": 0.79}
WEIGHT_BYTES = {"f32": 4, "int8": 1}
LONG_SHARE = {"full": 0.6, "causal": 0.6, "cached": 0.6}
DOUBLING = 2 / 2.2  # with a window, twice the length in at most 2.2 times the time


def row(group, config, figure, unit, heed, peer, peer_name, aim=None):
    return {"group": group, "config": config, "name": f"{group} {config}, {figure}", "figure": figure, "unit": unit,
            "heed": heed, "peer": peer, "peer_name": peer_name, "variant": "", "ratio": heed / peer, "aim": aim}


class Peer:
    """Figures of another program."""

    def __init__(self, program, figures):
        name, _, variant = program.partition("-")
        self.figures = figures
        self.name = " ".join(filter(None, (PEERS[name], figures.get("version"))))
        self.variant = variant.replace("-", " ")

    def row(self, group, config, figure, key, heed, aim=None):
        made = row(group, config, figure, "tokens/s", heed[key], self.figures[key], self.name, aim)
        return {**made, "variant": self.variant, "stored_as": f"{made['name']} ({self.name})"}

    def memory_row(self, group, config, heed, aim=None, figure="memory"):
        made = memory_row(group, config, heed, self.figures, self.name, aim, figure)
        return {**made, "variant": self.variant, "stored_as": f"{made['name']} ({self.name})"}


def memory_row(group, config, heed, peer, peer_name, aim=None, figure="memory"):
    made = row(group, config, figure, "MB", heed["peak_rss_bytes"] / 1e6, peer["peak_rss_bytes"] / 1e6, peer_name,
               aim)
    made["ratio"] = 1 / made["ratio"]  # less is better
    return made


# Keys: a figure of Heed, the limit of the machine, and the share measured in alternating turns.
GEMM = ("gflops", "gemm_limit_gflops", "fraction_of_limit")
PROMPT_GEMM = ("prompt_gflops", "gemm_limit_gflops", "prompt_fraction_of_limit")
READING = ("gbs", "bandwidth_limit_gbs", "fraction_of_bandwidth")


def share_row(group, config, figure, heed, keys, aim=None):
    """Compared with a limit of the machine: the best of either is shown, and the ratio is the median share. (Older
    files have only the best figures.)"""
    key, limit, share = keys
    is_gemm = limit == "gemm_limit_gflops"
    made = row(group, config, figure, "GFLOP/s" if is_gemm else "GB/s", heed[key], heed[limit],
               "GEMM limit" if is_gemm else "reading limit", aim)
    made["ratio"] = heed.get(share, made["ratio"])
    return made


def peer_in(programs):
    """The fastest of the other programs and their variants; None if none was installed."""
    found = [(program, figures) for program, figures in programs.items() if program.partition("-")[0] in PEERS]
    return Peer(*max(found, key=lambda item: item[1]["tokens_per_second"])) if found else None


def train_rows(config, programs):
    heed, peer = programs["heed"], peer_in(programs)
    if peer:
        yield peer.row("train", config, "speed", "tokens_per_second", heed, TRAIN_SPEED[config])
        yield peer.memory_row("train", config, heed, TRAIN_MEMORY)
        bf16 = programs.get("heed-bf16")  # the moments of Adam
        if bf16:
            yield peer.row("train", config, "speed in bf16", "tokens_per_second", bf16, TRAIN_SPEED[config])
            yield peer.memory_row("train", config, bf16, TRAIN_MEMORY, "memory in bf16")
        # Heed trains in f32: the same without autocast, if that is not the fastest anyway.
        f32 = peer_in({program: figures for program, figures in programs.items() if not program.endswith("-bf16")})
        if f32 and f32.variant != peer.variant:
            yield f32.row("train", config, "speed, both in f32", "tokens_per_second", heed)
    yield share_row("train", config, "share", heed, GEMM, TRAIN_SHARE.get(config))


def encode_rows(config, programs):
    heed, peer = programs["heed"], peer_in(programs)
    type_name = config.split("-")[0]
    if peer:
        yield peer.row("encode", config, "speed", "tokens_per_second", heed, ENCODE_SPEED[type_name])
        yield peer.memory_row("encode", config, heed)
    yield share_row("encode", config, "share", heed, GEMM, ENCODE_SHARE.get(type_name))


def generate_rows(config, programs):
    heed, peer = programs["heed"], peer_in(programs)
    if peer:
        for figure, key in (("speed", "tokens_per_second"), ("prompt speed", "prompt_tokens_per_second")):
            yield peer.row("generate", config, figure, key, heed, GENERATE_SPEED)
        yield peer.memory_row("generate", config, heed)
    yield share_row("generate", config, "share", heed, READING, GENERATE_SHARE[config])
    yield share_row("generate", config, "prompt share", heed, PROMPT_GEMM, PROMPT_SHARE.get(config))


def translate_rows(config, programs):
    """One sentence is bound by reading weights, many by arithmetic; a tiny model's weights stay in the caches."""
    heed, peer = programs["heed"], peer_in(programs)
    size, type_name, sentences, *_ = config.split("-")
    if peer:
        aim = TRANSLATE_SPEED.get(f"{size}-{type_name}-{sentences}", TRANSLATE_SPEED[f"{size}-{type_name}"])
        yield peer.row("translate", config, "speed", "tokens_per_second", heed, aim)
    reads = size == "base" and sentences != "32"
    yield share_row("translate", config, "share", heed, READING if reads else GEMM, TRANSLATE_SHARE.get(config))
    if peer:
        yield peer.memory_row("translate", config, heed)
    elif "peak_rss_bytes" in heed:  # compared with the size of the weights
        weights = heed["parameters"] * WEIGHT_BYTES[type_name]
        yield memory_row("translate", config, heed, {"peak_rss_bytes": weights}, "the weights alone")


def long_rows(config, programs):
    """Attention only. With a window time is linear in the length: twice the time of half the length is a ratio of 1."""
    heed = programs["heed"]
    if "half_length_ms" not in heed:
        yield share_row("long", config, "share", heed, GEMM, LONG_SHARE.get(config.split("-")[0]))
        return
    made = row("long", config, "doubling", "ms", heed["ms"], 2 * heed["half_length_ms"], "twice half the length", DOUBLING)
    # Measured in turns with GEMMs, as shares are. (Older files have only the best figures.)
    made["ratio"] = heed.get("doubling_fraction", 1 / made["ratio"])
    yield made


GROUPS = {"train": train_rows, "encode": encode_rows, "generate": generate_rows, "translate": translate_rows,
          "long": long_rows}


def rows_of(measurement):
    return [made for group, make in GROUPS.items() for config, programs in measurement.get(group, {}).items()
            for made in make(config, programs)]


def problem_of(measurement):
    """Why this JSON value is not a measurement; None if it is."""
    if not isinstance(measurement, dict):
        return "not an object"
    for key in ("machine", "date", "quick"):
        if key not in measurement:
            return f"it has no {key}"
    try:
        machine_text(measurement["machine"])
        rows_of(measurement)
    except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def read_stored(path):
    """The stored machines: [{"machine": {…}, "date": …, "ratios": {NAME: ratio}}]."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def find_stored(stored, machine):
    """The stored ratios of such a machine; those of other CPUs are not comparable."""
    return next((entry for entry in stored if entry["machine"] == machine), None)


def stored_as(r):
    """The name of a row in the stored ratios: with the program and its version, because another one is another
    comparison."""
    return r.get("stored_as", r["name"])


def name_of(stored_name):
    """The name of a row, of its stored one: without the program."""
    return stored_name.partition(" (")[0]


def with_stored(stored, measurement, rows):
    """`stored`, with these rows' ratios in the place of older ones, also of those with other programs."""
    entry = find_stored(stored, measurement["machine"]) or {"machine": measurement["machine"], "ratios": {}}
    names = {r["name"] for r in rows}
    ratios = {**{name: ratio for name, ratio in entry["ratios"].items() if name_of(name) not in names},
              **{stored_as(r): round(r["ratio"], 3) for r in rows}}
    fresh = {"machine": measurement["machine"], "date": measurement["date"], "ratios": ratios}
    return [other for other in stored if other["machine"] != measurement["machine"]] + [fresh]


def evaluate(rows, entry):
    """Adds to each row the stored ratio and a verdict: "" (fine, or no aim), "below aim", "regressed"."""
    ratios = entry["ratios"] if entry else {}
    for r in rows:
        r["stored"] = ratios.get(stored_as(r))
        if r["stored"] is not None and r["ratio"] < TOLERANCE * r["stored"]:
            r["verdict"] = "regressed"
        else:
            r["verdict"] = "below aim" if r["aim"] is not None and r["ratio"] < r["aim"] else ""
    return rows


def regressed(rows):
    return [r for r in rows if r["verdict"] == "regressed"]


def not_measured(measurement, rows, entry):
    """Names of stored rows of the measured groups that were not measured: configurations that --quick omits, and
    programs that are not installed."""
    names = {r["name"] for r in rows}
    stored = entry["ratios"] if entry else {}
    return [name for name in stored if name_of(name) not in names and name.split()[0] in measurement]


def figure_text(value, unit):
    return f"{value:,.1f}" if unit == "GB/s" or value < 100 else f"{value:,.0f}"


def ratio_text(value):
    return "–" if value is None else f"{value:.2f}"


COLUMNS = ("name", "Heed", "peer", "", "ratio", "aim", "stored", "")


def cells(r):
    return (r["name"], figure_text(r["heed"], r["unit"]), figure_text(r["peer"], r["unit"]),
            f"{r['unit']}, {r['peer_name']}" + (f" ({r['variant']})" if r["variant"] else ""), ratio_text(r["ratio"]), ratio_text(r["aim"]), ratio_text(r["stored"]),
            r["verdict"])


def table_text(rows):
    lines = [COLUMNS] + [cells(r) for r in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    left = (0, 3, 7)  # columns of words
    return "\n".join("  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def machine_text(machine):
    return f"{machine['cpu']}, instruction set {machine['instruction_set']}, {machine['threads']} threads"


def summary_text(measurement, rows, entry):
    """The table, its machine, and the findings."""
    with_aim = [r for r in rows if r["aim"] is not None]
    reached = sum(r["ratio"] >= r["aim"] for r in with_aim)
    lines = [machine_text(measurement["machine"]) + (", quick" if measurement["quick"] else ""), "",
             table_text(rows), "", f"{reached} of {len(with_aim)} aims are reached."]
    if entry:
        lines.append(f"Stored ratios are those of {entry['date']} on a machine like this.")
    else:
        lines.append("No ratios are stored for a machine like this (scripts/bench --store stores them).")
    lines += [f"regressed: {r['name']}: ratio {ratio_text(r['ratio'])}, stored {ratio_text(r['stored'])}"
              for r in regressed(rows)]
    missing = not_measured(measurement, rows, entry)
    if missing:
        lines.append(f"not measured, but stored ({len(missing)}):")
        lines += [f"  {name}: {ratio_text(entry['ratios'][name])}" for name in missing]
    return "\n".join(lines)
