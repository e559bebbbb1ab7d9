#include "text/tokenizers/marian_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/files/plain_file_name.h"
#include "heed/error.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/special_tokens.h"
#include "text/tokenizers/spiece_model.h"
#include "text/tokenizers/spiece_tokenizer.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/unicode/mapped_text.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr std::string_view kSpaceMark = "▁";
constexpr int64_t kMaxId = 10'000'000;

struct Vocabulary {
  std::unordered_map<std::string, int32_t> ids;
  std::vector<std::string> pieces;  // by id; "" where there is none

  std::optional<int32_t> find(const std::string& piece) const {
    const auto found = ids.find(piece);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  }
};

Vocabulary read_vocabulary(const std::string& path) {
  const nlohmann::json json = read_json(path);
  const auto fail = [&path](const std::string& what) {
    throw Error(ErrorCode::corrupt_file, path + ": " + what);
  };
  if (!json.is_object() || json.empty()) fail("must be an object of tokens and their ids");
  Vocabulary vocabulary;
  for (const auto& [piece, id] : json.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMaxId || piece.empty()) {
      fail("ids must be whole numbers from 0 to " + std::to_string(kMaxId));
    }
    const auto at = id.get<size_t>();
    if (at >= vocabulary.pieces.size()) vocabulary.pieces.resize(at + 1);
    if (!vocabulary.pieces[at].empty())
      fail("ids must be unique, two tokens have the id " + std::to_string(at));
    vocabulary.pieces[at] = piece;
    vocabulary.ids.emplace(piece, static_cast<int32_t>(at));
  }
  return vocabulary;
}

// ">>fra<<" anywhere in the text, matched by the pattern ">>.+<<": from the first >> of a line to its
// last <<.
struct LanguageCode {
  size_t begin = std::string_view::npos, end = 0;
};

LanguageCode find_language_code(std::string_view text, size_t from) {
  for (size_t begin = text.find(">>", from); begin != std::string_view::npos;
       begin = text.find(">>", begin + 1)) {
    const size_t line_end = std::min(text.find('\n', begin), text.size());
    const size_t close = text.substr(0, line_end).rfind("<<");
    if (close != std::string_view::npos && close > begin + 2) return {begin, close + 2};
  }
  return {};
}

class MarianTokenizer : public Tokenizer {
 public:
  struct Side {
    SpieceModel model;
    Vocabulary vocabulary;
    SpecialTokens specials;
    int32_t unknown = -1;
  };

  MarianTokenizer(Side source, Side target, SpecialIds ids, TokenizerFiles files)
      : source_(std::move(source)),
        target_(std::move(target)),
        ids_(ids),
        files_(std::move(files)) {}

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    Encoding result;
    add_text(result, text, side(options.side));
    if (options.special_tokens) add_special(result, ids_.end, to_signed(text.size()));
    return result;
  }

  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override {
    Encoding result;
    add_text(result, first, side(options.side));
    append_second(result, encode(second, options), 0);
    return result;
  }

  std::vector<int32_t> encode_ids(std::string_view text,
                                  const EncodeOptions& options) const override {
    return encode(text, options).ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    const Side& one = side(options.side);
    MappedText text;
    std::vector<std::string> run;
    for (const int32_t id : ids) {
      check_id(id, vocabulary_size());
      const std::string name = piece_of(one, id);
      if (!one.specials.has(id)) {
        run.push_back(name);
      } else if (!options.skip_special_tokens) {
        text.text += one.model.decode(run) + name + " ";
        run.clear();
      }
    }
    text.text += one.model.decode(run);
    // Tokens of the other language that this model lacks are decoded unchanged.
    std::string plain = map_replaced(std::move(text), kSpaceMark, " ").text;
    size_t begin = 0;
    while (begin < plain.size() && is_space(decode_utf8(plain, begin).value)) {
      begin += decode_utf8(plain, begin).bytes;
    }
    while (plain.size() > begin && is_space(decode_utf8_before(plain, plain.size()).value)) {
      plain.resize(plain.size() - decode_utf8_before(plain, plain.size()).bytes);
    }
    return plain.substr(begin);
  }

  int64_t vocabulary_size() const override {
    return to_signed(std::max(source_.vocabulary.pieces.size(), target_.vocabulary.pieces.size()));
  }
  std::string piece(int32_t id) const override {
    check_id(id, vocabulary_size());
    return piece_of(source_, id);
  }
  std::optional<int32_t> find(std::string_view piece) const override {
    return source_.vocabulary.find(std::string(piece));
  }
  const SpecialIds& special_ids() const override { return ids_; }
  bool begins_word(int32_t id) const override {
    return source_.specials.has(id) || piece(id).starts_with(kSpaceMark);
  }

  void save(const std::string& folder) const override {
    for (const auto& [name, content] : files_) write_tokenizer_file(folder, name, content);
  }

 private:
  const Side& side(TextSide which) const { return which == TextSide::source ? source_ : target_; }

  static std::string piece_of(const Side& side, int32_t id) {
    const auto at = static_cast<size_t>(id);
    const std::vector<std::string>& pieces = side.vocabulary.pieces;
    const bool there = at < pieces.size() && !pieces[at].empty();
    return there ? pieces[at] : pieces[static_cast<size_t>(side.unknown)];
  }

  static void add_text(Encoding& result, std::string_view text, const Side& side) {
    const MappedText mapped = map_repaired(text);
    for (const auto& part : side.specials.split(mapped.text)) {
      if (part.id >= 0) {
        add_token(result, part.id,
                  {mapped.source_position(part.begin), mapped.source_position(part.end)});
      } else {
        add_part(result, mapped, part, side);
      }
    }
  }

  static void add_part(Encoding& result, const MappedText& mapped, const SpecialTokens::Part& part,
                       const Side& side) {
    const std::string_view text =
        std::string_view(mapped.text).substr(part.begin, part.end - part.begin);
    const auto add = [&](const std::string& piece, size_t begin, size_t end) {
      add_token(
          result, side.vocabulary.find(piece).value_or(side.unknown),
          {mapped.source_position(part.begin + begin), mapped.source_position(part.begin + end)});
    };
    // Language codes are removed everywhere; only one at the start becomes a token.
    std::string plain;
    std::vector<std::pair<size_t, size_t>>
        moved;  // from this byte of `plain` on, the offset to the source
    size_t taken = 0;
    for (LanguageCode code = find_language_code(text, 0); code.begin != std::string_view::npos;
         code = find_language_code(text, code.end)) {
      if (code.begin == 0) add(std::string(text.substr(0, code.end)), 0, code.end);
      plain += text.substr(taken, code.begin - taken);
      taken = code.end;
      moved.emplace_back(plain.size(), taken - plain.size());
    }
    plain += text.substr(taken);
    const auto position = [&moved](size_t at, bool end) {
      size_t by = 0;
      for (const auto& [from, distance] : moved) {
        if (end ? from < at : from <= at) by = distance;
      }
      return at + by;
    };
    for (const SpieceModel::Token& token : side.model.encode(plain)) {
      const size_t begin = position(token.begin, false);
      add(token.piece, begin, std::max(begin, position(token.end, true)));
    }
  }

  Side source_, target_;
  SpecialIds ids_;
  TokenizerFiles files_;
};

}  // namespace

bool is_marian_tokenizer(const TokenizerFolder& folder) {
  return folder.has("source.spm") && folder.has("target.spm") && folder.has("vocab.json");
}

TokenizerPtr load_marian_tokenizer(const TokenizerFolder& folder) {
  const std::string target_vocabulary =
      folder.flag("separate_vocabs").value_or(false)
          ? folder.text("target_vocab_file").value_or("target_vocab.json")
          : "vocab.json";
  if (!is_plain_file_name(target_vocabulary)) {
    throw Error(ErrorCode::corrupt_file,
                folder.path("tokenizer_config.json") +
                    ": \"target_vocab_file\" must be a file of this folder");
  }
  TokenizerFiles files;
  for (const std::string name : {"source.spm", "target.spm", "vocab.json", "target_vocab.json",
                                 "tokenizer_config.json", "special_tokens_map.json"}) {
    if (folder.has(name)) files.emplace_back(name, read_file(folder.path(name)));
  }
  SpecialIds ids;
  const auto load_side = [&](const std::string& model_name, const std::string& vocabulary_name) {
    const std::string model_path = folder.path(model_name);
    MarianTokenizer::Side side{SpieceModel(read_file(model_path), model_path),
                               read_vocabulary(folder.path(vocabulary_name)),
                               {},
                               -1};
    std::vector<SpecialToken> specials;
    const auto special = [&](const char* key, const char* otherwise) {
      const std::string token = folder.token(key).value_or(otherwise);
      const std::optional<int32_t> id = side.vocabulary.find(token);
      if (!id) {
        throw Error(ErrorCode::corrupt_file,
                    folder.path(vocabulary_name) + " must have " + token + " (" + key + ")");
      }
      specials.push_back({token, *id});
      return *id;
    };
    ids.end = special("eos_token", "</s>");
    side.unknown = ids.unknown = special("unk_token", "<unk>");
    ids.pad = special("pad_token", "<pad>");
    side.specials = SpecialTokens(std::move(specials));
    return side;
  };
  MarianTokenizer::Side target = load_side("target.spm", target_vocabulary);
  MarianTokenizer::Side source = load_side("source.spm", "vocab.json");
  return std::make_shared<MarianTokenizer>(std::move(source), std::move(target), ids,
                                           std::move(files));
}

}  // namespace heed
