#!/usr/bin/env python3
"""Reference outputs in double precision, for architectures that no golden file of transformers covers.

Plain Python on purpose: it needs no package and shares no code with Heed. It reads a folder
(config.json, model.safetensors), runs the model as transformers 4.47 would, and writes golden.json and
golden.safetensors next to them.   tests/golden/reference.py tests/golden/models/gemma2 …
"""
import json
import math
import struct
import sys

SEQUENCE = [5, 3, 9, 14, 7, 22, 8, 11, 4, 6]
TARGET = [2, 17, 6, 3, 12]


# ---- files -------------------------------------------------------------------------------------


def nested(flat, shape):
    if len(shape) <= 1:
        return flat
    step = len(flat) // shape[0]
    return [nested(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def read_safetensors(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        tensors[name] = nested(list(struct.unpack(f"<{len(raw) // 4}f", raw)), entry["shape"])
    return tensors


def write_safetensors(path, name, rows):
    data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    shape = [len(rows), len(rows[0])]
    header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}})
    header += " " * (-len(header) % 8)
    open(path, "wb").write(struct.pack("<Q", len(header)) + header.encode() + data)


# ---- pieces ------------------------------------------------------------------------------------


def linear(x, weight, bias=None):
    bias = bias or [0.0] * len(weight)
    return [[sum(a * b for a, b in zip(row, w)) + b0 for w, b0 in zip(weight, bias)] for row in x]


def rms_norm(x, gamma, eps, offset=0.0):
    out = []
    for row in x:
        scale = 1 / math.sqrt(sum(t * t for t in row) / len(row) + eps)
        out.append([t * scale * (offset + g) for t, g in zip(row, gamma)])
    return out


def layer_norm(x, gamma, beta, eps):
    out = []
    for row in x:
        mean = sum(row) / len(row)
        scale = 1 / math.sqrt(sum((t - mean) ** 2 for t in row) / len(row) + eps)
        out.append([(t - mean) * scale * g + b for t, g, b in zip(row, gamma, beta)])
    return out


def add(x, y):
    return [[a + b for a, b in zip(r, s)] for r, s in zip(x, y)]


def multiply(x, y):
    return [[a * b for a, b in zip(r, s)] for r, s in zip(x, y)]


def apply(function, x):
    return [[function(t) for t in row] for row in x]


def gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + math.exp(-x))


def relu(x):
    return max(x, 0.0)


def softmax(scores):
    top = max(scores)
    powers = [math.exp(s - top) for s in scores]
    total = sum(powers)
    return [p / total for p in powers]


def attention(q, k, v, heads, kv_heads, scale, sees, soft_cap=0):
    """sees(i, j): whether query i sees key j."""
    dim = len(q[0]) // heads
    out = [[0.0] * (heads * dim) for _ in q]
    for h in range(heads):
        g = h // (heads // kv_heads)
        for i, query in enumerate(q):
            keys = [j for j in range(len(k)) if sees(i, j)]
            scores = [scale * sum(query[h * dim + d] * k[j][g * dim + d] for d in range(dim)) for j in keys]
            if soft_cap:
                scores = [soft_cap * math.tanh(s / soft_cap) for s in scores]
            for p, j in zip(softmax(scores), keys):
                for d in range(dim):
                    out[i][h * dim + d] += p * v[j][g * dim + d]
    return out


def causal(window=None):
    return lambda i, j: j <= i and (window is None or j > i - window)


def rope(x, heads, frequencies):
    """Turns the first 2 · len(frequencies) coordinates of each head; pairs are half of them apart."""
    dim, n = len(x[0]) // heads, len(frequencies)
    out = [row[:] for row in x]
    for i, row in enumerate(x):
        for h in range(heads):
            for d, frequency in enumerate(frequencies):
                cos, sin = math.cos(i * frequency), math.sin(i * frequency)
                a, b = row[h * dim + d], row[h * dim + n + d]
                out[i][h * dim + d] = a * cos - b * sin
                out[i][h * dim + n + d] = b * cos + a * sin
    return out


def rope_frequencies(base, dim, scaling=None):
    plain = [base ** (-2 * i / dim) for i in range(dim // 2)]
    if not scaling:
        return plain
    assert scaling["rope_type"] == "llama3"
    length, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    out = []
    for f in plain:
        wave = 2 * math.pi / f
        if wave < length / high:
            out.append(f)
        elif wave > length / low:
            out.append(f / factor)
        else:
            smooth = (length / wave - low) / (high - low)
            out.append((1 - smooth) * f / factor + smooth * f)
    return out


# ---- models ------------------------------------------------------------------------------------


def llama_like(c, w):
    """llama, qwen2 and gemma2."""
    gemma = c["model_type"] == "gemma2"
    embedding = w["model.embed_tokens.weight"]
    heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
    frequencies = rope_frequencies(c["rope_theta"], c["head_dim"], c.get("rope_scaling"))
    scale = (c["query_pre_attn_scalar"] if gemma else c["head_dim"]) ** -0.5

    def norm(x, name):
        return rms_norm(x, w[name + ".weight"], c["rms_norm_eps"], 1.0 if gemma else 0.0)

    def project(x, name):
        return linear(x, w[name + ".weight"], w.get(name + ".bias"))

    x = [embedding[t] for t in SEQUENCE]
    if gemma:
        x = apply(lambda t: t * math.sqrt(c["hidden_size"]), x)
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        window = None
        if gemma and i % 2 == 0:
            window = c["sliding_window"]
        if c.get("use_sliding_window") and i >= c["max_window_layers"]:
            window = c["sliding_window"]
        h = norm(x, layer + "input_layernorm")
        q, k, v = (project(h, layer + f"self_attn.{name}_proj") for name in "qkv")
        q, k = rope(q, heads, frequencies), rope(k, kv_heads, frequencies)
        cap = c["attn_logit_softcapping"] if gemma else 0
        h = attention(q, k, v, heads, kv_heads, scale, causal(window), cap)
        h = project(h, layer + "self_attn.o_proj")
        x = add(x, norm(h, layer + "post_attention_layernorm") if gemma else h)
        h = norm(x, layer + ("pre_feedforward_layernorm" if gemma else "post_attention_layernorm"))
        gate = apply(gelu_tanh if gemma else silu, project(h, layer + "mlp.gate_proj"))
        h = project(multiply(gate, project(h, layer + "mlp.up_proj")), layer + "mlp.down_proj")
        x = add(x, norm(h, layer + "post_feedforward_layernorm") if gemma else h)
    logits = linear(norm(x, "model.norm"), w.get("lm_head.weight", embedding))
    if gemma:
        cap = c["final_logit_softcapping"]
        logits = apply(lambda t: cap * math.tanh(t / cap), logits)
    return logits


def gpt_neox(c, w):
    heads = c["num_attention_heads"]
    dim = c["hidden_size"] // heads
    frequencies = rope_frequencies(c["rotary_emb_base"], int(dim * c["rotary_pct"]))

    def norm(x, name):
        return layer_norm(x, w[name + ".weight"], w[name + ".bias"], c["layer_norm_eps"])

    def project(x, name):
        return linear(x, w[name + ".weight"], w.get(name + ".bias"))

    x = [w["gpt_neox.embed_in.weight"][t] for t in SEQUENCE]
    for i in range(c["num_hidden_layers"]):
        layer = f"gpt_neox.layers.{i}."
        qkv = project(norm(x, layer + "input_layernorm"), layer + "attention.query_key_value")
        q, k, v = ([[row[(3 * h + part) * dim + d] for h in range(heads) for d in range(dim)] for row in qkv]
                   for part in range(3))
        q, k = rope(q, heads, frequencies), rope(k, heads, frequencies)
        h = attention(q, k, v, heads, heads, dim ** -0.5, causal())
        attended = add(x, project(h, layer + "attention.dense"))
        h = norm(x if c["use_parallel_residual"] else attended, layer + "post_attention_layernorm")
        h = project(apply(gelu, project(h, layer + "mlp.dense_h_to_4h")), layer + "mlp.dense_4h_to_h")
        x = add(attended, h)
    return linear(norm(x, "gpt_neox.final_layer_norm"), w["embed_out.weight"])


def opt(c, w):
    heads, width = c["num_attention_heads"], c["hidden_size"]
    before = c["do_layer_norm_before"]
    activation = {"relu": relu, "gelu": gelu}[c["activation_function"]]

    def norm(x, name):
        return layer_norm(x, w[name + ".weight"], w[name + ".bias"], 1e-5)

    def project(x, name):
        return linear(x, w[name + ".weight"], w.get(name + ".bias"))

    def branch(x, name, function):
        return add(x, function(norm(x, name))) if before else norm(add(x, function(x)), name)

    tokens, positions = w["model.decoder.embed_tokens.weight"], w["model.decoder.embed_positions.weight"]
    x = [[a + b for a, b in zip(tokens[t], positions[p + 2])] for p, t in enumerate(SEQUENCE)]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.decoder.layers.{i}."

        def attend(h):
            q, k, v = (project(h, layer + f"self_attn.{name}_proj") for name in "qkv")
            h = attention(q, k, v, heads, heads, (width // heads) ** -0.5, causal())
            return project(h, layer + "self_attn.out_proj")

        def feed(h):
            return project(apply(activation, project(h, layer + "fc1")), layer + "fc2")

        x = branch(x, layer + "self_attn_layer_norm", attend)
        x = branch(x, layer + "final_layer_norm", feed)
    return linear(norm(x, "model.decoder.final_layer_norm") if before else x, tokens)


def pre_norm_seq2seq(c, w):
    """pegasus and m2m_100."""
    width, embedding = c["d_model"], w["model.shared.weight"]
    half = width // 2
    activation = {"relu": relu, "gelu": gelu}[c["activation_function"]]

    def position(p):
        if c["model_type"] == "m2m_100":
            p += c["pad_token_id"] + 1
            frequencies = [math.exp(-i * math.log(10000) / (half - 1)) for i in range(half)]
        else:
            frequencies = [10000 ** (-2 * i / width) for i in range(half)]
        return [math.sin(p * f) for f in frequencies] + [math.cos(p * f) for f in frequencies]

    def embed(tokens):
        scale = math.sqrt(width) if c["scale_embedding"] else 1
        return [[scale * a + b for a, b in zip(embedding[t], position(p))] for p, t in enumerate(tokens)]

    def norm(x, name):
        return layer_norm(x, w[name + ".weight"], w[name + ".bias"], 1e-5)

    def project(x, name):
        return linear(x, w[name + ".weight"], w[name + ".bias"])

    def attend(x, memory, name, heads, sees):
        q, k, v = project(x, name + ".q_proj"), project(memory, name + ".k_proj"), project(memory, name + ".v_proj")
        return project(attention(q, k, v, heads, heads, (width // heads) ** -0.5, sees), name + ".out_proj")

    def everything(i, j):
        return True

    x = embed(SEQUENCE)
    for i in range(c["encoder_layers"]):
        layer = f"model.encoder.layers.{i}."
        h = norm(x, layer + "self_attn_layer_norm")
        x = add(x, attend(h, h, layer + "self_attn", c["encoder_attention_heads"], everything))
        h = norm(x, layer + "final_layer_norm")
        x = add(x, project(apply(activation, project(h, layer + "fc1")), layer + "fc2"))
    memory = norm(x, "model.encoder.layer_norm")
    x = embed(TARGET)
    for i in range(c["decoder_layers"]):
        layer, heads = f"model.decoder.layers.{i}.", c["decoder_attention_heads"]
        h = norm(x, layer + "self_attn_layer_norm")
        x = add(x, attend(h, h, layer + "self_attn", heads, causal()))
        h = norm(x, layer + "encoder_attn_layer_norm")
        x = add(x, attend(h, memory, layer + "encoder_attn", heads, everything))
        h = norm(x, layer + "final_layer_norm")
        x = add(x, project(apply(activation, project(h, layer + "fc1")), layer + "fc2"))
    return linear(norm(x, "model.decoder.layer_norm"), embedding)


MODELS = {
    "llama": llama_like,
    "qwen2": llama_like,
    "gemma2": llama_like,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "pegasus": pre_norm_seq2seq,
    "m2m_100": pre_norm_seq2seq,
}


def main():
    for folder in sys.argv[1:]:
        config = json.load(open(folder + "/config.json"))
        model = MODELS[config["model_type"]]
        logits = model(config, read_safetensors(folder + "/model.safetensors"))
        write_safetensors(folder + "/golden.safetensors", "logits", logits)
        if model is pre_norm_seq2seq:
            golden = {"sources": [SEQUENCE], "decoder_inputs": [TARGET]}
        else:
            golden = {"sequences": [SEQUENCE]}
        golden["made_by"] = "tests/golden/reference.py, in double precision"
        json.dump(golden, open(folder + "/golden.json", "w"), indent=1)


if __name__ == "__main__":
    main()
