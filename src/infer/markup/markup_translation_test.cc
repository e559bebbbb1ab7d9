// Documents through a model: the bundled one, and a tiny one whose answers are no language at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "heed/translate.h"
#include "infer/engine/engine_testing.h"
#include "infer/markup/protected_text.h"
#include "text/markup/placeholders.h"

namespace heed {
namespace {

TranslateOptions options_of(TextFormat format, int beam = 1) {
  SearchOptions search;
  search.beam = beam, search.max_new_tokens = 60;
  return {.search = search, .format = format};
}

// ---- A reader of the generated HTML that shares nothing with the parser ----

struct ReadHtml {
  std::vector<std::string> tags;  // with comments
  std::string text;               // without them, entities decoded
};
ReadHtml read(const std::string& html) {
  ReadHtml result;
  static const std::map<std::string, std::string> kEntities{
      {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&eacute;", "é"}, {"&nbsp;", " "}};
  for (size_t at = 0; at < html.size();) {
    if (html[at] == '<') {
      char quote = 0;
      size_t end = at;
      do {
        if (quote == 0 && (html[end] == '"' || html[end] == '\'')) {
          quote = html[end];
        } else if (html[end] == quote) {
          quote = 0;
        }
        ++end;
      } while (end < html.size() && (quote != 0 || html[end - 1] != '>'));
      result.tags.push_back(html.substr(at, end - at));
      at = end;
      continue;
    }
    bool found = false;
    for (const auto& [entity, text] : kEntities) {
      if (html.compare(at, entity.size(), entity) != 0) continue;
      result.text += text;
      at += entity.size();
      found = true;
      break;
    }
    if (!found) result.text += html[at++];
  }
  return result;
}

std::string name_of_tag(const std::string& tag) {
  const size_t begin = tag[1] == '/' ? 2 : 1;
  return tag.substr(begin, tag.find_first_of(" >/", begin) - begin);
}

bool is_well_nested(const std::vector<std::string>& tags) {
  std::vector<std::string> open;
  for (const std::string& tag : tags) {
    const std::string name = name_of_tag(tag);
    if (tag.starts_with("<!") || name == "img" || name == "wbr") continue;
    if (tag[1] != '/') {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

// White space at tags may differ: one space between words, none at the ends.
std::string spaced(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n';
    if (!is_space) result += c;
    if (is_space && !result.empty() && result.back() != ' ') result += ' ';
  }
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

std::multiset<std::string> placeholders(const std::string& text) {
  std::multiset<std::string> found;
  for (const TextSpan& s : find_placeholders(text)) {
    found.insert(text.substr(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin)));
  }
  return found;
}

// ---- Generated lines ----

class Lines {
 public:
  explicit Lines(unsigned seed) : random_(seed) {}

  std::string next() {
    static const std::vector<std::string> kSentences{
        "Good morning, my dear friend!",
        "Where is the next station?",
        "I would like a cup of coffee and some bread.",
        "The train to Berlin leaves in ten minutes.",
        "She bought three red apples at the market yesterday.",
        "Can you help me with my homework?",
        "He has been working here for two years.",
        "We are looking for a cheap hotel near the beach.",
        "My father drinks tea every morning before work.",
        "They will come back tomorrow evening.",
        "This book is more interesting than the other one.",
        "Please close the window because it is cold.",
        "I have never seen such a beautiful garden."};
    std::vector<std::string> words;
    const std::string sentence = kSentences[below(kSentences.size())];
    for (size_t at = 0; at < sentence.size();) {
      const size_t end = std::min(sentence.find(' ', at), sentence.size());
      words.push_back(sentence.substr(at, end - at));
      at = end + 1;
    }
    static const std::vector<std::string> kPlaceholders{"{name}",
                                                        "{{count}}",
                                                        "${total}",
                                                        "%s",
                                                        "%1$s",
                                                        "%(user)s",
                                                        "%d",
                                                        "a@b.example.org",
                                                        "https://heed.dev/a?b=1",
                                                        "@tom",
                                                        "#news",
                                                        "😀",
                                                        "👍🏽"};
    for (size_t i = below(3); i > 0; --i) {
      const std::string& p = kPlaceholders[below(kPlaceholders.size())];
      words.insert(words.begin() + static_cast<ptrdiff_t>(below(words.size() + 1)), p);
    }
    if (below(6) == 0) words[below(words.size())] += " &amp;";
    if (below(6) == 0) words[below(words.size())] += " caf&eacute;";
    std::string html = range(words, 0, words.size(), 3);
    static const std::vector<std::string> kBlocks{"p", "li", "h2", "td", "div"};
    if (below(2) == 0) {
      const std::string& block = kBlocks[below(kBlocks.size())];
      html = "<" + block + attributes() + ">" + html + "</" + block + ">";
    }
    return html;
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  std::string attributes() {
    static const std::vector<std::string> kAttributes{"",
                                                      " class=\"a b\"",
                                                      " title='x > y'",
                                                      " href=\"https://a.org/?q=1&amp;r=2\"",
                                                      " data-json='{\"k\": [1]}'",
                                                      " hidden"};
    return kAttributes[below(kAttributes.size())] + " id=\"" + std::to_string(++ids_) + "\"";
  }

  // Words, some of them in elements.
  std::string range(const std::vector<std::string>& words, size_t begin, size_t end, int depth) {
    static const std::vector<std::string> kInline{"b", "i", "a", "span", "em", "u"};
    std::string html;
    for (size_t i = begin; i < end;) {
      if (i > begin) html += ' ';
      if (below(10) == 0) html += "<img src=\"x.png\"" + attributes() + ">";
      if (below(20) == 0) html += "<!-- " + std::to_string(++ids_) + " -->";
      if (depth > 0 && below(4) == 0) {
        const size_t size = 1 + below(std::min<size_t>(end - i, 5));
        const std::string& name = kInline[below(kInline.size())];
        html += "<" + name + attributes() + ">" + range(words, i, i + size, depth - 1) + "</" +
                name + ">";
        i += size;
      } else {
        html += words[i++];
      }
    }
    return html;
  }

  std::minstd_rand random_;
  int ids_ = 0;
};

class BundledModel : public testing::Test {
 protected:
  static Translator& translator() {
    static Translator instance(Model::load("models/en-de"), {.threads = 1});
    return instance;
  }

  static std::vector<std::string> translate(const std::vector<std::string>& texts,
                                            TextFormat format) {
    std::vector<std::string> results;
    translator().translate(texts, options_of(format),
                           [&](size_t, Translation&& t) { results.push_back(t.text); });
    return results;
  }
};

TEST_F(BundledModel, HtmlLinesKeepTagsTextAndPlaceholders) {
  constexpr size_t kLines = 500;
  Lines lines(20);
  std::vector<std::string> html, text;
  for (size_t i = 0; i < kLines; ++i) {
    html.push_back(lines.next());
    text.push_back(read(html.back()).text);
  }
  const std::vector<std::string> translated = translate(html, TextFormat::html);
  const std::vector<std::string> plain = translate(text, TextFormat::text);
  ASSERT_EQ(translated.size(), kLines);
  for (size_t i = 0; i < kLines; ++i) {
    SCOPED_TRACE(html[i] + "\n" + translated[i] + "\n" + plain[i]);
    const ReadHtml before = read(html[i]), after = read(translated[i]);
    EXPECT_THAT(after.tags, testing::UnorderedElementsAreArray(before.tags));
    EXPECT_TRUE(is_well_nested(before.tags) && is_well_nested(after.tags));
    EXPECT_EQ(spaced(after.text), spaced(plain[i]));
    EXPECT_EQ(placeholders(after.text), placeholders(before.text));
    EXPECT_EQ(placeholders(plain[i]), placeholders(text[i]));
  }
}

TEST_F(BundledModel, PlaceholdersStayInText) {
  const std::vector<std::string> texts{
      "Hello {name}, how are you?",
      "You have %d new messages from %s.",
      "I love you 😀❤️",
      "😀",
      "Write to me at tom@example.org or visit https://heed.dev/?q=a.b!c.",
      "{{user}} likes {{thing}}. ${price} is too much for %1$s!",
      "@anna bought <ph0> and <ph1> in #berlin.",
      "%s",
      "{a} {b} {c} {d} {e} and {f} or {g} but {h} with {i} for {j} from {k} to {l} at {m}."};
  const std::vector<std::string> results = translate(texts, TextFormat::text);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(placeholders(results[i]), placeholders(texts[i])) << texts[i] << "\n" << results[i];
  }
  EXPECT_EQ(results[3], texts[3]);
  EXPECT_EQ(results[7], texts[7]);
}

TEST_F(BundledModel, EmojiStayWhereTheyWere) {
  const std::vector<std::string> results =
      translate({"Good morning! 😀", "😀 Good morning!", "Good morning!"}, TextFormat::text);
  EXPECT_EQ(results[0], results[2] + " 😀");
  EXPECT_EQ(results[1], "😀 " + results[2]);
}

TEST_F(BundledModel, AlternativesAndAlignmentsOfADocument) {
  TranslateOptions options = options_of(TextFormat::html, 3);
  options.search->nbest = 3, options.search->alignments = true;
  const std::string html = "<p>Where is the <b>next</b> station?</p>\n<p>Good morning!</p>";
  const Translation t = translator().translate(html, options);
  ASSERT_EQ(t.alternatives.size(), 3u);
  EXPECT_EQ(t.sentences, 2);
  for (const std::string& text : t.alternatives) {
    EXPECT_THAT(read(text).tags, testing::UnorderedElementsAreArray(read(html).tags));
  }
  ASSERT_FALSE(t.alignments.empty());
  for (const Alignment& a : t.alignments) {
    EXPECT_LT(a.source.begin, a.source.end);
    EXPECT_LE(a.source.end, static_cast<int64_t>(html.size()));
    EXPECT_LT(a.target.begin, a.target.end);
    EXPECT_LE(a.target.end, static_cast<int64_t>(t.text.size()));
  }
}

TEST_F(BundledModel, MarkdownKeepsItsMarkup) {
  const std::string text =
      "# Good morning!\n\n- Where is the **next** [station](https://a.org)?\n- `heed --help`\n\n"
      "```sh\nGood morning!\n```\n";
  const std::string result = translate({text}, TextFormat::markdown)[0];
  const std::string morning = translate({"Good morning!"}, TextFormat::text)[0];
  EXPECT_TRUE(result.starts_with("# " + morning + "\n\n- ")) << result;
  EXPECT_TRUE(result.ends_with("?\n- `heed --help`\n\n```sh\nGood morning!\n```\n")) << result;
  EXPECT_NE(result.find("](https://a.org)"), std::string::npos) << result;
  EXPECT_EQ(std::ranges::count(result, '*'), 4) << result;
}

// Its answers have nothing to do with the source: placeholders and tags must be there all the same.
void expect_markup_stays(Translator& translator) {
  Lines lines(1);
  TranslateOptions options = options_of(TextFormat::html);
  options.search->max_new_tokens = 8;
  for (int i = 0; i < 50; ++i) {
    const std::string html = lines.next();
    SCOPED_TRACE(html);
    const ReadHtml before = read(html);
    const ReadHtml after = read(translator.translate(html, options).text);
    EXPECT_THAT(after.tags, testing::UnorderedElementsAreArray(before.tags));
    EXPECT_TRUE(is_well_nested(after.tags));
    for (const std::string& p : placeholders(before.text)) {
      EXPECT_NE(after.text.find(p), std::string::npos) << p;
    }
  }
}

TEST(MarkupTranslation, OfAnyModel) {
  Translator translator(tiny_model(Family::encoder_decoder),
                        {.threads = 1, .kv_memory_bytes = 4 << 20});
  expect_markup_stays(translator);
}

TEST(MarkupTranslation, OfAModelWithPlaceholderPieces) {
  TokenizerTraining training{.type = "bpe",
                             .vocabulary = 340,
                             .files = {HEED_TEST_DATA "/golden/train/text.txt"},
                             .user_symbols = {"<ph0>", "<ph1>", "<ph2>"},
                             .byte_fallback = true,
                             .threads = 1};
  const TokenizerPtr tokenizer = train_tokenizer(training);
  EXPECT_EQ(placeholder_pieces(*tokenizer), 3);
  Translator translator(
      Model(std::make_shared<const Network>(tiny_config(Family::encoder_decoder), 1), tokenizer),
      {.threads = 1, .kv_memory_bytes = 4 << 20});
  expect_markup_stays(translator);
}

TEST(MarkupTranslation, NothingToTranslateStaysAsItIs) {
  Translator translator(tiny_model(Family::encoder_decoder),
                        {.threads = 1, .kv_memory_bytes = 4 << 20});
  for (const std::string text :
       {"", " ", "<b></b>", "<!-- x -->", "<p>{name}</p>", "<script>x</script>"}) {
    EXPECT_EQ(translator.translate(text, options_of(TextFormat::html)).text, text);
  }
  std::vector<std::string> results;
  translator.translate({"<hr>", "", "<br>"}, options_of(TextFormat::html),
                       [&](size_t, Translation&& t) { results.push_back(t.text); });
  EXPECT_THAT(results, testing::ElementsAre("<hr>", "", "<br>"));
}

}  // namespace
}  // namespace heed
