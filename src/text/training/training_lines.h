// The lines of a tokenizer's training files: counted, made UTF-8, with progress.
#pragma once

#include <optional>
#include <string>

#include "base/text_file.h"
#include "heed/tokenizer.h"

namespace heed {

class TrainingLines {
 public:
  enum class Invalid { repaired, kept };  // what is not UTF-8

  TrainingLines(const TokenizerTraining& training, Invalid invalid,
                TokenizerTrainingReport& report);

  // The next line that has more than white space; false after the last file.
  bool next(std::string& line);

  // Throws invalid_argument when there was no text at all.
  void check_not_empty() const;

 private:
  void tell_progress();

  const TokenizerTraining& training_;
  Invalid invalid_;
  TokenizerTrainingReport& report_;
  size_t file_ = 0;
  std::optional<LineReader> reader_;
  int64_t total_bytes_ = 0, finished_bytes_ = 0, used_lines_ = 0;
};

}  // namespace heed
