// Tokenizers of one SentencePiece model: T5's spiece.model, Llama's tokenizer.model, XLM-R's
// sentencepiece.bpe.model, Pegasus's, and plain ones.
//
// The families differ in the ids of pieces, the special tokens, and the template around a text: one
// layout each (spiece_families.cc).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "heed/tokenizer.h"
#include "text/tokenizers/special_tokens.h"
#include "text/tokenizers/spiece_model.h"

namespace heed {

class TokenizerFolder;

struct SpieceLayout {
  std::vector<std::string> pieces;   // by id
  std::vector<int32_t> id_of_piece;  // by the model's id
  std::vector<SpecialToken> tokens;  // recognized in a text
  std::vector<bool> special;         // by id: skipped by decode
  std::vector<bool> added;           // by id: decode separates it by spaces

  std::vector<int32_t> before, between, after;  // around a text, and between two
  bool end_once = false;  // T5: `after` is omitted when the text already ends in it

  // Hugging Face's term. Not legacy: a text is "▁" + text, and no space is inserted after a special
  // token.
  bool legacy = true;
  bool prefix_space = true;
  bool strips = true;           // decode strips white space at both ends
  bool spaces_special = false;  // decode puts a space before a special token that is not skipped
  bool joins_plainly = false;   // decode joins pieces without the model's rules
  SpecialIds ids;
};

// `name`: the model's file in `folder`. The folder's tokenizer_class selects the family; without one,
// the file name does.
TokenizerPtr load_spiece_tokenizer(const TokenizerFolder& folder, const std::string& name);

// From a model's bytes and its tokenizer_config.json; saved as spiece.model.
TokenizerPtr make_spiece_tokenizer(const std::string& bytes, const nlohmann::ordered_json& config);

using TokenizerFiles = std::vector<std::pair<std::string, std::string>>;  // name and content

// The layout of a family, by tokenizer_class ("" for a plain model); throws unsupported.
SpieceLayout spiece_layout(const SpieceModel& model, const TokenizerFolder& folder,
                           const std::string& tokenizer_class);

}  // namespace heed
