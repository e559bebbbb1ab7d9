// Attention maps as a page, as a drawing and as numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/base64.h"
#include "base/text/json_text.h"
#include "base/text/number_text.h"
#include "heed/attend.h"
#include "infer/render/attention_page.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

Json texts_of(const std::vector<AttentionToken>& tokens) {
  Json texts = Json::array();
  for (const AttentionToken& token : tokens) texts.push_back(token.text);
  return texts;
}

std::string in_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:  // XML has no other control characters
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\t') escaped += c;
    }
  }
  return escaped;
}

std::string number(double value) { return fixed(value, value == std::floor(value) ? 0 : 2); }

// 0 digits: as many as give the same float when they are read.
void add_weight(std::string& json, float weight, int digits) {
  constexpr float kLeast = 1e-6f;
  char text[32];
  char* const end = text + sizeof text;
  if (!std::isfinite(weight)) {  // JSON has no NaN or infinity
    json += "null";
    return;
  }
  if (digits > 0 && weight < kLeast) weight = 0;
  const auto [last, error] =
      digits > 0 ? std::to_chars(text, end, weight, std::chars_format::general, digits)
                 : std::to_chars(text, end, weight);
  json.append(text, last);
}

// The sizes of the drawing, in pixels.
constexpr double kLabelWidth = 74, kGap = 10, kMargin = 20, kLineHeight = 18;
constexpr double kMapSize = 120;    // of the longer side of a map
constexpr double kSmallCell = 7;    // smaller ones have no room for a label
constexpr float kFaintest = 0.02f;  // smaller weights are invisible and not drawn

// A label that fits into kLabelWidth, whole characters only.
std::string shortened(const std::string& text) {
  constexpr int kCharacters = 14;
  int count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && ++count > kCharacters) return text.substr(0, i) + "…";
  }
  return text;
}

class Drawing {
 public:
  Drawing(const AttentionView& view, std::string_view title) : view_(view) {
    y_ = kMargin + kLineHeight;
    text("title", kMargin, y_, title, "");
    for (const AttentionKind kind :
         {AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross}) {
      section(kind);
    }
  }

  std::string svg() const {
    const std::string size = number(width_ + kMargin) + " " + number(y_ + kMargin);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" +
           number(width_ + kMargin) + "\" height=\"" + number(y_ + kMargin) +
           "\" font-family=\"system-ui, sans-serif\" role=\"img\">\n" + kStyle + body_ + "</svg>\n";
  }

 private:
  static constexpr const char* kStyle =
      "<style>\n"
      ".page { fill: #ffffff } text { fill: #1b1c1d; font-size: 11px }\n"
      ".title { font-size: 15px; font-weight: 600 } .kind { font-size: 13px; font-weight: 600 }\n"
      ".soft { fill: #5d6166 } .token { font-family: monospace; font-size: 8px }\n"
      ".frame { fill: none; stroke: #c9cbcf } .cell { fill: #0f52ba }\n"
      "@media (prefers-color-scheme: dark) {\n"
      "  .page { fill: #16181b } text { fill: #eceef0 } .soft { fill: #a3a9b0 }\n"
      "  .frame { stroke: #3a3f45 } .cell { fill: #80beff }\n"
      "}\n"
      "</style>\n"
      "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";

  void text(const char* style, double x, double y, std::string_view content,
            const std::string& more) {
    body_ += "<text class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
             "\"" + more + ">" + in_xml(content) + "</text>\n";
    // An estimate: text cannot be measured here.
    width_ = std::max(width_, x + 8 * std::min<double>(80, static_cast<double>(content.size())));
  }

  // A row of maps for each layer, a column for each head.
  void section(AttentionKind kind) {
    std::vector<const AttentionLayer*> layers;
    for (const AttentionLayer& layer : view_.layers) {
      if (layer.kind == kind) layers.push_back(&layer);
    }
    if (layers.empty()) return;
    const int64_t queries = layers[0]->queries, keys = layers[0]->keys;
    const double cell =
        std::clamp(kMapSize / static_cast<double>(std::max(queries, keys)), 1.0, 14.0);
    const bool labelled = cell >= kSmallCell;
    const double left = kMargin + 50 + (labelled ? kLabelWidth : 0);
    const double map_width = cell * static_cast<double>(keys);
    const double map_height = cell * static_cast<double>(queries);
    y_ += 2 * kLineHeight;
    text("kind", kMargin, y_, std::string(name_of(kind)) + " attention", "");
    y_ += kLineHeight;
    for (int h = 0; h < layers[0]->heads; ++h) {
      text("soft", left + h * (map_width + kGap), y_, "head " + std::to_string(h + 1), "");
    }
    y_ += 6;
    if (labelled) {  // of the keys, once above the first map
      for (int64_t k = 0; k < keys; ++k) {
        const double x = left + cell * (static_cast<double>(k) + 0.7);
        text("token", x, y_ + kLabelWidth - 4,
             shortened(view_.keys(kind)[static_cast<size_t>(k)].text),
             " transform=\"rotate(-90 " + number(x) + " " + number(y_ + kLabelWidth - 4) + ")\"");
      }
      y_ += kLabelWidth;
    }
    for (const AttentionLayer* layer : layers) {
      text("soft", kMargin, y_ + 10, "layer " + std::to_string(layer->layer + 1), "");
      for (int64_t q = 0; labelled && q < queries; ++q) {
        text("token", left - 4, y_ + cell * (static_cast<double>(q) + 0.7),
             shortened(view_.queries(kind)[static_cast<size_t>(q)].text), " text-anchor=\"end\"");
      }
      for (int h = 0; h < layer->heads; ++h) {
        map(*layer, h, left + h * (map_width + kGap), cell);
      }
      y_ += map_height + kGap;
    }
    width_ = std::max(width_, left + layers[0]->heads * (map_width + kGap));
  }

  void map(const AttentionLayer& layer, int head, double x, double cell) {
    body_ += "<g transform=\"translate(" + number(x) + " " + number(y_) + ") scale(" +
             number(cell) + ")\">\n";
    for (int64_t q = 0; q < layer.queries; ++q) {
      for (int64_t k = 0; k < layer.keys; ++k) {
        const float p = layer.at(head, q, k);
        if (p < kFaintest) continue;
        body_ += "<rect class=\"cell\" x=\"" + std::to_string(k) + "\" y=\"" + std::to_string(q) +
                 "\" width=\"1\" height=\"1\" opacity=\"" + number(p) + "\"/>";
      }
    }
    body_ += "</g>\n<rect class=\"frame\" x=\"" + number(x) + "\" y=\"" + number(y_) +
             "\" width=\"" + number(cell * static_cast<double>(layer.keys)) + "\" height=\"" +
             number(cell * static_cast<double>(layer.queries)) + "\"/>\n";
  }

  const AttentionView& view_;
  std::string body_;
  double y_ = 0, width_ = 0;
};

}  // namespace

std::string attention_html(const AttentionView& view, std::string_view title) {
  Json layers = Json::array();
  for (const AttentionLayer& layer : view.layers) {
    std::vector<uint8_t> bytes;
    for (const float p : layer.probabilities) {
      bytes.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(p, 0.0f, 1.0f))));
    }
    layers.push_back({{"kind", name_of(layer.kind)},
                      {"layer", layer.layer},
                      {"heads", layer.heads},
                      {"queries", layer.queries},
                      {"keys", layer.keys},
                      {"bytes", encode_base64(std::as_bytes(std::span(bytes)))}});
  }
  const Json data = {{"title", title},
                     {"truncated", view.truncated},
                     {"source", texts_of(view.source)},
                     {"target", texts_of(view.target)},
                     {"layers", std::move(layers)}};
  // No text may end the script that contains it.
  std::string json;
  for (const char c : json_text(data)) {
    if (c == '<') {
      json += "\\u003c";
    } else {
      json += c;
    }
  }
  constexpr std::string_view kPlace = "@DATA@";
  std::string page(kAttentionPage);
  return page.replace(page.find(kPlace), kPlace.size(), json);
}

std::string attention_svg(const AttentionView& view, std::string_view title) {
  return Drawing(view, title).svg();
}

// Written directly, without a JSON tree: there are millions of values.
std::string attention_json(const AttentionView& view, int digits) {
  const auto tokens = [](const std::vector<AttentionToken>& list) {
    Json json = Json::array();
    for (const AttentionToken& token : list) {
      json.push_back({{"id", token.id}, {"text", token.text}});
    }
    return json;
  };
  std::string json = json_text(Json{{"source", tokens(view.source)},
                                    {"target", tokens(view.target)},
                                    {"truncated", view.truncated}});
  json.back() = ',';  // there is more
  json += "\"layers\":[";
  for (const AttentionLayer& layer : view.layers) {
    json += &layer == view.layers.data() ? "{" : ",{";
    json += "\"kind\":\"" + std::string(name_of(layer.kind)) +
            "\",\"layer\":" + std::to_string(layer.layer) + ",\"heads\":[";
    for (int h = 0; h < layer.heads; ++h) {
      json += h == 0 ? "[" : ",[";
      for (int64_t q = 0; q < layer.queries; ++q) {
        json += q == 0 ? "[" : ",[";
        for (int64_t k = 0; k < layer.keys; ++k) {
          if (k > 0) json += ',';
          add_weight(json, layer.at(h, q, k), digits);
        }
        json += ']';
      }
      json += ']';
    }
    json += "]}";
  }
  return json + "]}\n";
}

}  // namespace heed
