// Tokenizers of one SentencePiece model: T5's spiece.model, Llama's tokenizer.model, XLM-R's
// sentencepiece.bpe.model, Pegasus's, and plain ones.
//
// The families differ in which id a piece has, which special tokens there are, and what stands
// around a text. That is a table each (spiece_families.cc); the rest is the same for all.
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
  std::vector<int32_t> id_of_piece;  // by the model's own number
  std::vector<SpecialToken> tokens;  // recognised in a text
  std::vector<bool> special;         // by id: left out by decode
  std::vector<bool> added;           // by id: decode sets it apart by spaces

  std::vector<int32_t> before, between, after;  // around a text, and between two
  bool end_once = false;  // T5: `after` is left out when the text ends in it already

  // Hugging Face's word. Not legacy: a text is "▁" + text, and what follows a special token is not
  // given a space of its own.
  bool legacy = true;
  bool prefix_space = true;
  bool strips = true;           // decode takes white space off both ends
  bool spaces_special = false;  // decode puts a space before a special token that it shows
  bool joins_plainly = false;   // decode joins pieces and knows no rules of the model's
  SpecialIds ids;
};

// `name`: the model's file in `folder`. The folder's tokenizer_class decides the family; where it
// says nothing, the file's name does.
TokenizerPtr load_spiece_tokenizer(const TokenizerFolder& folder, const std::string& name);

// From a model's bytes and what is to be its tokenizer_config.json; saved as spiece.model.
TokenizerPtr make_spiece_tokenizer(const std::string& bytes, const nlohmann::ordered_json& config);

using TokenizerFiles = std::vector<std::pair<std::string, std::string>>;  // name and content

// The layout of a family, by tokenizer_class ("" for a plain model); throws unsupported.
SpieceLayout spiece_layout(const SpieceModel& model, const TokenizerFolder& folder,
                           const std::string& tokenizer_class);

}  // namespace heed
