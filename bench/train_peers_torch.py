"""One training configuration in PyTorch, eager or compiled, in f32 or with autocast to bf16; for bench/train_peers.

A fair comparison: one matmul for q, k and v, fused attention where there is no dropout (with dropout PyTorch has none
for CPUs; then masks are added inside batched matmuls), contiguous heads, fused Adam, gradients set to None. The layouts
are those of Heed's presets: the paper's (post-norm, ReLU, one embedding for all) and GPT-2's (pre-norm, GELU).
"""
import argparse
import json
import math
import resource
import time

import torch
from torch import nn
from torch.nn import functional as F

SHAPES = {  # layers, width, ffn, heads
    "tiny": (4, 128, 256, 4),
    "small": (6, 256, 1024, 4),
    "base": (6, 512, 2048, 8),
    "nano": (4, 128, 512, 4),
    "gpt2": (12, 768, 3072, 12),
}
DECODER_ONLY = ("nano", "gpt2")
MASKED = -1e9


def drop(x, p, training):
    return F.dropout(x, p, training) if p > 0 else x


class Attention(nn.Module):
    def __init__(self, width, heads, p, cross, bias):
        super().__init__()
        self.heads, self.p, self.cross = heads, p, cross
        self.first = nn.Linear(width, width if cross else 3 * width, bias=bias)  # q, or q, k and v
        self.memory = nn.Linear(width, 2 * width, bias=bias) if cross else None  # k and v
        self.out = nn.Linear(width, width, bias=bias)

    def split(self, x, parts):
        """[batch, length, parts * width] as `parts` matrices [batch * heads, length, head]."""
        batch, length, _ = x.shape
        x = x.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4)
        return x.reshape(parts, batch * self.heads, length, -1).unbind(0)

    def forward(self, x, memory, mask):
        batch, length, width = x.shape
        if self.cross:
            (q,) = self.split(self.first(x), 1)
            k, v = self.split(self.memory(memory), 2)
        else:
            q, k, v = self.split(self.first(x), 3)
        if self.p == 0:
            q, k, v = (t.view(batch, self.heads, -1, width // self.heads) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
            return self.out(y.transpose(1, 2).reshape(batch, length, width))
        scale = 1 / math.sqrt(q.shape[-1])
        if mask is None:
            scores = torch.bmm(q * scale, k.transpose(1, 2))
        else:
            scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=scale)
        shares = drop(F.softmax(scores, -1), self.p, self.training)
        y = torch.bmm(shares, v).view(batch, self.heads, length, -1)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, shape, p, cross, pre_norm, bias):
        super().__init__()
        _, width, ffn, heads = shape
        self.p, self.pre_norm = p, pre_norm
        self.gelu = "none" if heads == 4 else "tanh"  # nanoGPT's is exact, GPT-2's is not
        self.attention = nn.ModuleList([Attention(width, heads, p, False, bias)])
        if cross:
            self.attention.append(Attention(width, heads, p, True, bias))
        self.up, self.down = nn.Linear(width, ffn, bias=bias), nn.Linear(ffn, width, bias=bias)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if cross else 2))

    def feed_forward(self, x):
        x = self.up(x)
        x = F.gelu(x, approximate=self.gelu) if self.pre_norm else F.relu(x)
        return self.down(drop(x, self.p, self.training))

    def forward(self, x, memory=None, mask=None):
        branches = [lambda h: self.attention[0](h, None, mask)]
        if len(self.attention) > 1:
            branches.append(lambda h: self.attention[1](h, memory, None))
        branches.append(self.feed_forward)
        for norm, branch in zip(self.norms, branches):
            if self.pre_norm:
                x = x + drop(branch(norm(x)), self.p, self.training)
            else:
                x = norm(x + drop(branch(x), self.p, self.training))
        return x


class Model(nn.Module):
    def __init__(self, name, vocabulary, length, p):
        super().__init__()
        shape = SHAPES[name]
        layers, self.width = shape[0], shape[1]
        self.p, self.decoder_only = p, name in DECODER_ONLY
        bias = name != "nano"
        self.tokens = nn.Embedding(vocabulary, self.width)
        nn.init.normal_(self.tokens.weight, std=0.02 if self.decoder_only else self.width**-0.5)
        if self.decoder_only:
            self.positions = nn.Parameter(0.02 * torch.randn(length, self.width))
            self.last_norm = nn.LayerNorm(self.width)
        else:
            self.register_buffer("positions", 0.1 * torch.randn(length, self.width))
            self.encoder = nn.ModuleList(
                Block(shape, p, False, False, bias) for _ in range(layers))
        self.decoder = nn.ModuleList(
            Block(shape, p, not self.decoder_only, self.decoder_only, bias) for _ in range(layers))
        self.register_buffer("mask", torch.full((1, length, length), MASKED).triu(1))

    def embed(self, ids):
        x = self.tokens(ids)
        if not self.decoder_only:
            x = x * math.sqrt(self.width)
        return drop(x + self.positions, self.p, self.training)

    def forward(self, source, target, labels):
        memory = None
        if not self.decoder_only:
            memory = self.embed(source)
            for block in self.encoder:
                memory = block(memory)
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, memory, self.mask)
        if self.decoder_only:
            x = self.last_norm(x)
        logits = F.linear(x.view(-1, self.width), self.tokens.weight)
        return F.cross_entropy(logits, labels.view(-1), label_smoothing=0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=SHAPES)
    for flag in ("sequences", "length", "vocabulary", "threads"):
        parser.add_argument("--" + flag, type=int, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--mode", choices=("eager", "compiled"), required=True)
    parser.add_argument("--type", choices=("f32", "bf16"), required=True)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = Model(o.name, o.vocabulary, o.length, o.dropout).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    run = torch.compile(model) if o.mode == "compiled" else model
    batch = [torch.randint(0, o.vocabulary, (o.sequences, o.length)) for _ in range(3)]

    def step():
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=o.type == "bf16"):
            loss = run(*batch)
        loss.backward()
        optimizer.step()
        return time.perf_counter() - wall, time.process_time() - cpu

    for _ in range(2):  # compiles, and allocates the moments
        step()
    times = []
    end = time.perf_counter() + o.seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(step())
    tokens = o.sequences * o.length * (1 if o.name in DECODER_ONLY else 2)
    seconds = min(wall for wall, _ in times)
    print(json.dumps({
        "tokens_per_second": tokens / seconds,
        "step_ms": 1e3 * seconds,
        "cpu_ms": 1e3 * min(cpu for _, cpu in times),
        "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "version": torch.__version__.split("+")[0],
        "parameters": sum(p.numel() for p in model.parameters()),
    }))


if __name__ == "__main__":
    main()
