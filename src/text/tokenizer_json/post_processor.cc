#include "text/tokenizer_json/post_processor.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "text/tokenizer_json/vocabulary.h"

namespace heed {
namespace {

constexpr const char* kKnown =
    "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing";
using Kind = TemplateItem::Kind;

int32_t read_id(const JsonNode& node) { return static_cast<int32_t>(node.integer(0, kMaxId)); }

std::vector<TemplateItem> read_template(const JsonNode& node, const JsonNode& special_tokens,
                                        bool allows_second) {
  std::vector<TemplateItem> items;
  for (const JsonNode& one : node.elements()) {
    if (one.has("Sequence")) {
      const JsonNode sequence = one.at("Sequence");
      const std::string& name = sequence.text("id");
      const int32_t type = read_id(sequence.at("type_id"));
      if (name == "A") {
        items.push_back({Kind::first_text, type, -1});
      } else if (name == "B" && allows_second) {
        items.push_back({Kind::second_text, type, -1});
      } else {
        sequence.corrupt("'" + name + "' must be a text of this template");
      }
      continue;
    }
    const JsonNode special = one.at("SpecialToken");
    const int32_t type = read_id(special.at("type_id"));
    const JsonNode token = special_tokens.at(special.text("id").c_str());
    for (const JsonNode& id : token.at("ids").elements()) {
      items.push_back({Kind::special, type, read_id(id)});
    }
  }
  return items;
}

// ["[SEP]", 102]
int32_t read_named_id(const JsonNode& node) { return read_id(node.at(1)); }

void read_into(const JsonNode& node, PostProcessor& out, int depth) {
  const std::string& type = node.text("type");
  const auto special = [](int32_t id, int32_t type_id) {
    return TemplateItem{Kind::special, type_id, id};
  };
  if (type == "TemplateProcessing") {
    out.single = read_template(node.at("single"), node.at("special_tokens"), false);
    out.pair = read_template(node.at("pair"), node.at("special_tokens"), true);
  } else if (type == "BertProcessing") {
    const int32_t begin = read_named_id(node.at("cls")), end = read_named_id(node.at("sep"));
    out.single = {special(begin, 0), {}, special(end, 0)};
    out.pair = {
        special(begin, 0), {}, special(end, 0), {Kind::second_text, 1, -1}, special(end, 1)};
  } else if (type == "RobertaProcessing") {
    const int32_t begin = read_named_id(node.at("cls")), end = read_named_id(node.at("sep"));
    out.single = {special(begin, 0), {}, special(end, 0)};
    out.pair = {special(begin, 0), {}, special(end, 0), special(end, 0), {Kind::second_text, 0, -1},
                special(end, 0)};
    out.trim_offsets = node.flag("trim_offsets", true);
  } else if (type == "ByteLevel") {
    out.trim_offsets = node.flag("trim_offsets", true);
  } else if (type == "Sequence") {
    if (depth > 0) node.corrupt("sequences must not be nested");
    int templates = 0;
    for (const JsonNode& one : node.at("processors").elements()) {
      templates += one.text("type") == "ByteLevel" ? 0 : 1;
      if (templates > 1) one.unsupported("a second template", "one template in a sequence");
      read_into(one, out, depth + 1);
    }
  } else {
    node.unsupported(type, kKnown);
  }
}

void append(const Encoding& from, int32_t type, Encoding& out) {
  out.ids.insert(out.ids.end(), from.ids.begin(), from.ids.end());
  out.offsets.insert(out.offsets.end(), from.offsets.begin(), from.offsets.end());
  out.types.resize(out.ids.size(), type);
  out.is_special.resize(out.ids.size(), 0);
}

}  // namespace

void PostProcessor::apply(const Encoding& first, const Encoding* second, bool special_tokens,
                          Encoding& out) const {
  for (const TemplateItem& item : second != nullptr ? pair : single) {
    if (item.kind == Kind::first_text) {
      append(first, item.type, out);
    } else if (item.kind == Kind::second_text) {
      append(*second, item.type, out);
    } else if (special_tokens) {
      out.ids.push_back(item.id);
      // An empty span at the end of the preceding text.
      const int64_t at = out.offsets.empty() ? 0 : out.offsets.back().end;
      out.offsets.push_back({at, at});
      out.types.push_back(item.type);
      out.is_special.push_back(1);
    }
  }
}

void PostProcessor::apply(const std::vector<int32_t>& first, bool special_tokens,
                          std::vector<int32_t>& out) const {
  for (const TemplateItem& item : single) {
    if (item.kind == Kind::first_text) {
      out.insert(out.end(), first.begin(), first.end());
    } else if (special_tokens) {
      out.push_back(item.id);
    }
  }
}

PostProcessor read_post_processor(const JsonNode& node) {
  PostProcessor processor;
  if (!node.is_null()) read_into(node, processor, 0);
  return processor;
}

}  // namespace heed
