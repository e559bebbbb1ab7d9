// Counts of read, kept and skipped examples: nothing is dropped silently.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "heed/enum_names.h"

namespace heed {

// Why an example was skipped or changed.
enum class Skip {
  empty,          // only white space
  invalid_utf8,   // bytes that are not UTF-8
  nul,            // a NUL byte: not text
  long_line,      // longer than max_line_bytes
  malformed,      // too few or too many columns, invalid JSON, unbalanced brackets, a wrong label
  too_short,      // fewer tokens than min_tokens
  too_long,       // more tokens than max_tokens
  ratio,          // one side more than max_ratio times longer than the other
  duplicate,      // seen before
  unknown_label,  // a class that is not among the labels
  truncated,      // kept, but truncated at max_tokens
};

template <>
inline constexpr std::array kEnumNames<Skip>{EnumName<Skip>{Skip::empty, "empty"},
                                             EnumName<Skip>{Skip::invalid_utf8, "invalid_utf8"},
                                             EnumName<Skip>{Skip::nul, "nul"},
                                             EnumName<Skip>{Skip::long_line, "long_line"},
                                             EnumName<Skip>{Skip::malformed, "malformed"},
                                             EnumName<Skip>{Skip::too_short, "too_short"},
                                             EnumName<Skip>{Skip::too_long, "too_long"},
                                             EnumName<Skip>{Skip::ratio, "ratio"},
                                             EnumName<Skip>{Skip::duplicate, "duplicate"},
                                             EnumName<Skip>{Skip::unknown_label, "unknown_label"},
                                             EnumName<Skip>{Skip::truncated, "truncated"}};

struct SkipCount {
  int64_t count = 0;
  std::string first{};  // the first place: "train.en:17", of a malformed one with the reason

  bool operator==(const SkipCount&) const = default;
};

struct CorpusReport {
  std::string name;                                        // the first file's path
  int64_t read = 0;                                        // examples in the files
  int64_t kept = 0;                                        // examples used
  int64_t tokens = 0;                                      // of those
  bool from_cache = false;                                 // tokenized by an earlier run
  std::array<SkipCount, kEnumNames<Skip>.size()> skips{};  // by Skip

  SkipCount& operator[](Skip skip) { return skips[static_cast<size_t>(skip)]; }
  const SkipCount& operator[](Skip skip) const { return skips[static_cast<size_t>(skip)]; }

  // Counts one, and records the first place.
  void count(Skip skip, std::string_view where);

  // "train.en: 29000 read, 28950 kept, 812345 tokens; 40 too_long (first: train.en:17), …"
  std::string summary() const;
  // "40 too_long (first: train.en:17), …", or empty.
  std::string skipped() const;
};

// Throws invalid_argument: the file is empty, or why each record was skipped.
[[noreturn]] void throw_no_examples(const CorpusReport& report);

}  // namespace heed
