// data_bench SOURCE TARGET [TOKENIZER]: time per token of reading and batching.
//
//   data_bench train.en train.de                # bytes as tokens
//   data_bench train.en train.de models/marian
//
// One row each for tokenization, for opening the cached corpus, and for batches of some objectives.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "data/batches/stream.h"
#include "heed/error.h"

namespace heed {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return seconds_since(start);
}

void print_row(const char* name, double seconds, int64_t tokens) {
  std::printf("%-32s %10.1f ms %12lld tokens %8.1f ns a token\n", name, 1e3 * seconds,
              static_cast<long long>(tokens), 1e9 * seconds / static_cast<double>(tokens));
}

// Batches of three epochs, including planning.
void measure_batches(const char* name, const StreamOptions& options,
                     const TokenizerPtr& tokenizer) {
  BatchStream stream(options, tokenizer);
  int64_t rows = 0, batches = 0;
  const double seconds = seconds_of([&] {
    for (Cursor cursor; cursor.epoch < 3; ++batches) rows += stream.next(cursor).rows();
  });
  print_row(name, seconds, rows);
}

int run(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: data_bench SOURCE TARGET [TOKENIZER]\n");
    return 2;
  }
  const std::string source = arguments[1], target = arguments[2];
  const TokenizerPtr tokenizer = count > 3 ? load_tokenizer(arguments[3]) : make_tokenizer("byte");
  const auto cache = std::filesystem::temp_directory_path() / "heed_data_bench";
  std::filesystem::remove_all(cache);

  StreamOptions options;
  options.corpora = {{.files = {source, target}, .format = CorpusFormat::parallel}};
  options.cache_folder = cache;
  int64_t tokens = 0;
  const auto open = [&] { tokens = BatchStream(options, tokenizer).corpus_tokens(); };
  const double first = seconds_of(open), second = seconds_of(open);
  print_row("translation: tokenize", first, tokens);
  print_row("translation: from the cache", second, tokens);
  measure_batches("translation: batches", options, tokenizer);

  options.corpora = {{.files = {source}, .format = CorpusFormat::text}};
  for (const Objective kind : {Objective::causal_lm, Objective::masked_lm, Objective::denoising}) {
    options.objective.kind = kind;
    options.objective.mask_id = 2;
    const std::string name = std::string(name_of(kind)) + ": batches";
    measure_batches(name.c_str(), options, tokenizer);
  }
  std::filesystem::remove_all(cache);
  return 0;
}

}  // namespace
}  // namespace heed

int main(int count, char** arguments) {
  try {
    return heed::run(count, arguments);
  } catch (const heed::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
