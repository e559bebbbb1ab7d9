#include "infer/engine/prompt_ids.h"

#include "model/network.h"

namespace heed {

std::vector<int32_t> prompt_ids(const Model& model, std::string_view text) {
  std::vector<int32_t> ids = model.tokenizer().encode_ids(text);
  const SpecialIds& special = model.tokenizer().special_ids();
  if (ids.size() > 1 && ids.back() == special.end) ids.pop_back();
  const int begin = special.begin >= 0 ? special.begin : model.network().config().bos_id;
  if (ids.empty() && begin >= 0) ids = {begin};
  return ids;
}

}  // namespace heed
