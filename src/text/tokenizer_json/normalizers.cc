#include "text/tokenizer_json/normalizers.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text/base64.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/charsmap.h"
#include "text/unicode/graphemes.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr const char* kKnown =
    "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, "
    "Replace, Sequence, Strip, StripAccents";

bool all_ascii(std::string_view text) {
  for (const char c : text) {
    if (!is_ascii(c)) return false;
  }
  return true;
}

// Rewrites each code point, ASCII included, by append(out, code point).
template <class Append>
void rewrite(AlignedText& text, const Append& append) {
  TextEdit edit(text);
  for (size_t at = 0; at < text.text.size();) {
    const CodePoint c = decode_utf8(text.text, at);
    edit.write(at, at + c.bytes, [&](std::string& out) { append(out, c.value); });
    at += c.bytes;
  }
  edit.finish(text);
}

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    if (!all_ascii(text.text)) return rewrite(text, append_lower);
    for (char& c : text.text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
};

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    if (all_ascii(text.text)) return;
    rewrite(text, [](std::string& out, char32_t c) {
      if (!is_mark(c)) append_utf8(out, c);
    });
  }
};

using Icu = icu::Normalizer2;
using IcuInstance = const Icu* (*)(UErrorCode&);

const Icu& icu_normalizer(IcuInstance instance) {
  UErrorCode error = U_ZERO_ERROR;
  const Icu* normalizer = instance(error);
  HEED_CHECK(U_SUCCESS(error) && normalizer != nullptr, "ICU must have normalization data");
  return *normalizer;
}

// NFC, NFD, NFKC, NFKD. The text is split at normalization boundaries, so that each byte of the
// result maps to few source characters.
class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(IcuInstance instance) : icu_(icu_normalizer(instance)) {}

  void apply(AlignedText& text) const override {
    if (all_ascii(text.text)) return;
    const std::string& from = text.text;
    TextEdit edit(text);
    for (size_t begin = 0; begin < from.size();) {
      size_t end = begin + 1;
      // ASCII is unchanged unless a following non-ASCII character combines with it.
      while (end < from.size() && is_ascii(from[end - 1]) && is_ascii(from[end])) ++end;
      if (end - begin > 1 || (end == from.size() && is_ascii(from[begin]))) {
        if (end < from.size()) --end;
        edit.keep(begin, end);
        begin = end;
        continue;
      }
      end = segment_end(from, begin);
      normalize(from, begin, end, edit);
      begin = end;
    }
    edit.finish(text);
  }

 private:
  size_t segment_end(const std::string& text, size_t begin) const {
    size_t end = begin + decode_utf8(text, begin).bytes;
    while (end < text.size()) {
      const CodePoint next = decode_utf8(text, end);
      if (icu_.hasBoundaryBefore(static_cast<UChar32>(next.value))) break;
      end += next.bytes;
    }
    return end;
  }

  void normalize(const std::string& text, size_t begin, size_t end, TextEdit& edit) const {
    icu::UnicodeString before;
    for (size_t at = begin; at < end;) {
      const CodePoint c = decode_utf8(text, at);
      before.append(static_cast<UChar32>(c.value));
      at += c.bytes;
    }
    UErrorCode error = U_ZERO_ERROR;
    if (icu_.isNormalized(before, error) && U_SUCCESS(error)) return edit.keep(begin, end);
    const icu::UnicodeString after = icu_.normalize(before, error);
    if (U_FAILURE(error)) return edit.keep(begin, end);
    edit.write(begin, end, [&after](std::string& out) {
      for (int32_t at = 0; at < after.length(); at = after.moveIndex32(at, 1)) {
        append_utf8(out, static_cast<char32_t>(after.char32At(at)));
      }
    });
  }

  const Icu& icu_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(AlignedText& text) const override {
    size_t begin = 0, end = text.text.size();
    while (left_ && begin < end) {
      const CodePoint c = decode_utf8(text.text, begin);
      if (!is_space(c.value)) break;
      begin += c.bytes;
    }
    while (right_ && begin < end) {
      const CodePoint c = decode_utf8_before(text.text, end);
      if (!is_space(c.value)) break;
      end -= c.bytes;
    }
    if (begin == 0 && end == text.text.size()) return;
    TextEdit edit(text);
    edit.keep(begin, end);
    edit.finish(text);
  }

 private:
  bool left_, right_;
};

class ReplaceText : public Normalizer {
 public:
  ReplaceText(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(AlignedText& text) const override {
    const std::string& from = text.text;
    size_t found = from.find(pattern_);
    if (found == std::string::npos) return;
    TextEdit edit(text);
    size_t at = 0;
    for (; found != std::string::npos; found = from.find(pattern_, at)) {
      edit.keep(at, found);
      at = found + pattern_.size();
      edit.replace(found, at, content_);
    }
    edit.keep(at, from.size());
    edit.finish(text);
  }

 private:
  std::string pattern_, content_;
};

class ReplaceRegex : public Normalizer {
 public:
  ReplaceRegex(const std::string& pattern, std::string content)
      : regex_(pattern), content_(std::move(content)) {}

  void apply(AlignedText& text) const override {
    TextEdit edit(text);
    size_t at = 0;
    regex_.each_match(text.text, [&](size_t begin, size_t end) {
      edit.keep(at, begin);
      edit.replace(begin, end, content_);
      at = end;
    });
    edit.keep(at, text.text.size());
    edit.finish(text);
  }

 private:
  Regex regex_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}

  void apply(AlignedText& text) const override {
    if (text.text.empty()) return;
    TextEdit edit(text);
    edit.replace(0, 0, content_);
    edit.keep(0, text.text.size());
    edit.finish(text);
  }

 private:
  std::string content_;
};

// The rules of SentencePiece's nmt_nfkc that are not in its charsmap.
class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    rewrite(text, [](std::string& out, char32_t c) {
      if (is_dropped(c)) return;
      append_utf8(out, is_blank(c) ? U' ' : c);
    });
  }

 private:
  static bool is_dropped(char32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  }
  static bool is_blank(char32_t c) {
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == kReplacementCharacter;
  }
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(std::string_view bytes) : map_(bytes) {
    for (unsigned byte = 0; byte < 128; ++byte) {
      const char c = static_cast<char>(byte);
      keeps_ascii_[byte] = !map_.find({&c, 1});
    }
  }

  void apply(AlignedText& text) const override {
    const std::string_view from = text.text;
    TextEdit edit(text);
    for (size_t at = 0; at < from.size();) {
      // Every ASCII character is a cluster, except CR LF.
      size_t plain = at;
      while (plain < from.size() && keeps(from[plain]) && from[plain] != '\r' &&
             (plain + 1 == from.size() || is_ascii(from[plain + 1]))) {
        ++plain;
      }
      if (plain > at) {
        edit.keep(at, plain);
        at = plain;
        continue;
      }
      const size_t end = at + grapheme_bytes(from, at);
      replace(from, at, end, edit);
      at = end;
    }
    edit.finish(text);
  }

 private:
  // Longer clusters are replaced character by character.
  static constexpr size_t kMaxClusterBytes = 5;

  bool keeps(char c) const { return is_ascii(c) && keeps_ascii_[static_cast<unsigned char>(c)]; }

  // The rule of the shortest prefix replaces the whole cluster. That looks wrong, but the tokenizers
  // that ship this map were trained with it.
  void replace(std::string_view text, size_t begin, size_t end, TextEdit& edit) const {
    if (end - begin <= kMaxClusterBytes) {
      if (const auto found = map_.find(text.substr(begin, end - begin))) {
        return edit.replace(begin, end, *found);
      }
    }
    for (size_t at = begin; at < end;) {
      const size_t bytes = decode_utf8(text, at).bytes;
      if (const auto found = map_.find(text.substr(at, bytes))) {
        edit.replace(at, at + bytes, *found);
      } else {
        edit.keep(at, at + bytes);
      }
      at += bytes;
    }
  }

  Charsmap map_;
  std::array<bool, 128> keeps_ascii_{};
};

struct BertOptions {
  bool clean_text = true, handle_chinese_chars = true, strip_accents = true, lowercase = true;
  // The (slow) BertTokenizer of transformers also drops unassigned code points.
  bool drop_unassigned = false;
};

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertOptions& options)
      : options_(options), nfd_(icu_normalizer(&Icu::getNFDInstance)) {
    for (unsigned c = 0; c < 128; ++c) {
      std::string out;
      append(out, c);
      ascii_[c] = out.empty() ? kDropped : out[0];
    }
  }

  void apply(AlignedText& text) const override {
    const std::string& from = text.text;
    TextEdit edit(text);
    for (size_t at = 0; at < from.size();) {
      size_t end = at;
      while (end < from.size() && is_ascii(from[end]) &&
             ascii_[static_cast<unsigned char>(from[end])] != kDropped) {
        ++end;
      }
      if (end > at) {
        edit.keep(at, end);
        edit.change_last(end - at,
                         [this](char c) { return ascii_[static_cast<unsigned char>(c)]; });
        at = end;
        continue;
      }
      const CodePoint c = decode_utf8(from, at);
      edit.write(at, at + c.bytes, [&](std::string& out) { append(out, c.value); });
      at += c.bytes;
    }
    edit.finish(text);
  }

 private:
  static constexpr char kDropped = '\xFF';  // not ASCII

  bool is_dropped(char32_t c) const {
    if (c == 0 || c == kReplacementCharacter) return true;
    if (c == '\t' || c == '\n' || c == '\r' || is_stray_byte(c)) return false;
    const auto icu_c = static_cast<UChar32>(c);
    const uint32_t category = U_GET_GC_MASK(icu_c);
    if (options_.drop_unassigned) return (category & U_GC_C_MASK) != 0;
    if ((category & U_GC_CF_MASK) != 0) {
      // The reference's table of format characters is that of Unicode 8.
      UVersionInfo age;
      u_charAge(icu_c, age);
      return age[0] <= 8;
    }
    return (category & (U_GC_CC_MASK | U_GC_CO_MASK)) != 0;
  }

  static bool is_chinese(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }

  void append(std::string& out, char32_t c) const {
    if (options_.clean_text) {
      if (is_dropped(c)) return;
      if (is_space(c)) c = ' ';
    }
    const bool spaced = options_.handle_chinese_chars && is_chinese(c);
    if (spaced) out.push_back(' ');
    append_stripped(out, c);
    if (spaced) out.push_back(' ');
  }

  void append_stripped(std::string& out, char32_t c) const {
    icu::UnicodeString parts;
    if (c < 0x80 || !options_.strip_accents ||
        !nfd_.getDecomposition(static_cast<UChar32>(c), parts)) {
      return append_cased(out, c);
    }
    for (int32_t at = 0; at < parts.length(); at = parts.moveIndex32(at, 1)) {
      append_cased(out, static_cast<char32_t>(parts.char32At(at)));
    }
  }

  void append_cased(std::string& out, char32_t c) const {
    if (options_.strip_accents && c >= 0x80 && is_nonspacing_mark(c)) return;
    if (options_.lowercase) {
      append_lower(out, c);
    } else {
      append_utf8(out, c);
    }
  }

  BertOptions options_;
  const Icu& nfd_;
  std::array<char, 128> ascii_{};
};

class ByteLevel : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    TextEdit edit(text);
    for (size_t at = 0; at < text.text.size(); ++at) {
      edit.replace(at, at + 1, byte_alphabet()[static_cast<unsigned char>(text.text[at])]);
    }
    edit.finish(text);
  }
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> all) : all_(std::move(all)) {}

  void apply(AlignedText& text) const override {
    for (const auto& normalizer : all_) normalizer->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> all_;
};

std::unique_ptr<Normalizer> read_replace(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern");
  const std::string& content = node.text("content");
  if (pattern.has("Regex")) return std::make_unique<ReplaceRegex>(pattern.text("Regex"), content);
  const std::string& text = pattern.text("String");
  if (text.empty()) return std::make_unique<ReplaceRegex>("", content);
  return std::make_unique<ReplaceText>(text, content);
}

std::unique_ptr<Normalizer> read_bert(const JsonNode& node) {
  BertOptions options;
  options.clean_text = node.flag("clean_text", true);
  options.handle_chinese_chars = node.flag("handle_chinese_chars", true);
  options.lowercase = node.flag("lowercase", true);
  options.strip_accents = node.flag("strip_accents", options.lowercase);
  options.drop_unassigned = node.flag("drop_unassigned", false);
  return std::make_unique<BertNormalizer>(options);
}

// Of nested sequences: an untrusted file must not exhaust the stack.
constexpr int kMaxDepth = 16;

std::unique_ptr<Normalizer> read_nested(const JsonNode& node, int depth) {
  const std::string& type = node.text("type");
  if (type == "Sequence") {
    if (depth >= kMaxDepth) node.corrupt("sequences must not be nested too deeply");
    std::vector<std::unique_ptr<Normalizer>> all;
    for (const JsonNode& one : node.at("normalizers").elements()) {
      all.push_back(read_nested(one, depth + 1));
    }
    return std::make_unique<Sequence>(std::move(all));
  }
  if (type == "BertNormalizer") return read_bert(node);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "NFC") return std::make_unique<UnicodeForm>(&Icu::getNFCInstance);
  if (type == "NFD") return std::make_unique<UnicodeForm>(&Icu::getNFDInstance);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(&Icu::getNFKCInstance);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(&Icu::getNFKDInstance);
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Precompiled") {
    const std::optional<std::string> charsmap =
        decode_base64(node.has("precompiled_charsmap") ? node.text("precompiled_charsmap") : "");
    if (!charsmap) node.corrupt("precompiled_charsmap must be base64");
    return std::make_unique<Precompiled>(*charsmap);
  }
  if (type == "Prepend") return std::make_unique<Prepend>(node.text("prepend"));
  if (type == "Replace") return read_replace(node);
  if (type == "Strip") {
    return std::make_unique<Strip>(node.flag("strip_left", true), node.flag("strip_right", true));
  }
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  node.unsupported(type, kKnown);
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node) { return read_nested(node, 0); }

}  // namespace heed
