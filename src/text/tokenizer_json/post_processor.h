// The post-processor of tokenizer.json: adds special tokens around one text or a pair.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/tokenizer.h"
#include "text/tokenizer_json/json_node.h"

namespace heed {

struct TemplateItem {
  enum class Kind { first_text, second_text, special };
  Kind kind = Kind::first_text;
  int32_t type = 0;
  int32_t id = -1;  // of a special token
};

struct PostProcessor {
  std::vector<TemplateItem> single = {{}};
  std::vector<TemplateItem> pair = {{}, {TemplateItem::Kind::second_text, 1, -1}};
  bool trim_offsets = false;  // spans exclude leading and trailing spaces

  // Whether a single text is unchanged.
  bool is_plain() const {
    return single.size() == 1 && single[0].kind == TemplateItem::Kind::first_text;
  }
  // Appends the template applied to a text or a pair.
  void apply(const Encoding& first, const Encoding* second, bool special_tokens,
             Encoding& out) const;
  // The same for ids only.
  void apply(const std::vector<int32_t>& first, bool special_tokens,
             std::vector<int32_t>& out) const;
};

// Null gives the default: the texts themselves, types 0 and 1. Throws corrupt_file or unsupported.
PostProcessor read_post_processor(const JsonNode& node);

}  // namespace heed
