// Normalized text with the source span of each byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// Bytes [begin, end) of the source. 32 bits: encode() rejects longer texts.
struct SourceSpan {
  uint32_t begin = 0, end = 0;
};

struct AlignedText {
  std::string text;
  // One per byte of `text`, in source order; empty when offsets are not requested, which saves eight
  // times the size of the text.
  std::vector<SourceSpan> sources;
  bool aligned = false;

  AlignedText() = default;
  AlignedText(std::string_view source, size_t source_begin, bool align);

  // The source of bytes [begin, end).
  TextSpan source(size_t begin, size_t end) const;
};

// Rewrites a text from left to right.
//
//   TextEdit edit(text);
//   edit.keep(0, 3);           // the first three bytes as they are
//   edit.replace(3, 5, "x");   // the next two became an x
//   edit.keep(5, text.text.size());
//   edit.finish(text);
class TextEdit {
 public:
  explicit TextEdit(const AlignedText& from) : from_(from) {
    to_.aligned = from.aligned;
    to_.text.reserve(from.text.size() + from.text.size() / 8);
  }

  void keep(size_t begin, size_t end) {
    to_.text.append(from_.text, begin, end - begin);
    if (to_.aligned) {
      to_.sources.insert(to_.sources.end(), from_.sources.begin() + static_cast<ptrdiff_t>(begin),
                         from_.sources.begin() + static_cast<ptrdiff_t>(end));
    }
  }
  // An insertion if begin = end.
  void replace(size_t begin, size_t end, std::string_view with) {
    write(begin, end, [with](std::string& out) { out.append(with); });
  }
  // The same; append(std::string&) appends the replacement.
  template <class Append>
  void write(size_t begin, size_t end, const Append& append) {
    append(to_.text);
    if (to_.aligned) align(begin, end);
  }

  // Maps each of the last bytes to another byte.
  template <class Change>
  void change_last(size_t bytes, const Change& change) {
    for (size_t i = to_.text.size() - bytes; i < to_.text.size(); ++i) {
      to_.text[i] = change(to_.text[i]);
    }
  }

  size_t size() const { return to_.text.size(); }  // written so far
  void finish(AlignedText& text) { text = std::move(to_); }

 private:
  void align(size_t begin, size_t end);

  const AlignedText& from_;
  AlignedText to_;
};

}  // namespace heed
