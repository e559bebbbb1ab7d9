#include "infer/engine/answer_text.h"

#include <algorithm>

namespace heed {

std::string answer_text(const Model& model, std::span<const int32_t> ids, size_t prompt_tokens,
                        const std::vector<std::string>& stop) {
  const Tokenizer& tokenizer = model.tokenizer();
  std::string text = tokenizer.decode(ids);
  size_t from = 0;
  if (!model.has_source()) {
    // Decoding the new ids alone would lose the space before the first word.
    const std::string prompt = tokenizer.decode(ids.first(prompt_tokens));
    text = text.starts_with(prompt) ? text.substr(prompt.size())
                                    : tokenizer.decode(ids.subspan(prompt_tokens));
  } else {
    from = std::min(text.size(), tokenizer.decode(ids.first(prompt_tokens)).size());
  }
  size_t end = text.size();
  for (const std::string& s : stop) end = std::min(end, text.find(s, from));
  text.resize(std::min(end, text.size()));
  return text;
}

}  // namespace heed
