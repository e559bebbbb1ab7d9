"""Trains a small language model, and lets it write.   train.py RECIPE FOLDER"""

import sys

import heed


def progress(now):
    print(f"step {now.step} of {now.steps}, loss {now.loss:.3f}")


result = heed.train(sys.argv[1], out=sys.argv[2], set={"train.log_every": 1}, progress=progress)
model = heed.load(result.folder)
for piece in model.stream("To be", temperature=0.8, seed=7, max_new_tokens=40):
    print(piece, end="", flush=True)
print()
