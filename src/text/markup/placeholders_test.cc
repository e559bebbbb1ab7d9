#include "text/markup/placeholders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace heed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> found(const std::string& text) {
  std::vector<std::string> list;
  for (const TextSpan& s : find_placeholders(text)) {
    list.push_back(text.substr(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin)));
  }
  return list;
}

TEST(Placeholders, TemplateVariables) {
  EXPECT_THAT(found("Hi {name}, {0} of {} in {{ place }}{{{raw}}}"),
              ElementsAre("{name}", "{0}", "{}", "{{ place }}", "{{{raw}}}"));
  EXPECT_THAT(found("${x} #{y} %{z} ${"), ElementsAre("${x}", "#{y}", "%{z}"));
  EXPECT_THAT(found("{ not closed, and {a{b}"), ElementsAre("{b}"));
  EXPECT_THAT(found("{" + std::string(200, 'x') + "}"), IsEmpty());
}

TEST(Placeholders, Printf) {
  EXPECT_THAT(found("%s has %d of %1$s, %.2f, %-5ld, %(name)s, %1 of %2, 5%%"),
              ElementsAre("%s", "%d", "%1$s", "%.2f", "%-5ld", "%(name)s", "%1", "%2", "%%"));
  EXPECT_THAT(found("100% of it, 5 % done, 100%sure, 50%."), IsEmpty());
  EXPECT_THAT(found("%dpx %s%d"), ElementsAre("%d", "%s", "%d"));
}

TEST(Placeholders, TagsWithANumber) {
  EXPECT_THAT(found("a <ph0> b </g1> c <x2/> <3> d"),
              ElementsAre("<ph0>", "</g1>", "<x2/>", "<3>"));
  EXPECT_THAT(found("I <3 you, a < b, <b>x</b>"), IsEmpty());
}

TEST(Placeholders, Addresses) {
  EXPECT_THAT(
      found("See https://a.org/b?q=1&r=2. (http://x.de/a_(b)) or www.heed.org/x, ftp://f/."),
      ElementsAre("https://a.org/b?q=1&r=2", "http://x.de/a_(b)", "www.heed.org/x", "ftp://f/"));
  EXPECT_THAT(found("Mail a.b+c@mail.example.org! <mailto:x@y.z> or example.com."),
              ElementsAre("a.b+c@mail.example.org", "mailto:x@y.z", "example.com"));
  EXPECT_THAT(found("访问https://a.org/b。谢谢"), ElementsAre("https://a.org/b"));
  EXPECT_THAT(found("The end.No e.g. a.m./p.m., 3.5 and 10:30, https:// x"), IsEmpty());
}

TEST(Placeholders, MentionsAndHashtags) {
  EXPECT_THAT(found("@tom and @a_b@social.org: #heed #größe!"),
              ElementsAre("@tom", "@a_b@social.org", "#heed", "#größe"));
  EXPECT_THAT(found("# 8 and #8 for C#, 5 @ 3, a@b"), IsEmpty());
}

TEST(Placeholders, Emoji) {
  EXPECT_THAT(found("Hi 😀👍🏽! ❤️ 👨‍👩‍👧 🇩🇪 1️⃣ x1️⃣ ☺"),
              ElementsAre("😀", "👍🏽", "❤️", "👨‍👩‍👧", "🇩🇪", "1️⃣",
                          "1️⃣", "☺"));
  EXPECT_THAT(found("© ™ → ½ äöü 日本"), IsEmpty());
}

TEST(Placeholders, AnyBytes) {
  EXPECT_THAT(found(std::string("\xF0\x9F\x98 %\0 {\xFF} @", 12)), ElementsAre("{\xFF}"));
  for (const char* part : {"{", "%", "<", "@", "#", "{{", "a.", "www.", "a@", "https://", "%("}) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += part;
    for (const TextSpan& s : find_placeholders(text)) EXPECT_LT(s.begin, s.end);
  }
}

}  // namespace
}  // namespace heed
