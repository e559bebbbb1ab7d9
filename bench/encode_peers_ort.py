"""ONNX Runtime on BERT-base with random weights, for bench/encode_peers:

    encode_peers_ort.py f32|int8 FILE.onnx                         writes the model
    encode_peers_ort.py FILE.onnx SEQUENCES THREADS SECONDS        its speed, as one JSON object

The graph is that of ONNX Runtime's Transformer optimizer: fused attention, skip + norm and bias + GELU (domain
com.microsoft), its fastest form. int8 is its dynamic quantization: u8 rows, s8 weights of 7 bits with a scale for each
column.
"""

import json
import resource
import sys
import time

import numpy

LAYERS, WIDTH, FFN, HEADS, VOCABULARY, LENGTH = 12, 768, 3072, 12, 30522, 128
EPSILON = 1e-12  # of BERT's layer norms
MICROSOFT = "com.microsoft"


class Graph:
    def __init__(self, type_name):
        import onnx  # the measuring process does without it, and its memory

        self.onnx, self.type_name = onnx, type_name
        self.nodes, self.initializers = [], []
        self.random = numpy.random.default_rng(1)

    def tensor(self, name, values):
        self.initializers.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def weights(self, name, *shape):
        return self.tensor(name, self.random.normal(0, 0.02, shape).astype(numpy.float32))

    def bytes(self, name, *shape):
        return self.tensor(name, self.random.integers(-64, 64, shape).astype(numpy.int8))

    def filled(self, name, value, *shape):
        return self.tensor(name, numpy.full(shape, value, numpy.float32))

    def node(self, kind, inputs, name, outputs=None, **attributes):
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, outputs or [name], name=name, **attributes))
        return name

    def product(self, x, name, inputs, outputs):
        """x [batch, LENGTH, inputs] times a weight [inputs, outputs]."""
        if self.type_name == "f32":
            return self.node("MatMul", [x, self.weights(name + ".weight", inputs, outputs)], name)
        weight = self.bytes(name + ".weight", inputs, outputs)
        return self.node("DynamicQuantizeMatMul", [x, weight, self.filled(name + ".scale", 0.0005, outputs)], name,
                         domain=MICROSOFT)

    def attention(self, x, name):
        """q, k and v in one matmul, and attention up to the concatenated heads."""
        bias = self.filled(name + ".bias", 0.01, 3 * WIDTH)
        if self.type_name == "f32":
            weight = self.weights(name + ".weight", WIDTH, 3 * WIDTH)
            return self.node("Attention", [x, weight, bias], name, domain=MICROSOFT, num_heads=HEADS)
        quantized = [name + ".x", name + ".x.scale", name + ".x.zero"]
        self.node("DynamicQuantizeLinear", [x], name + ".quantize", outputs=quantized)
        weight = self.bytes(name + ".weight", WIDTH, 3 * WIDTH)
        scale = self.filled(name + ".scale", 0.0005, 3 * WIDTH)
        zero = self.tensor(name + ".zero", numpy.zeros(3 * WIDTH, numpy.int8))
        return self.node("QAttention", [quantized[0], weight, bias, quantized[1], scale, "", quantized[2], zero], name,
                         domain=MICROSOFT, num_heads=HEADS)

    def add_and_norm(self, x, branch, name, output=None):
        inputs = [x, branch, self.filled(name + ".gamma", 1, WIDTH), self.filled(name + ".beta", 0, WIDTH),
                  self.filled(name + ".bias", 0.01, WIDTH)]
        self.node("SkipLayerNormalization", inputs, name, outputs=[output or name], domain=MICROSOFT, epsilon=EPSILON)
        return output or name

    def write(self, file):
        helper, types = self.onnx.helper, self.onnx.TensorProto
        graph = helper.make_graph(
            self.nodes, "bert", [helper.make_tensor_value_info("ids", types.INT64, ["batch", LENGTH])],
            [helper.make_tensor_value_info("y", types.FLOAT, ["batch", LENGTH, WIDTH])], self.initializers)
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                                                      helper.make_opsetid(MICROSOFT, 1)])
        self.onnx.save(model, file)


def write(type_name, file):
    g = Graph(type_name)
    words = g.node("Gather", [g.weights("words", VOCABULARY, WIDTH), "ids"], "embedded")
    total = g.node("Add", [words, g.weights("positions_and_type", 1, LENGTH, WIDTH)], "positioned")
    x = g.node("LayerNormalization", [total, g.filled("norm.gamma", 1, WIDTH), g.filled("norm.beta", 0, WIDTH)], "norm",
               epsilon=EPSILON)
    for layer in range(LAYERS):
        name = f"layer{layer}."
        heads = g.attention(x, name + "attention")
        x = g.add_and_norm(x, g.product(heads, name + "output", WIDTH, WIDTH), name + "attention_norm")
        up = g.product(x, name + "up", WIDTH, FFN)
        active = g.node("BiasGelu", [up, g.filled(name + "up.bias", 0.01, FFN)], name + "gelu", domain=MICROSOFT)
        down = g.product(active, name + "down", FFN, WIDTH)
        x = g.add_and_norm(x, down, name + "ffn_norm", "y" if layer == LAYERS - 1 else None)
    g.write(file)


def measure(file, sequences, threads, seconds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    ids = numpy.random.default_rng(1).integers(0, VOCABULARY, (sequences, LENGTH), dtype=numpy.int64)

    def run():
        start = time.perf_counter()
        session.run(None, {"ids": ids})
        return time.perf_counter() - start

    run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(run())
    best = min(times)
    print(json.dumps({"tokens_per_second": sequences * LENGTH / best, "batch_ms": 1e3 * best,
                      "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                      "version": onnxruntime.__version__}))


def main():
    if len(sys.argv) == 3:
        write(*sys.argv[1:])
    else:
        file, sequences, threads, seconds = sys.argv[1:]
        measure(file, int(sequences), int(threads), float(seconds))


if __name__ == "__main__":
    main()
