// Benchmarks of Heed, as shares of the machine's limits.
//
//   heed::OpsBench bench = heed::bench_ops({.filter = "attention"});
//   for (const auto& row : bench.rows) … row.name, row.ms, row.fraction_of_limit …
//
// Absolute figures vary from run to run; the fractions compare figures of one run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct OpsBenchOptions {
  int threads = 0;               // 0: every CPU this process may use
  uint64_t seed = 0;             // of the random inputs
  double seconds_per_row = 0.2;  // how long each row is repeated; the best time counts
  std::string filter{};          // only rows whose name contains this text
  // Called before each row is measured: its name, its number from 1, and the number of rows.
  std::function<void(std::string_view name, int number, int rows)> progress{};
};

// What bounds a row: arithmetic, the bytes it moves through memory, or those through the L2 cache.
enum class Limit { gemm, memory, l2 };
const char* name(Limit limit);

struct OpsBenchRow {
  std::string name;   // "layer_norm forward"
  std::string shape;  // "4096x512"
  double ms = 0;      // best time of one call
  double gflops = 0;  // useful operations a second; 0 where counting them says nothing
  double gbs = 0;     // compulsory bytes (each operand once) a second
  Limit limit = Limit::memory;
  double fraction_of_limit = 0;
  // GEMM rows: speed compared with oneDNN called directly with as many threads, measured
  // alternately; 0 for other rows.
  double ratio_to_onednn = 0;
};

struct OpsBench {
  int threads = 0;
  std::string instruction_set;     // the path that run-time dispatch chose, e.g. "AVX2"
  double gemm_limit_gflops = 0;    // the best GEMM seen in this run
  double bandwidth_limit_gbs = 0;  // streaming copy through memory
  double update_limit_gbs = 0;     // the same in place: the memory limit of adam and rope
  double read_limit_gbs = 0;       // the same without writing: that of matmul on few rows
  double l2_limit_gbs = 0;         // streaming copy within the L2 caches
  std::vector<OpsBenchRow> rows;
};

// Throws invalid_argument when the filter matches no row.
OpsBench bench_ops(const OpsBenchOptions& options);

// Common results of benchmarks of a whole preset, with random weights.
struct PresetBench {
  int threads = 0;
  std::string instruction_set;
  int64_t parameters = 0;
  int64_t tokens = 0;  // of the batch that is repeated
  double tokens_per_second = 0;
  double gflops = 0;             // of the matmuls
  double gemm_limit_gflops = 0;  // the best GEMM seen in this run
  // Batches and limits alternate, and this is the median over the turns, not the quotient of the two
  // figures above. So are the other fractions below.
  double fraction_of_limit = 0;
  int64_t peak_rss_bytes = 0;  // of the process, before the limits are measured
};

// Whole training steps of a preset, on one batch of equal lengths.
struct TrainBenchOptions {
  std::string preset;
  std::string objective{};         // empty: that of the preset's head
  int64_t sequences = 32;          // of each side
  int64_t length = 32;             // tokens of each
  int64_t vocabulary = 0;          // 0: the preset's
  std::optional<float> dropout{};  // everywhere; none: the preset's
  std::string moments = "f32";     // type of Adam's moments: f32 or bf16
  int threads = 0;                 // 0: every CPU this process may use
  uint64_t seed = 1;
  double seconds = 6;  // how long steps are repeated; the best one counts
};

struct TrainBench : PresetBench {  // tokens: both sides'
  double step_ms = 0, forward_ms = 0, backward_ms = 0, update_ms = 0;
  double cpu_ms = 0;          // the least CPU time of a step, of all threads
  int64_t planned_bytes = 0;  // weights, optimizer state, activations, gradients
};
TrainBench bench_train(const TrainBenchOptions& options);

// Encoding with a preset (with the decoder of a decoder-only one): hidden states of one batch of
// equal lengths, as for embeddings and classification.
struct EncodeBenchOptions {
  std::string preset;
  std::string type = "f32";  // of the weights
  int64_t sequences = 8;
  int64_t length = 128;  // tokens of each
  int threads = 0;       // 0: every CPU this process may use
  uint64_t seed = 1;
  double seconds = 4;  // how long batches are repeated; the best one counts
};

struct EncodeBench : PresetBench {
  double sequences_per_second = 0;
  double batch_ms = 0;  // the best
  double batch_ms_p50 = 0, batch_ms_p90 = 0;
  int64_t planned_bytes = 0;  // activations
};
EncodeBench bench_encode(const EncodeBenchOptions& options);

// A batch of simultaneous requests to an engine (heed/engine.h) with exactly `new_tokens` each:
// translations, or continuations of prompts.
struct DecodeBenchOptions {
  std::string preset;
  std::string type = "f32";  // of the weights
  int64_t requests = 1;
  int64_t length = 24;      // tokens of each source, or prompt
  int64_t new_tokens = 24;  // of each answer
  int beam = 1;
  int64_t vocabulary = 0;  // 0: the preset's
  int threads = 0;         // 0: every CPU this process may use
  uint64_t seed = 1;
  double seconds = 6;  // how long batches are repeated; the best one counts
};

struct Percentiles {
  double p50 = 0, p90 = 0, p99 = 0;
};

struct DecodeBench : PresetBench {  // tokens: new tokens of the best answers
  double requests_per_second = 0;
  double batch_ms = 0;     // the best batch, until its last answer
  Percentiles latency_ms;  // of single requests, over all batches but the first
  // bench_generate without a beam: the prefill, until all first tokens, of batches and of prefills
  // alone (for the share). All other speeds are then those of the decode steps. 0 otherwise: speeds
  // include everything.
  double prompt_ms = 0, prompt_tokens_per_second = 0;
  double prompt_gflops = 0, prompt_fraction_of_limit = 0;
  Percentiles token_ms;  // from one token of a sequence to the next
  // Bytes read per second: all weights once a step, and the KV cache of each sequence.
  double gbs = 0;
  double bandwidth_limit_gbs = 0;  // repeatedly reading as many bytes as a step's weights have
  double fraction_of_bandwidth = 0;
};
// Throws invalid_argument for a preset of another family.
DecodeBench bench_translate(const DecodeBenchOptions& options);  // encoder_decoder
DecodeBench bench_generate(const DecodeBenchOptions& options);   // decoder_only

// Why self-attention (Vaswani et al. 2017, table 1), measured: one layer of each kind, from n
// vectors of width d to as many.
struct LayersBenchOptions {
  std::vector<int64_t> lengths{64, 128, 256, 512, 1024, 2048};  // n
  std::vector<int64_t> widths{256, 512};                        // d
  int64_t window = 32;    // r: how many positions restricted attention sees on each side
  int64_t kernel = 3;     // k: positions that a convolution sees
  int64_t sequences = 4;  // in parallel; recurrent layers have no other parallelism
  int threads = 0;        // 0: every CPU this process may use
  uint64_t seed = 0;
  double seconds_per_row = 0.2;  // how long each row is repeated; the best time counts
  std::function<void(std::string_view layer, int number, int rows)> progress{};
};

struct LayersBenchRow {
  std::string layer;
  int64_t length = 0, width = 0;  // n, d
  double ms = 0;                  // best time of one call
  double gflop = 0;               // operations of one call: 1e9 multiplications and additions
  double gflops = 0;              // the same a second
  // Of one sequence: the number of sequential operations, and the longest path between two
  // positions.
  int64_t sequential_steps = 0, path_length = 0;
};

struct LayersBench {
  int threads = 0;
  std::string instruction_set;
  LayersBenchOptions options;  // as given
  std::vector<LayersBenchRow> rows;
};
// Throws invalid_argument for empty lists and invalid sizes.
LayersBench bench_layers(const LayersBenchOptions& options);
// Time over length, one picture for each width, as SVG.
std::string layers_chart(const LayersBench& bench);

// Tokenizers: text into ids.
//
//   heed::TextBench bench = heed::bench_text({.tokenizers = {"models/en-de"}, .file = "wiki.txt"});
struct TextBenchOptions {
  int threads = 0;                        // rows for 1 thread and for this many; 0: every CPU
  uint64_t seed = 0;                      // of the artificial text
  double seconds_per_row = 0.5;           // how long each row is repeated; the best time counts
  std::vector<std::string> tokenizers{};  // folders or files; none: BPE and WordPiece of the text
  std::string file{};                     // plain or compressed; none: an artificial text
  std::function<void(std::string_view tokenizer, int number, int rows)> progress{};
};

struct TextBenchRow {
  std::string tokenizer;
  int threads = 0;
  double mb_per_second = 0;  // millions of bytes, all threads together
  // The same by CPU time: the speed of one thread, also on a busy machine.
  double mb_per_cpu_second = 0;
  double tokens_per_second = 0;
  int64_t tokens = 0;  // of the whole text
};

struct TextBench {
  int64_t bytes = 0, lines = 0;  // of the text, without line breaks; lines are encoded separately
  std::vector<TextBenchRow> rows;
};

// Throws not_found and what load_tokenizer() throws.
TextBench bench_text(const TextBenchOptions& options);

}  // namespace heed
