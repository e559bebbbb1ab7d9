#include "text/tokenizer_json/pre_tokenizers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "text/tokenizer_json/split_patterns.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr const char* kKnown =
    "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, "
    "Split, Whitespace, WhitespaceSplit";

// Splits each piece that is not an added token by cut(text of the piece, emit), which calls
// emit(begin, end) for each part it keeps, with offsets in the piece.
template <class Cut>
void refine(SplitText& split, const Cut& cut) {
  std::vector<TextPiece> parts;
  parts.reserve(split.pieces.size() + split.text.text.size() / 4);
  const std::string_view text = split.text.text;
  for (const TextPiece& piece : split.pieces) {
    if (piece.id >= 0) {
      parts.push_back(piece);
      continue;
    }
    cut(text.substr(piece.begin, piece.end - piece.begin), [&](size_t begin, size_t end) {
      if (begin == end) return;
      parts.push_back(
          {static_cast<uint32_t>(piece.begin + begin), static_cast<uint32_t>(piece.begin + end)});
    });
  }
  split.pieces = std::move(parts);
}

// Rewrites each piece that is not an added token by change(edit, piece).
template <class Change>
void rewrite_pieces(SplitText& split, const Change& change) {
  std::vector<TextPiece> pieces;
  pieces.reserve(split.pieces.size());
  TextEdit edit(split.text);
  for (const TextPiece& piece : split.pieces) {
    const auto begin = static_cast<uint32_t>(edit.size());
    if (piece.id >= 0) {
      edit.keep(piece.begin, piece.end);
    } else {
      change(edit, piece);
    }
    const auto end = static_cast<uint32_t>(edit.size());
    if (begin < end) pieces.push_back({begin, end, piece.id});
  }
  edit.finish(split.text);
  split.pieces = std::move(pieces);
}

// What happens to the text that a pattern matched.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior read_behavior(const JsonNode& node) {
  const std::string& name = node.text();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  node.unsupported(name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

struct Part {
  size_t begin = 0, end = 0;
  bool matched = false;
};

// Applies a behavior to contiguous parts. A match merges with a neighbor only if that is not a match.
template <class Emit>
void apply_behavior(Behavior behavior, std::vector<Part>& parts, const Emit& emit) {
  switch (behavior) {
    case Behavior::removed:
      std::erase_if(parts, [](const Part& part) { return part.matched; });
      break;
    case Behavior::isolated:
      break;
    case Behavior::merged_with_previous:
      for (size_t i = 1; i < parts.size(); ++i) {
        if (parts[i].matched && !parts[i - 1].matched) {
          parts[i - 1].end = parts[i].end;
          parts[i].begin = parts[i].end;
        }
      }
      break;
    case Behavior::merged_with_next:
      for (size_t i = parts.size(); i-- > 1;) {
        if (parts[i - 1].matched && !parts[i].matched) {
          parts[i].begin = parts[i - 1].begin;
          parts[i - 1].end = parts[i - 1].begin;
        }
      }
      break;
    case Behavior::contiguous:
      for (size_t i = 1; i < parts.size(); ++i) {
        if (parts[i].matched == parts[i - 1].matched) {
          parts[i].begin = parts[i - 1].begin;
          parts[i - 1].end = parts[i - 1].begin;
        }
      }
      break;
  }
  for (const Part& part : parts) emit(part.begin, part.end);
}

// Each character for which `matches` holds is a separate match.
template <class Matches>
void split_at_characters(SplitText& split, Behavior behavior, const Matches& matches) {
  std::vector<Part> parts;
  refine(split, [&](std::string_view text, const auto& emit) {
    parts.clear();
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const CodePoint c = decode_utf8(text, at);
      if (matches(c.value)) {
        if (begin < at) parts.push_back({begin, at, false});
        parts.push_back({at, at + c.bytes, true});
        begin = at + c.bytes;
      }
      at += c.bytes;
    }
    if (begin < text.size()) parts.push_back({begin, text.size(), false});
    apply_behavior(behavior, parts, emit);
  });
}

// Runs of characters with the same kind(c); runs of kind 0 are dropped.
template <class KindOf>
void split_runs(SplitText& split, const KindOf& kind_of) {
  refine(split, [&](std::string_view text, const auto& emit) {
    size_t begin = 0;
    int kind = 0;
    for (size_t at = 0; at < text.size();) {
      const CodePoint c = decode_utf8(text, at);
      const int next = kind_of(c.value);
      if (next != kind) {
        if (kind != 0) emit(begin, at);
        begin = at;
        kind = next;
      }
      at += c.bytes;
    }
    if (kind != 0) emit(begin, text.size());
  });
}

class Bert : public PreTokenizer {
 public:
  void split(SplitText& split) const override {
    refine(split, [](std::string_view text, const auto& emit) {
      size_t begin = 0;
      for (size_t at = 0; at < text.size();) {
        const CodePoint c = decode_utf8(text, at);
        const size_t end = at + c.bytes;
        const bool space = is_space(c.value);
        if (space || is_split_punctuation(c.value)) {
          emit(begin, at);
          if (!space) emit(at, end);
          begin = end;
        }
        at = end;
      }
      emit(begin, text.size());
    });
  }
};

class Whitespace : public PreTokenizer {  // \w+|[^\w\s]+
 public:
  void split(SplitText& split) const override {
    split_runs(split, [](char32_t c) { return is_word_character(c) ? 1 : is_space(c) ? 0 : 2; });
  }
};

class WhitespaceSplit : public PreTokenizer {
 public:
  void split(SplitText& split) const override {
    split_runs(split, [](char32_t c) { return is_space(c) ? 0 : 1; });
  }
};

class Punctuation : public PreTokenizer {
 public:
  explicit Punctuation(Behavior behavior) : behavior_(behavior) {}

  void split(SplitText& split) const override {
    split_at_characters(split, behavior_, is_split_punctuation);
  }

 private:
  Behavior behavior_;
};

class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  void split(SplitText& split) const override {
    split_at_characters(split, individual_ ? Behavior::isolated : Behavior::contiguous, is_number);
  }

 private:
  bool individual_;
};

class CharDelimiterSplit : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}

  void split(SplitText& split) const override {
    split_at_characters(split, Behavior::removed, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

class SplitByRegex : public PreTokenizer {
 public:
  SplitByRegex(const std::string& pattern, Behavior behavior, bool invert)
      : regex_(pattern), behavior_(behavior), invert_(invert) {}

  void split(SplitText& split) const override {
    std::vector<Part> parts;
    refine(split, [&](std::string_view text, const auto& emit) {
      parts.clear();
      size_t at = 0;
      regex_.each_match(text, [&](size_t begin, size_t end) {
        if (at < begin) parts.push_back({at, begin, is_delimiter(text.substr(at, begin - at))});
        parts.push_back({begin, end, !invert_});
        at = end;
      });
      if (at < text.size()) parts.push_back({at, text.size(), is_delimiter(text.substr(at))});
      apply_behavior(behavior_, parts, emit);
    });
  }

 private:
  // With an inverted pattern, text between matches is the delimiter. Invalid UTF-8 matches nothing and
  // must not be lost.
  bool is_delimiter(std::string_view between) const { return invert_ && is_utf8(between); }

  Regex regex_;
  Behavior behavior_;
  bool invert_;
};

class SplitByHand : public PreTokenizer {
 public:
  explicit SplitByHand(PieceEnd piece_end) : piece_end_(piece_end) {}

  void split(SplitText& split) const override {
    refine(split, [this](std::string_view text, const auto& emit) {
      for (size_t at = 0; at < text.size();) {
        const size_t end = piece_end_(text, at);
        emit(at, end);
        at = end;
      }
    });
  }

 private:
  PieceEnd piece_end_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void split(SplitText& split) const override {
    if (add_prefix_space_) {
      rewrite_pieces(split, [&split](TextEdit& edit, const TextPiece& piece) {
        if (split.text.text[piece.begin] != ' ') edit.replace(piece.begin, piece.begin, " ");
        edit.keep(piece.begin, piece.end);
      });
    }
    if (use_regex_) pattern_.split(split);
    if (keep_bytes_) return;
    rewrite_pieces(split, [&split](TextEdit& edit, const TextPiece& piece) {
      for (size_t at = piece.begin; at < piece.end; ++at) {
        const auto byte = static_cast<unsigned char>(split.text.text[at]);
        edit.replace(at, at + 1, byte_alphabet()[byte]);
      }
    });
  }

  bool keep_bytes() override {
    keep_bytes_ = true;
    return true;
  }

 private:
  SplitByHand pattern_{gpt2_piece_end};
  bool add_prefix_space_, use_regex_;
  bool keep_bytes_ = false;
};

// When SentencePiece's ▁ is prepended to the text.
enum class PrependScheme { always, never, first };

class Metaspace : public PreTokenizer {
 public:
  Metaspace(char32_t mark, PrependScheme scheme, bool splits)
      : mark_(to_utf8(mark)), scheme_(scheme), splits_(splits) {}

  void split(SplitText& split) const override {
    rewrite_pieces(split, [&](TextEdit& edit, const TextPiece& piece) {
      const std::string_view text =
          std::string_view(split.text.text).substr(piece.begin, piece.end - piece.begin);
      if (prepends(split, piece, text)) edit.replace(piece.begin, piece.begin, mark_);
      size_t at = 0;
      for (size_t space = text.find(' '); space != text.npos; space = text.find(' ', at)) {
        edit.keep(piece.begin + at, piece.begin + space);
        edit.replace(piece.begin + space, piece.begin + space + 1, mark_);
        at = space + 1;
      }
      edit.keep(piece.begin + at, piece.end);
    });
    if (!splits_) return;
    refine(split, [this](std::string_view text, const auto& emit) {
      size_t begin = 0;
      for (size_t mark = text.find(mark_, 1); mark != text.npos;
           mark = text.find(mark_, begin + mark_.size())) {
        emit(begin, mark);
        begin = mark;
      }
      emit(begin, text.size());
    });
  }

  // Only the start of the source gets the mark, and a normalizer may have removed it.
  bool needs_sources() const override { return scheme_ == PrependScheme::first; }

 private:
  bool prepends(const SplitText& split, const TextPiece& piece, std::string_view text) const {
    if (scheme_ == PrependScheme::never || text[0] == ' ' || text.starts_with(mark_)) return false;
    if (scheme_ == PrependScheme::always) return true;
    if (!split.text.aligned) return split.source_begin + piece.begin == 0;
    return split.text.source(piece.begin, piece.end).begin == 0;
  }

  std::string mark_;
  PrependScheme scheme_;
  bool splits_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> all) : all_(std::move(all)) {}

  void split(SplitText& split) const override {
    for (const auto& one : all_) one->split(split);
  }
  bool needs_sources() const override {
    return std::ranges::any_of(all_, [](const auto& one) { return one->needs_sources(); });
  }
  bool keep_bytes() override { return !all_.empty() && all_.back()->keep_bytes(); }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> all_;
};

std::unique_ptr<PreTokenizer> read_split(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern");
  const Behavior behavior = read_behavior(node.at("behavior"));
  const bool invert = node.flag("invert", false);
  if (!pattern.has("Regex")) {
    const std::string escaped = escape_pattern(pattern.text("String"));
    return std::make_unique<SplitByRegex>(escaped, behavior, invert);
  }
  const std::string& regex = pattern.text("Regex");
  // These patterns match all of the text, so keeping the matches suffices.
  const bool keeps_matches = invert
                                 ? behavior == Behavior::removed || behavior == Behavior::isolated
                                 : behavior == Behavior::isolated;
  if (const PieceEnd piece_end = find_split_pattern(regex); piece_end != nullptr && keeps_matches) {
    return std::make_unique<SplitByHand>(piece_end);
  }
  return std::make_unique<SplitByRegex>(regex, behavior, invert);
}

std::unique_ptr<PreTokenizer> read_metaspace(const JsonNode& node) {
  PrependScheme scheme = PrependScheme::always;
  if (node.has("prepend_scheme")) {
    const std::string& name = node.text("prepend_scheme");
    if (name == "never") {
      scheme = PrependScheme::never;
    } else if (name == "first") {
      scheme = PrependScheme::first;
    } else if (name != "always") {
      node.at("prepend_scheme").unsupported(name, "always, never, first");
    }
  } else if (!node.flag("add_prefix_space", true)) {  // older files
    scheme = PrependScheme::never;
  }
  const char32_t mark = node.has("replacement") ? node.at("replacement").character() : U'▁';
  return std::make_unique<Metaspace>(mark, scheme, node.flag("split", true));
}

constexpr int kMaxDepth = 16;  // of nested sequences

std::unique_ptr<PreTokenizer> read_nested(const JsonNode& node, int depth) {
  const std::string& type = node.text("type");
  if (type == "Sequence") {
    if (depth >= kMaxDepth) node.corrupt("sequences must not be nested too deeply");
    std::vector<std::unique_ptr<PreTokenizer>> all;
    for (const JsonNode& one : node.at("pretokenizers").elements()) {
      all.push_back(read_nested(one, depth + 1));
    }
    return std::make_unique<Sequence>(std::move(all));
  }
  if (type == "BertPreTokenizer") return std::make_unique<Bert>();
  if (type == "ByteLevel") {
    return std::make_unique<ByteLevel>(node.flag("add_prefix_space", true),
                                       node.flag("use_regex", true));
  }
  if (type == "CharDelimiterSplit") {
    return std::make_unique<CharDelimiterSplit>(node.at("delimiter").character());
  }
  if (type == "Digits") return std::make_unique<Digits>(node.flag("individual_digits", false));
  if (type == "Metaspace") return read_metaspace(node);
  if (type == "Punctuation") {
    return std::make_unique<Punctuation>(node.has("behavior") ? read_behavior(node.at("behavior"))
                                                              : Behavior::isolated);
  }
  if (type == "Split") return read_split(node);
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return std::make_unique<WhitespaceSplit>();
  node.unsupported(type, kKnown);
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node) {
  return read_nested(node, 0);
}

}  // namespace heed
