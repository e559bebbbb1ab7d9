// `heed bench text`: how fast tokenizers turn text into ids.
#include <algorithm>
#include <ctime>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/text_file.h"
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

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Pass {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads together, without what the pool itself needs
  int64_t tokens = 0;
};

Pass one_pass(const Tokenizer& tokenizer, const std::vector<std::string>& lines, ThreadPool& pool) {
  std::mutex mutex;
  Pass pass;
  const auto start = Clock::now();
  pool.parallel_for(static_cast<int64_t>(lines.size()), 1, [&](int64_t begin, int64_t end) {
    const double cpu_start = thread_cpu_seconds();
    int64_t mine = 0;
    for (int64_t i = begin; i < end; ++i) {
      mine += static_cast<int64_t>(tokenizer.encode_ids(lines[static_cast<size_t>(i)]).size());
    }
    const double cpu_seconds = thread_cpu_seconds() - cpu_start;
    const std::lock_guard lock(mutex);
    pass.tokens += mine;
    pass.cpu_seconds += cpu_seconds;
  });
  pass.seconds = seconds_since(start);
  return pass;
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
      Pass last;
      double cpu_seconds = std::numeric_limits<double>::infinity();
      const double seconds = bench::best_seconds(options.seconds_per_row, [&] {
        last = one_pass(*named.tokenizer, lines, pool);
        cpu_seconds = std::min(cpu_seconds, last.cpu_seconds);
        return last.seconds;
      });
      const auto bytes = static_cast<double>(bench.bytes);
      bench.rows.push_back({.tokenizer = named.name,
                            .threads = threads,
                            .mb_per_second = bytes / seconds / 1e6,
                            .mb_per_cpu_second = bytes / cpu_seconds / 1e6,
                            .tokens_per_second = static_cast<double>(last.tokens) / seconds,
                            .tokens = last.tokens});
    }
  }
  return bench;
}

}  // namespace heed
