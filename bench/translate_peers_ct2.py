"""CTranslate2 on a Transformer with random weights, for bench/translate_peers:

    translate_peers_ct2.py base|tiny FOLDER                                          writes the model
    translate_peers_ct2.py FOLDER TYPE SENTENCES BEAM LENGTH THREADS SECONDS         its speed, as one JSON object

The layout is the paper's (post-norm, ReLU, one embedding for all), as in Heed's presets. Exactly LENGTH tokens are
decoded. int8 is CTranslate2's own quantization, made when the model is loaded.
"""

import json
import os
import random
import resource
import sys
import time

import ctranslate2
import numpy

SHAPES = {"base": (6, 512, 2048, 8, 32000), "tiny": (4, 128, 256, 4, 10000)}  # layers, width, ffn, heads, vocabulary
POSITIONS = 512
SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


def fill_linear(spec, random_weights, outputs, inputs):
    spec.weight = random_weights(outputs, inputs)
    spec.bias = random_weights(outputs)


def fill_norm(spec, width):
    spec.gamma = numpy.ones(width, numpy.float32)
    spec.beta = numpy.zeros(width, numpy.float32)


def fill_layer(layer, random_weights, width, ffn):
    fill_linear(layer.self_attention.linear[0], random_weights, 3 * width, width)
    fill_linear(layer.self_attention.linear[1], random_weights, width, width)
    fill_norm(layer.self_attention.layer_norm, width)
    if hasattr(layer, "attention"):
        fill_linear(layer.attention.linear[0], random_weights, width, width)
        fill_linear(layer.attention.linear[1], random_weights, 2 * width, width)
        fill_linear(layer.attention.linear[2], random_weights, width, width)
        fill_norm(layer.attention.layer_norm, width)
    fill_linear(layer.ffn.linear_0, random_weights, ffn, width)
    fill_linear(layer.ffn.linear_1, random_weights, width, ffn)
    fill_norm(layer.ffn.layer_norm, width)


def write(size, folder):
    layers, width, ffn, heads, vocabulary = SHAPES[size]
    generator = numpy.random.default_rng(1)

    def random_weights(*shape):
        return generator.normal(0, width**-0.5, shape).astype(numpy.float32)

    spec = ctranslate2.specs.TransformerSpec.from_config(layers, heads, pre_norm=False,
                                                         activation=ctranslate2.specs.Activation.RELU)
    table = random_weights(vocabulary, width)
    positions = random_weights(POSITIONS, width)
    for part, embeddings in ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings)):
        embeddings.weight = table
        part.scale_embeddings = True
        part.position_encodings.encodings = positions
        for layer in part.layer:
            fill_layer(layer, random_weights, width, ffn)
    spec.decoder.projection.weight = table
    spec.decoder.projection.bias = numpy.zeros(vocabulary, numpy.float32)
    tokens = SPECIAL + [f"t{i}" for i in range(vocabulary - len(SPECIAL))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize()
    os.makedirs(folder)
    spec.save(folder)


def measure(folder, type_name, sentences, beam, length, threads, seconds):
    translator = ctranslate2.Translator(folder, device="cpu", inter_threads=1, intra_threads=threads,
                                        compute_type="float32" if type_name == "f32" else type_name)
    drawn = random.Random(1)
    vocabulary = SHAPES[os.path.basename(folder).rsplit("-", 1)[-1]][4]
    batch = [[f"t{drawn.randrange(vocabulary - len(SPECIAL))}" for _ in range(length)] for _ in range(sentences)]

    def translate():
        start = time.perf_counter()
        results = translator.translate_batch(batch, beam_size=beam, max_decoding_length=length,
                                             min_decoding_length=length)
        elapsed = time.perf_counter() - start
        assert all(len(result.hypotheses[0]) == length for result in results)
        return elapsed

    translate()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(translate())
    best = min(times)
    print(json.dumps({"tokens_per_second": sentences * length / best, "batch_ms": 1e3 * best,
                      "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                      "version": ctranslate2.__version__}))


def main():
    if len(sys.argv) == 3:
        write(*sys.argv[1:])
    else:
        folder, type_name, *numbers, seconds = sys.argv[1:]
        measure(folder, type_name, *map(int, numbers), float(seconds))


if __name__ == "__main__":
    main()
