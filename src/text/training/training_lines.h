// Reads the lines of a tokenizer's training files: counts them, repairs UTF-8, reports progress.
#pragma once

#include <optional>
#include <string>

#include "base/files/text_file.h"
#include "heed/tokenizer.h"

namespace heed {

class TrainingLines {
 public:
  enum class Invalid { repaired, kept };  // invalid UTF-8

  TrainingLines(const TokenizerTraining& training, Invalid invalid,
                TokenizerTrainingReport& report);

  // The next line that is not blank; false after the last file.
  bool next(std::string& line);

  // Throws invalid_argument when there was no text.
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
