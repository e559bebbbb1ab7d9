// `heed bench text`: how fast tokenizers turn text into ids.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "base/thread_pool.h"
#include "bench/row.h"
#include "bench/text_samples.h"
#include "heed/bench.h"
#include "heed/error.h"
#include "heed/tokenizer.h"

namespace heed {
namespace {

struct Named {
  std::string name;
  TokenizerPtr tokenizer;
};

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  for (std::string line; reader.next(line);) lines.push_back(line);
  if (lines.empty()) {
    throw Error(ErrorCode::invalid_argument, path + " has no text", "name a file with some lines");
  }
  return lines;
}

double seconds_of_one_pass(const Tokenizer& tokenizer, const std::vector<std::string>& lines,
                           ThreadPool& pool, int64_t& tokens) {
  std::atomic<int64_t> count = 0;
  const auto start = bench::Clock::now();
  pool.parallel_for(static_cast<int64_t>(lines.size()), 1, [&](int64_t begin, int64_t end) {
    int64_t mine = 0;
    for (int64_t i = begin; i < end; ++i) {
      mine += static_cast<int64_t>(tokenizer.encode_ids(lines[static_cast<size_t>(i)]).size());
    }
    count += mine;
  });
  tokens = count;
  return bench::seconds_since(start);
}

}  // namespace

TextBench bench_text(const TextBenchOptions& options) {
  TextBench bench;
  const std::vector<std::string> lines =
      options.file.empty() ? bench::made_up_lines(options.seed) : read_lines(options.file);
  for (const std::string& line : lines) bench.bytes += static_cast<int64_t>(line.size());
  bench.lines = static_cast<int64_t>(lines.size());

  std::vector<Named> all;
  for (const std::string& path : options.tokenizers) all.push_back({path, load_tokenizer(path)});
  if (all.empty()) {
    all = {{"byte-level BPE of this text", bench::bpe_of(lines)},
           {"WordPiece of this text", bench::wordpiece_of(lines)}};
  }

  std::vector<int> thread_counts = {1};
  const int most = options.threads == 0 ? available_cpus() : options.threads;
  if (most > 1) thread_counts.push_back(most);
  const int rows = static_cast<int>(all.size() * thread_counts.size());
  for (const Named& named : all) {
    for (const int threads : thread_counts) {
      if (options.progress) {
        options.progress(named.name, static_cast<int>(bench.rows.size()) + 1, rows);
      }
      ThreadPool pool(threads);
      int64_t tokens = 0;
      const double seconds = bench::best_seconds(options.seconds_per_row, [&] {
        return seconds_of_one_pass(*named.tokenizer, lines, pool, tokens);
      });
      bench.rows.push_back({.tokenizer = named.name,
                            .threads = threads,
                            .mb_per_second = static_cast<double>(bench.bytes) / seconds / 1e6,
                            .tokens_per_second = static_cast<double>(tokens) / seconds,
                            .tokens = tokens});
    }
  }
  return bench;
}

}  // namespace heed
