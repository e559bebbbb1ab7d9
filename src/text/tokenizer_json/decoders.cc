#include "text/tokenizer_json/decoders.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "text/unicode/byte_alphabet.h"
#include "text/unicode/regex.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr const char* kKnown =
    "BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  size_t kept = 0;
  for (; at != std::string::npos; at = text.find(from, kept)) {
    out.append(text, kept, at - kept).append(to);
    kept = at + from.size();
  }
  out.append(text, kept);
  text = std::move(out);
}

// Byte-alphabet tokens to bytes. The result may be invalid UTF-8 and is not repaired, so that encode
// and decode round-trip any bytes.
class ByteLevel : public Decoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::string text;
    for (const std::string& piece : pieces) text += bytes_of_alphabet(piece).value_or(piece);
    pieces = {std::move(text)};
  }
};

class WordPiece : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::string& piece = pieces[i];
      if (i > 0) {
        if (piece.starts_with(prefix_)) {
          piece.erase(0, prefix_.size());
        } else {
          piece.insert(piece.begin(), ' ');
        }
      }
      if (cleanup_) clean(piece);
    }
  }

 private:
  // Removes the spaces that splitting put around punctuation and contractions.
  static void clean(std::string& piece) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules = {{
        {" .", "."},
        {" ?", "?"},
        {" !", "!"},
        {" ,", ","},
        {" ' ", "'"},
        {" n't", "n't"},
        {" 'm", "'m"},
        {" do not", " don't"},
        {" 's", "'s"},
        {" 've", "'ve"},
        {" 're", "'re"},
    }};
    for (const auto& [from, to] : kRules) replace_all(piece, from, to);
  }

  std::string prefix_;
  bool cleanup_;
};

class Metaspace : public Decoder {
 public:
  Metaspace(char32_t mark, bool prepended) : mark_(to_utf8(mark)), prepended_(prepended) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      replace_all(pieces[i], mark_, i == 0 && prepended_ ? "" : " ");
    }
  }

 private:
  std::string mark_;
  bool prepended_;
};

// Runs of byte tokens (<0xE2>, <0x82>, …) to characters; if they are not UTF-8, each byte becomes
// U+FFFD.
class ByteFallback : public Decoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_utf8(bytes)) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), to_utf8(kReplacementCharacter));
      }
      bytes.clear();
    };
    for (std::string& piece : pieces) {
      if (const auto byte = byte_of(piece)) {
        bytes.push_back(*byte);
      } else {
        flush();
        out.push_back(std::move(piece));
      }
    }
    flush();
    pieces = std::move(out);
  }

 private:
  static std::optional<char> byte_of(std::string_view piece) {
    if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
    unsigned byte = 0;
    const char* end = piece.data() + 5;
    const auto read = std::from_chars(piece.data() + 3, end, byte, 16);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return static_cast<char>(byte);
  }
};

class Fuse : public Decoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    pieces = {std::move(text)};
  }
};

class Strip : public Decoder {
 public:
  Strip(char32_t content, int64_t start, int64_t stop)
      : content_(to_utf8(content)), start_(start), stop_(stop) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (std::string& piece : pieces) {
      std::string_view kept = piece;
      for (int64_t i = 0; i < start_ && kept.starts_with(content_); ++i) {
        kept.remove_prefix(content_.size());
      }
      for (int64_t i = 0; i < stop_ && kept.ends_with(content_); ++i) {
        kept.remove_suffix(content_.size());
      }
      if (kept.size() < piece.size()) piece = std::string(kept);
    }
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

class ReplaceText : public Decoder {
 public:
  ReplaceText(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (std::string& piece : pieces) replace_all(piece, pattern_, content_);
  }

 private:
  std::string pattern_, content_;
};

class ReplaceRegex : public Decoder {
 public:
  ReplaceRegex(const std::string& pattern, std::string content)
      : regex_(pattern), content_(std::move(content)) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (std::string& piece : pieces) {
      std::string out;
      size_t at = 0;
      regex_.each_match(piece, [&](size_t begin, size_t end) {
        out.append(piece, at, begin - at).append(content_);
        at = end;
      });
      piece = out.append(piece, at);
    }
  }

 private:
  Regex regex_;
  std::string content_;
};

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      replace_all(pieces[i], suffix_, i + 1 == pieces.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

class Sequence : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> all) : all_(std::move(all)) {}

  void apply(std::vector<std::string>& pieces) const override {
    for (const auto& decoder : all_) decoder->apply(pieces);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> all_;
};

std::unique_ptr<Decoder> read_metaspace(const JsonNode& node) {
  const char32_t mark = node.has("replacement") ? node.at("replacement").character() : U'▁';
  const bool prepended = node.has("prepend_scheme") ? node.text("prepend_scheme") != "never"
                                                    : node.flag("add_prefix_space", true);
  return std::make_unique<Metaspace>(mark, prepended);
}

constexpr int kMaxDepth = 16;  // of nested sequences

std::unique_ptr<Decoder> read_nested(const JsonNode& node, int depth) {
  const std::string& type = node.text("type");
  if (type == "Sequence") {
    if (depth >= kMaxDepth) node.corrupt("sequences must not be nested too deeply");
    std::vector<std::unique_ptr<Decoder>> all;
    for (const JsonNode& one : node.at("decoders").elements()) {
      all.push_back(read_nested(one, depth + 1));
    }
    return std::make_unique<Sequence>(std::move(all));
  }
  if (type == "BPEDecoder") return std::make_unique<BpeDecoder>(node.text("suffix", "</w>"));
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Metaspace") return read_metaspace(node);
  if (type == "Replace") {
    const JsonNode pattern = node.at("pattern");
    const std::string& content = node.text("content");
    if (pattern.has("Regex")) return std::make_unique<ReplaceRegex>(pattern.text("Regex"), content);
    return std::make_unique<ReplaceText>(pattern.text("String"), content);
  }
  if (type == "Strip") {
    return std::make_unique<Strip>(node.at("content").character(),
                                   node.at("start").integer(0, INT32_MAX),
                                   node.at("stop").integer(0, INT32_MAX));
  }
  if (type == "WordPiece") {
    return std::make_unique<WordPiece>(node.text("prefix", "##"), node.flag("cleanup", true));
  }
  node.unsupported(type, kKnown);
}

}  // namespace

std::unique_ptr<Decoder> read_decoder(const JsonNode& node) { return read_nested(node, 0); }

}  // namespace heed
