// The id layouts of SentencePiece vocabularies by model family, as in the tokenizer classes of Hugging
// Face's transformers.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "heed/error.h"
#include "text/tokenizers/spiece_tokenizer.h"
#include "text/tokenizers/tokenizer_folder.h"

namespace heed {
namespace {

constexpr int64_t kMaxAddedTokens = 1 << 20;
constexpr int64_t kMaxSentinels = 1 << 16;  // each is searched for in every text

// Builds a layout piece by piece; ids follow the order of the calls.
class Builder {
 public:
  Builder(const SpieceModel& model, const TokenizerFolder& folder)
      : model_(model), folder_(folder) {
    layout_.id_of_piece.assign(static_cast<size_t>(model.size()), -1);
  }

  int32_t add(const std::string& piece) {
    const auto id = static_cast<int32_t>(layout_.pieces.size());
    by_piece_.emplace(piece, id);  // find() returns the first of equal pieces
    layout_.pieces.push_back(piece);
    layout_.special.push_back(false);
    layout_.added.push_back(false);
    return id;
  }

  void add_model_piece(int32_t number) {
    layout_.id_of_piece[static_cast<size_t>(number)] = add(model_.piece(number));
  }
  void add_model_pieces(int32_t first = 0) {
    for (int32_t number = first; number < model_.size(); ++number) add_model_piece(number);
  }
  void set_id(int32_t number, int32_t id) {
    layout_.id_of_piece.at(static_cast<size_t>(number)) = id;
  }

  int32_t find(const std::string& piece) const {
    const auto found = by_piece_.find(piece);
    return found == by_piece_.end() ? -1 : found->second;
  }

  // Marks an id as a special token: recognized in a text, skipped by decode.
  void mark_special(int32_t id, bool strip_left = false, bool strip_right = false) {
    if (id < 0) return;
    const auto at = static_cast<size_t>(id);
    layout_.special[at] = true;
    if (!marked_.insert(id).second) return;
    layout_.tokens.push_back({layout_.pieces[at], id, strip_left, strip_right});
  }

  // The token that tokenizer_config.json has for `key`, else `otherwise`; added if the vocabulary
  // lacks it. -1 for an empty name.
  int32_t special(const std::string& key, const std::string& otherwise) {
    const std::string text = folder_.token(key).value_or(otherwise);
    if (text.empty()) return -1;
    int32_t id = find(text);
    if (id < 0) {
      id = add(text);
      layout_.added[static_cast<size_t>(id)] = true;
    }
    mark_special(id);
    return id;
  }

  // Further added tokens of tokenizer_config.json.
  void add_tokens_of_folder() {
    for (const TokenizerFolder::AddedToken& token : folder_.added_tokens()) {
      if (token.text.empty()) continue;
      int32_t id = find(token.text);
      if (id < 0) {
        if (token.id && *token.id > static_cast<int64_t>(layout_.pieces.size()) + kMaxAddedTokens) {
          throw Error(ErrorCode::corrupt_file,
                      folder_.path("tokenizer_config.json") +
                          ": an added token's id must be near the vocabulary, got " +
                          std::to_string(*token.id));
        }
        while (token.id && static_cast<int32_t>(layout_.pieces.size()) < *token.id) {
          add("<unused_id_" + std::to_string(layout_.pieces.size()) + ">");
        }
        if (token.id && *token.id < static_cast<int32_t>(layout_.pieces.size())) {
          id = *token.id;
          layout_.pieces[static_cast<size_t>(id)] = token.text;
          by_piece_.emplace(token.text, id);
        } else {
          id = add(token.text);
          layout_.added[static_cast<size_t>(id)] = true;
        }
      }
      mark_special(id, token.strip_left, token.strip_right);
      layout_.special[static_cast<size_t>(id)] = token.special;
      if (!token.special) layout_.added[static_cast<size_t>(id)] = true;
    }
  }

  SpieceLayout& layout() { return layout_; }
  const SpieceModel& model() const { return model_; }
  const TokenizerFolder& folder() const { return folder_; }

 private:
  const SpieceModel& model_;
  const TokenizerFolder& folder_;
  SpieceLayout layout_;
  std::unordered_map<std::string, int32_t> by_piece_;
  std::unordered_set<int32_t> marked_;  // the ids of layout_.tokens
};

std::vector<int32_t> list(int32_t id) { return id < 0 ? std::vector<int32_t>{} : std::vector{id}; }

// The plain model: no special tokens in or around a text.
void lay_out_plain(Builder& b) {
  b.add_model_pieces();
  SpieceLayout& layout = b.layout();
  for (int32_t number = 0; number < b.model().size(); ++number) {
    const PieceType type = b.model().type(number);
    layout.special[static_cast<size_t>(number)] = type == PieceType::control;
  }
  layout.ids.unknown = b.model().unknown();
  layout.ids.pad = b.find("<pad>");
  layout.ids.begin = b.find("<s>");
  layout.ids.end = b.find("</s>");
  layout.strips = false;
  layout.prefix_space = false;
}

// Sentinels follow the vocabulary in descending order.
void lay_out_t5(Builder& b) {
  const int64_t sentinels = b.folder().number("extra_ids").value_or(100);
  if (sentinels < 0 || sentinels > kMaxSentinels) {
    throw Error(ErrorCode::corrupt_file,
                b.folder().path("tokenizer_config.json") + ": \"extra_ids\" must be from 0 to " +
                    std::to_string(kMaxSentinels) + ", got " + std::to_string(sentinels));
  }
  b.add_model_pieces();
  SpieceLayout& layout = b.layout();
  for (int64_t i = sentinels - 1; i >= 0; --i) {
    const std::string text = "<extra_id_" + std::to_string(i) + ">";
    if (b.find(text) >= 0) continue;
    const int32_t id = b.add(text);
    b.mark_special(id, true, true);
    layout.added[static_cast<size_t>(id)] = true;
  }
  layout.ids.pad = b.special("pad_token", "<pad>");
  layout.ids.end = b.special("eos_token", "</s>");
  layout.ids.unknown = b.special("unk_token", "<unk>");
  layout.after = layout.between = list(layout.ids.end);
  layout.end_once = true;
  layout.legacy = b.folder().flag("legacy").value_or(false);
  layout.prefix_space = b.folder().flag("add_prefix_space").value_or(true);
  layout.spaces_special = true;
}

void lay_out_llama(Builder& b) {
  b.add_model_pieces();
  SpieceLayout& layout = b.layout();
  layout.ids.unknown = b.special("unk_token", "<unk>");
  layout.ids.begin = b.special("bos_token", "<s>");
  layout.ids.end = b.special("eos_token", "</s>");
  layout.ids.pad = b.special("pad_token", "");
  if (b.folder().flag("add_bos_token").value_or(true)) layout.before = list(layout.ids.begin);
  if (b.folder().flag("add_eos_token").value_or(false)) layout.after = list(layout.ids.end);
  layout.between = layout.after;
  layout.between.insert(layout.between.end(), layout.before.begin(), layout.before.end());
  layout.legacy = b.folder().flag("legacy").value_or(true);
  layout.prefix_space = b.folder().flag("add_prefix_space").value_or(true);
  layout.spaces_special = layout.legacy;
  layout.strips = false;
}

void lay_out_gemma(Builder& b) {
  b.add_model_pieces();
  SpieceLayout& layout = b.layout();
  layout.ids.pad = b.special("pad_token", "<pad>");
  layout.ids.end = b.special("eos_token", "<eos>");
  layout.ids.begin = b.special("bos_token", "<bos>");
  layout.ids.unknown = b.special("unk_token", "<unk>");
  if (b.folder().flag("add_bos_token").value_or(true)) layout.before = list(layout.ids.begin);
  if (b.folder().flag("add_eos_token").value_or(false)) layout.after = list(layout.ids.end);
  layout.between = layout.after;
  layout.between.insert(layout.between.end(), layout.before.begin(), layout.before.end());
  layout.prefix_space = false;
  layout.strips = false;
}

// fairseq's dictionary: four special tokens, then the pieces after the model's three.
void lay_out_xlm_roberta(Builder& b) {
  SpieceLayout& layout = b.layout();
  layout.ids.begin = layout.ids.classify = b.special("bos_token", "<s>");
  layout.ids.pad = b.special("pad_token", "<pad>");
  layout.ids.end = layout.ids.separate = b.special("eos_token", "</s>");
  layout.ids.unknown = b.special("unk_token", "<unk>");
  layout.added.assign(layout.added.size(), false);
  constexpr int32_t kOwnSpecials = 3;  // <unk>, <s>, </s>
  for (int32_t number = 0; number < std::min(kOwnSpecials, b.model().size()); ++number) {
    b.set_id(number, std::max(b.find(b.model().piece(number)), 0));
  }
  if (layout.ids.unknown >= 0) b.set_id(b.model().unknown(), layout.ids.unknown);
  b.add_model_pieces(kOwnSpecials);
  if (b.find("<mask>") < 0) {
    layout.ids.mask = b.add("<mask>");
    b.mark_special(layout.ids.mask, true, false);
    layout.added[static_cast<size_t>(layout.ids.mask)] = true;
  }
  layout.before = list(layout.ids.begin);
  layout.after = layout.between = list(layout.ids.end);
  layout.between.insert(layout.between.end(), layout.after.begin(), layout.after.end());
  layout.joins_plainly = true;
}

// 103 ids before the model's vocabulary: masks and, unused, <unk_2> … <unk_102>.
void lay_out_pegasus(Builder& b) {
  SpieceLayout& layout = b.layout();
  const int64_t offset = b.folder().number("offset").value_or(103);
  if (offset < 3 || offset > kMaxSentinels) {
    throw Error(ErrorCode::corrupt_file, b.folder().path("tokenizer_config.json") +
                                             ": \"offset\" is out of range, got " +
                                             std::to_string(offset));
  }
  for (const char* piece : {"<pad>", "</s>", "<mask_1>", "<mask_2>"}) b.mark_special(b.add(piece));
  for (int64_t i = 2; i < offset; ++i) b.mark_special(b.add("<unk_" + std::to_string(i) + ">"));
  layout.ids = {.pad = 0, .end = 1, .mask = 3};
  for (int32_t number = 0; number < b.model().size(); ++number) {
    const int32_t known = b.find(b.model().piece(number));
    if (known == layout.ids.pad || known == layout.ids.end) {
      b.set_id(number, known);
    } else {
      b.add_model_piece(number);
    }
  }
  layout.ids.unknown = b.special("unk_token", "<unk>");
  layout.after = layout.between = {layout.ids.end};
  layout.end_once = false;
}

struct Family {
  const char* tokenizer_class;
  void (*lay_out)(Builder&);
};

constexpr Family kFamilies[] = {
    {"", lay_out_plain},
    {"T5Tokenizer", lay_out_t5},
    {"MT5Tokenizer", lay_out_t5},
    {"LlamaTokenizer", lay_out_llama},
    {"GemmaTokenizer", lay_out_gemma},
    {"XLMRobertaTokenizer", lay_out_xlm_roberta},
    {"PegasusTokenizer", lay_out_pegasus},
};

}  // namespace

SpieceLayout spiece_layout(const SpieceModel& model, const TokenizerFolder& folder,
                           const std::string& tokenizer_class) {
  for (const Family& family : kFamilies) {
    if (tokenizer_class != family.tokenizer_class) continue;
    Builder builder(model, folder);
    family.lay_out(builder);
    builder.add_tokens_of_folder();
    return std::move(builder.layout());
  }
  throw Error(
      ErrorCode::unsupported,
      folder.path("tokenizer_config.json") + ": the tokenizer class " + tokenizer_class +
          " is not supported for a SentencePiece model",
      "supported: T5, Llama, Gemma, XLMRoberta and Pegasus; or any model with a tokenizer.json");
}

}  // namespace heed
