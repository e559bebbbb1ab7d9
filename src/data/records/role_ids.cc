#include "data/records/role_ids.h"

#include <string>

#include "heed/error.h"

namespace heed {

namespace {

int32_t first_of(int32_t a, int32_t b) { return a >= 0 ? a : b; }

void require(int32_t id, const char* what, const char* option) {
  if (id >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              std::string("the tokenizer must have ") + what + " for this objective",
              std::string("set ") + option + ", or use a tokenizer that has one");
}

}  // namespace

RoleIds resolve_role_ids(const ObjectiveOptions& objective, const Tokenizer& tokenizer) {
  const SpecialIds& special = tokenizer.special_ids();
  RoleIds ids;
  ids.start = first_of(objective.decoder_start_id, first_of(special.pad, special.begin));
  ids.begin = first_of(objective.begin_id, special.begin);
  // BERT's vocabularies have no end token; [SEP] also ends texts.
  ids.end = first_of(objective.end_id, first_of(special.end, special.separate));
  ids.mask = first_of(objective.mask_id, special.mask);
  ids.classify = first_of(special.classify, special.begin);
  ids.separate = first_of(special.separate, ids.end);

  for (const int32_t id : {ids.start, ids.begin, ids.end, ids.mask}) {
    if (id < tokenizer.vocabulary_size()) continue;
    throw Error(ErrorCode::invalid_argument, "an id must be below the vocabulary size of " +
                                                 std::to_string(tokenizer.vocabulary_size()) +
                                                 ", got " + std::to_string(id));
  }
  switch (objective.kind) {
    case Objective::denoising:
      require(ids.mask, "a mask token", "mask_id");
      [[fallthrough]];
    case Objective::translation:
    case Objective::parsing:
    case Objective::span_corruption:
      require(ids.start, "a first token for the decoder", "decoder_start_id");
      require(ids.end, "a token that ends a sentence", "end_id");
      break;
    case Objective::masked_lm:
      require(ids.mask, "a mask token", "mask_id");
      break;
    default:
      break;
  }
  return ids;
}

}  // namespace heed
