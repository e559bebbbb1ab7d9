#include "cli/line_feed.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "heed/metrics.h"

namespace heed::cli {
namespace {

// What the reader may be ahead of us.
constexpr size_t kMostWaiting = 65536;

}  // namespace

// A thread of its own, because only so can be told whether more is there already. It may outlive
// the feed, waiting for input that never comes, and so owns what it touches.
struct LineFeed::Reader {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
  bool at_end = false, abandoned = false;

  void read() {
    char* buffer = nullptr;
    size_t capacity = 0;
    while (true) {
      const ssize_t length = getline(&buffer, &capacity, stdin);
      std::unique_lock lock(mutex);
      if (length < 0) at_end = true;
      if (length >= 0) {
        std::string line(buffer, static_cast<size_t>(length));
        if (line.ends_with('\n')) line.pop_back();
        if (line.ends_with('\r')) line.pop_back();
        lines.push_back(std::move(line));
      }
      changed.notify_all();
      changed.wait(lock, [&] { return lines.size() < kMostWaiting || abandoned; });
      if (at_end || abandoned) break;
    }
    std::free(buffer);
  }
};

LineFeed::LineFeed(std::vector<std::string> paths) : paths_(std::move(paths)) {
  if (paths_.empty()) paths_.push_back("-");
}

LineFeed::~LineFeed() {
  if (!reader_) return;
  const std::lock_guard lock(reader_->mutex);
  reader_->abandoned = true;
  reader_->changed.notify_all();
}

bool LineFeed::next_from_input(size_t most, std::vector<std::string>& lines) {
  if (!reader_) {
    reader_ = std::make_shared<Reader>();
    std::thread([reader = reader_] { reader->read(); }).detach();
  }
  std::unique_lock lock(reader_->mutex);
  reader_->changed.wait(lock, [&] { return !reader_->lines.empty() || reader_->at_end; });
  const auto count = static_cast<ptrdiff_t>(std::min(most, reader_->lines.size()));
  const auto begin = reader_->lines.begin();
  lines.assign(std::make_move_iterator(begin), std::make_move_iterator(begin + count));
  reader_->lines.erase(begin, begin + count);
  reader_->changed.notify_all();
  return count > 0;
}

bool LineFeed::next(size_t most, std::vector<std::string>& lines) {
  for (; path_ < paths_.size(); ++path_) {
    if (paths_[path_] == "-") {
      if (next_from_input(most, lines)) return true;
      continue;
    }
    if (given_ == 0 && loaded_.empty()) loaded_ = read_lines(paths_[path_]);
    const size_t count = std::min(most, loaded_.size() - given_);
    const auto begin = loaded_.begin() + static_cast<ptrdiff_t>(given_);
    lines.assign(begin, begin + static_cast<ptrdiff_t>(count));
    given_ += count;
    if (count > 0) return true;
    loaded_.clear();
    given_ = 0;
  }
  return false;
}

}  // namespace heed::cli
