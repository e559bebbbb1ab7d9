#include "text/training/training_lines.h"

#include <algorithm>
#include <filesystem>

#include "heed/error.h"
#include "text/unicode/utf8.h"

namespace heed {

TrainingLines::TrainingLines(const TokenizerTraining& training, Invalid invalid,
                             TokenizerTrainingReport& report)
    : training_(training), invalid_(invalid), report_(report) {
  if (training.files.empty()) {
    throw Error(ErrorCode::invalid_argument, "no text to train the tokenizer on",
                "pass at least one text file");
  }
  for (const std::string& file : training.files) {
    std::error_code no_size;
    const auto bytes = std::filesystem::file_size(file, no_size);
    if (!no_size) total_bytes_ += static_cast<int64_t>(bytes);
  }
}

bool TrainingLines::next(std::string& line) {
  for (;;) {
    if (!reader_) {
      if (file_ == training_.files.size()) return false;
      reader_.emplace(training_.files[file_++]);
    }
    if (!reader_->next(line)) {
      finished_bytes_ += reader_->bytes_read();
      reader_.reset();
      continue;
    }
    ++report_.lines;
    report_.bytes += static_cast<int64_t>(line.size()) + 1;
    if (report_.lines % 4096 == 1) tell_progress();
    if (line.find_first_not_of(" \t\r\f\v") == std::string::npos) {
      ++report_.empty_lines;
      continue;
    }
    if (!is_utf8(line)) {
      ++report_.invalid_lines;
      if (invalid_ == Invalid::repaired) line = repair_utf8(line);
    }
    ++used_lines_;
    return true;
  }
}

void TrainingLines::check_not_empty() const {
  if (used_lines_ > 0) return;
  throw Error(ErrorCode::invalid_argument,
              "no text to train the tokenizer on: " +
                  (training_.files.size() == 1
                       ? training_.files[0] + " is empty"
                       : "all " + std::to_string(training_.files.size()) + " files are empty"));
}

void TrainingLines::tell_progress() {
  if (!training_.progress) return;
  const auto read = static_cast<double>(finished_bytes_ + reader_->bytes_read());
  const double done = total_bytes_ > 0 ? read / static_cast<double>(total_bytes_) : -1;
  training_.progress("reading text", std::min(done, 1.0));
}

}  // namespace heed
