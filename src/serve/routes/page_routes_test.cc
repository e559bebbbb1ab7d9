#include <regex>
#include <set>

#include "serve/routes/page.h"
#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

class PageRoutesTest : public ServeTest {};

TEST_F(PageRoutesTest, ServesThePageWithEverythingItAsksFor) {
  start({"gpt"});
  const Received page = client().get("/");
  ASSERT_EQ(page.status, 200);
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_THAT(page.headers.at("Content-Security-Policy"), testing::HasSubstr("default-src 'self'"));
  // What the page names, and what its scripts import.
  std::set<std::string> seen;
  EXPECT_EQ(client().get("/docs").body, client().get("/web/docs.html").body);
  std::vector<std::string> left = {"index.html", "docs.html"};
  const std::regex reference("(?:/web/|from \"\\./)([a-z]+\\.[a-z]+)");
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    if (!seen.insert(name).second) continue;
    const Received file = client().get("/web/" + name);
    ASSERT_EQ(file.status, 200) << name;
    for (std::sregex_iterator it(file.body.begin(), file.body.end(), reference), end; it != end;
         ++it) {
      left.push_back((*it)[1]);
    }
  }
  EXPECT_EQ(seen.size(), page_files().size());
  EXPECT_EQ(client().get("/web/none.js").status, 404);
}

// The SVG namespace is a name, not an address.
TEST(PageTest, AsksNoOtherHost) {
  const std::regex address("https?://(?!www\\.w3\\.org/2000/svg)[a-z]");
  for (const PageFile& file : page_files()) {
    EXPECT_FALSE(std::regex_search(std::string(file.content), address)) << file.name;
  }
}

}  // namespace
}  // namespace heed::serve
