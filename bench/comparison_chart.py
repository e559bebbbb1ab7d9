"""The rows of bench/comparison.py as SVG charts and Markdown tables, for docs/results/performance.md."""
import math

import comparison

LABEL, PLOT, BAR, GAP, TOP = 250, 420, 14, 8, 44
WIDTH = LABEL + PLOT + 70
COLORS = {"train": "#d9480f", "encode": "#1f6feb", "generate": "#2b8a3e", "translate": "#e64980", "long": "#7048e8"}
TITLES = {"train": "training", "encode": "reading, BERT-base", "generate": "generating, GPT-2",
          "translate": "translating", "long": "attention over long sequences"}


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>\n'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" {style}/>\n'


def rectangle(x, y, width, height, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>\n'


class LogAxis:
    """Logarithmic scale of ratios."""

    def __init__(self, values):
        self.low, self.high = min([0.8, *values]), max([2, *values])
        self.start = self.at(1)
        self.ticks = [2.0**i for i in range(math.ceil(math.log2(self.low)), math.floor(math.log2(self.high)) + 1)]

    def at(self, value):
        return LABEL + PLOT * math.log(value / self.low) / math.log(self.high / self.low)


class ShareAxis:
    """Linear scale of shares of a limit."""

    def __init__(self, values):
        self.high = max(1.0, math.ceil(10 * max(values)) / 10)
        self.start = LABEL
        step = 0.2 if self.high < 2 else 0.5
        self.ticks = [step * i for i in range(int(self.high / step + 1e-9) + 1)]

    def at(self, value):
        return LABEL + PLOT * value / self.high


def heading(r):
    """Heading of the group that begins with this row."""
    return TITLES[r["group"]] + (f", {r['peer_name']}" if r["figure"] == "speed" else "")


def bars(title, rows, axis):
    """A bar for each row, with a tick at its aim. Each group has a colour and a heading."""
    body, y, group = "", TOP, None
    for r in rows:
        if r["group"] != group:
            group = r["group"]
            y += GAP
            body += text(LABEL - 8, y + BAR - 3, heading(r), "end", ' font-weight="600"')
            y += BAR + GAP
        left, right = sorted((axis.start, axis.at(r["ratio"])))
        body += text(LABEL - 8, y + BAR - 3, label_of(r), "end")
        body += rectangle(left, y, right - left, BAR, COLORS[group])
        if r["aim"] is not None:
            body += line(axis.at(r["aim"]), y - 3, axis.at(r["aim"]), y + BAR + 3, 'stroke-width="2"')
        place = max(right, axis.at(r["aim"]) if r["aim"] else 0)
        body += text(place + 6, y + BAR - 3, comparison.ratio_text(r["ratio"]))
        y += BAR + GAP
    grid = "".join(line(axis.at(t), TOP, axis.at(t), y, 'opacity=".2"') +
                   text(axis.at(t), TOP - 6, f"{t:g}", "middle") for t in axis.ticks)
    grid += line(axis.start, TOP, axis.start, y, 'stroke-width="1"')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + GAP}" width="{WIDTH}" '
            f'height="{y + GAP}" role="img" font-size="12" font-family="system-ui,sans-serif" '
            f'fill="currentColor">\n<title>{title}</title>\n'
            + text(8, 18, title, more=' font-weight="600"') + grid + body + "</svg>\n")


def label_of(r):
    """Without the group, which is the heading: "f32, prompt", "int8 × 8", "base f32 × 32, beam"."""
    parts = r["config"].split("-")
    words = " ".join(("" if r["group"] == "long" else "× ") + part if part.isdigit() else ", beam" if part == "beam" else part for part in parts)
    return words.replace(" ,", ",") + (", prompt" if r["figure"].startswith("prompt") else "")


def peers_svg(rows):
    chosen = [r for r in rows if r["figure"] in ("speed", "prompt speed")]
    return bars("Speed next to another program on the same machine (1: as fast; line: the aim)", chosen,
                LogAxis([r["ratio"] for r in chosen]))


def limits_svg(rows):
    chosen = [r for r in rows if r["figure"] in ("share", "prompt share")]
    return bars("Share of the machine's own limit in the same run (line: the aim)", chosen,
                ShareAxis([r["ratio"] for r in chosen]))


def markdown(rows):
    """A table for each group."""
    parts = []
    for group in comparison.GROUPS:
        own = [r for r in rows if r["group"] == group]
        if not own:
            continue
        lines = [f"| {TITLES[group]} | | Heed | next to | | ratio | aim |", "| --- | --- | --- | --- | --- | --- | --- |"]
        for r in own:
            name, heed, peer, what, ratio, aim, _, _ = comparison.cells(r)
            missed = r["aim"] is not None and r["ratio"] < r["aim"]
            lines.append(f"| {r['config']} | {r['figure']} | {heed} | {peer} | {what} | "
                         f"{ratio}{' (missed)' if missed else ''} | {aim} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
